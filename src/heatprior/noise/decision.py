"""Whether denoising pays, and at which level: a decision learnt from pictures of many cameras, with and without noise.

What a camera leaves of its noise is neither white nor as strong in flat parts as elsewhere, so no likelihood of white
noise tells its level. But one white level is enough to remove it, and what the flattest patches hold, at full size and
reduced, tells which, beside the likelihood of white noise at the same sizes: noise halves with every octave and is the
same everywhere, texture is neither. Three sums of Gaussians around pictures that were learnt from answer three
questions. At which level is noise removed best, relative to what the flattest patches hold? Is the noise white, so that
the likelihood says more? (Where the likelihood finds the same white noise at full, half and quarter size, it is white,
whatever the picture.) And does denoising pay at all? In colours they see how energies relate, too: fine texture comes
with coarse, has a direction, and is the same in all colours.
`paper/weights/noise_decision.py` learns them; the card of the file says on what.
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from safetensors import safe_open

from heatprior.arrays import FloatArray
from heatprior.border.gaps import fill_missing
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import clipping, likelihood_of, noise_level
from heatprior.noise.likelihood import OCTAVES
from heatprior.priors.filters import FilterBank
from heatprior.zoo import load

FILE = Path(__file__).with_name("decision.safetensors")
GREY, COLOUR = "grey", "colour"  # what was learnt from pictures of either kind
PRIOR = "patch7"  # whose likelihood finds the level of white noise

SIZE = 8  # pixels along the side of a patch
SCALES = 3  # full size, half and quarter
EDGES = (0.5, 1.6, 2.6, 4.1, 5.7, 7.5, 10.0)  # half periods in a patch: between them the bands
PARTS = (0.0, 0.01, 0.05, 0.2, 0.5)  # quantiles of energy: patches are averaged in between, the flattest first
SAME = 0.25  # of log levels: closer, they are those of white noise, as in none of the pictures of cameras
LEAST_SHARE = 0.2  # of the level that removes noise best: weaker white noise is not all there is
SURE = 0.8  # of the probability that noise is white: whatever is left, as on a blank page
STRONGEST = 64.0 * 2.0**0.5  # of 255: the strongest level that was tried
DOUBTFUL = 0.1  # of the probability that denoising pays: below it, white noise may be a fine pattern
FLAT = 1  # which of the parts the others are compared with
RELATED = slice(2, 4)  # the parts in which relations are looked at
COARSE, FINE = slice(0, 3), slice(3, 6)  # bands whose energies are related
DARKEST = 8.0  # grey levels: in darker patches brightness is as good as the same
MOST_PATCHES, FEWEST_PATCHES = 8000, 40
UNCUT = (0.02, 0.1, 0.3)  # of the pixels of a patch, at most, are at black or white; with too few patches, more
FEWEST_UNCUT = 0.1  # of the patches
LEAST_ENERGY = 1e-3  # in squared grey levels of 8 bits: below rounding
WHITE = 255.0  # grey levels that features are in
MIX = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]]) / np.sqrt([[3.0], [2.0], [6.0]])  # orthonormal
_ALONG, _ACROSS = np.divmod(np.arange(1, SIZE**2), SIZE)  # half periods of the cosines but the constant
_DIRECTIONS = _ACROSS > _ALONG, _ALONG > _ACROSS
_RADIUS = np.hypot(_ALONG, _ACROSS)
_HALVES = np.split(np.argsort(_RADIUS, kind="stable"), [len(_RADIUS) // 2])  # coarse ones first
NARROWNESS = 0.4  # of the Gaussians over standardised features: -log of their value at one spread in every feature


class Decision(NamedTuple):
    """What is done with an image whose grey levels are 0 to 1."""

    level: float  # of white noise that removes it best if there is noise, the same in all channels
    probability: float  # that denoising at this level pays
    error: float  # of the level
    pays: bool  # whether to denoise
    is_white: bool  # whether the level is that of the likelihood of white noise, which then says more


class Description(NamedTuple):
    """What an image is judged by; logarithms of levels in grey levels of 8 bits."""

    features: FloatArray  # energies of bands of the flattest patches, of less flat ones; in colours, how they relate
    log_level: float  # of what the flattest patches of the image hold
    log_white: float  # of white noise, by likelihood
    octaves: float  # by how much that differs at most at half and quarter size, times two for each octave


def decide(found: Description | None, *, in_colour: bool) -> Decision | None:
    """Decide for a grey image or for colours; None if too little is there to describe."""
    return found and _learnt()[COLOUR if in_colour else GREY].decide(found)


def describe(channels: FloatArray) -> Description | None:
    """Features of an image (C, H, W), one channel or three, grey levels 0 to 1; None if it holds too few patches."""
    cut = np.zeros(channels.shape[1:], np.float32)
    whole = np.array(channels, np.float32)
    for channel in whole:
        missing = np.isnan(channel)
        low, high = clipping(channel) if not missing.all() else (0.0, 0.0)
        cut[missing | (channel == low) | (channel == high)] = 1.0
        fill_missing(channel)
    mix = MIX if len(whole) == len(MIX) else np.ones((1, 1))
    mixed = np.tensordot((WHITE * mix).astype(np.float32), whole, axes=1)
    scales: list[FloatArray] = []
    relations: list[FloatArray] = []
    constant = 0.0
    for scale in range(SCALES):
        found = _patches(mixed, cut)
        if found is None and scale == 0:
            return None
        if found is None:
            scales.append(scales[-1])
            relations.append(relations[-1])
        else:
            patches, one_value = found
            constant = one_value if scale == 0 else constant
            groups = patches.by_flatness()
            scales.append(
                np.log([group.energies.mean(axis=1) + LEAST_ENERGY for group in groups]) + scale * np.log(4.0)
            )
            relations.append(np.concatenate([group.relations() for group in groups[RELATED]]))
        mixed, cut = halve(mixed), halve(cut)
    logs = np.array(scales)  # (scales, parts, C, bands); white noise has the same at all scales
    reference = float(logs[:2, FLAT, 0, :4].mean())
    halves = logs.reshape(*logs.shape[:3], 2, -1).mean(axis=-1)
    spread = np.delete(halves, FLAT, axis=1) - halves[:, FLAT, None]
    white = _log_white_levels(channels[len(channels) // 2], whole[len(channels) // 2])
    rest = [reference, float(np.log(constant + 0.01))]
    own = [(logs[:, FLAT] - reference).reshape(-1), spread.reshape(-1), white - reference / 2.0, rest]
    levels = reference / 2.0, float(white[0]), float(np.ptp(white))
    return Description(np.concatenate([*own, *(relations if len(mixed) > 1 else [])]), *levels)


def _log_white_levels(channel: FloatArray, whole: FloatArray) -> FloatArray:
    """Logarithms of the levels that the likelihood of white noise finds, times two for each octave: (scales,)."""
    likelihood = likelihood_of(load(PRIOR))
    levels: list[float] = []
    for scale in range(SCALES):
        if min(channel.shape) < 2 * SIZE:
            levels.append(levels[-1])
            continue
        try:
            found = noise_level(channel, likelihood).sigma
        except InvalidInputError:  # beyond full scale, as that of a chessboard
            found = float(OCTAVES[-1])
        levels.append(2.0**scale * max(found, float(OCTAVES[0])))
        channel = whole = halve(whole)
    return np.log(WHITE * np.array(levels))


def gaussians(points: FloatArray, centres: FloatArray, narrowness: float) -> FloatArray:
    """Gaussians around centres (m, k), each one at its centre, at points (…, k): (…, m)."""
    squares = np.square(points).sum(axis=-1)[..., None] + np.square(centres).sum(axis=-1) - 2.0 * points @ centres.T
    return np.asarray(np.exp(-narrowness * squares))


class Learnt(NamedTuple):
    """What was learnt from grey pictures, or from colours."""

    centre: FloatArray  # of the features, (F,)
    spread: FloatArray
    axes: FloatArray  # principal axes of standardised features, (F, k)
    pictures: FloatArray  # that were learnt from, along these axes, (m, k)
    weights: FloatArray  # of the Gaussians around them, for each question, (3, m)
    offsets: FloatArray  # (3,)
    farthest: float  # spreads from the centre that a feature counts
    white_threshold: float  # of the probability that noise is white
    pays_threshold: float  # of the probability that denoising pays
    error: float  # of the level, relative, in pictures of cameras that were left out

    def answer(self, features: FloatArray) -> tuple[float, float, float]:
        """Log of the level, less that of the flattest patches, and the probabilities of white noise and of a gain.

        The probabilities are fitted to −1 for no and 1 for yes.
        """
        z = np.clip((features - self.centre) / self.spread, -self.farthest, self.farthest) @ self.axes
        level, *signs = self.weights @ gaussians(z, self.pictures, NARROWNESS / len(self.centre)) + self.offsets
        white, pays = np.clip((1.0 + np.array(signs)) / 2.0, 0.0, 1.0)
        return float(level), float(white), float(pays)

    def decide(self, found: Description) -> Decision:
        """What is done with an image."""
        offset, white, pays = self.answer(found.features)
        same, log_level = bool(found.octaves < SAME), min(found.log_level + offset, float(np.log(STRONGEST)))
        likely = 0.5 if pays > self.pays_threshold else self.white_threshold  # what is denoised has some noise anyway
        all_of_it = bool(found.log_white > log_level + np.log(LEAST_SHARE))
        is_white = same or (white > (likely if all_of_it else SURE) and pays > DOUBTFUL)
        level = float(np.exp(found.log_white if is_white else log_level)) / WHITE
        probability = max(pays, white, float(same)) if is_white else pays
        return Decision(level, probability, self.error * level, is_white or pays > self.pays_threshold, is_white)


ARRAYS, NUMBERS = Learnt._fields[:6], Learnt._fields[6:]


@lru_cache(maxsize=1)
def _learnt() -> dict[str, Learnt]:
    """What the shipped file holds."""
    with safe_open(str(FILE), framework="numpy") as file:
        card = json.loads(file.metadata()["heatprior"])

        def read(name: str) -> Learnt:
            parts: dict[str, Any] = {part: card[part][name] for part in NUMBERS}
            parts |= {part: np.asarray(file.get_tensor(f"{name}.{part}"), np.float64) for part in ARRAYS}
            return Learnt(**parts)

        return {name: read(name) for name in (GREY, COLOUR)}


class Patches(NamedTuple):
    """Of an image whose channels are mixed: brightness first, then two colours."""

    coefficients: FloatArray  # of cosines, (C, n, d)
    energies: FloatArray  # mean squares of bands, (C, n, bands)
    brightness: FloatArray  # (n,), grey levels

    def by_flatness(self) -> list[Patches]:
        """The flattest patches, less flat ones, and so on, between the quantiles of PARTS."""
        order = np.argsort(self.energies.mean(axis=2).sum(axis=0), kind="stable")
        starts = [int(part * len(order)) for part in PARTS]
        groups = [order[start : max(stop, start + 4)] for start, stop in pairwise(starts)]
        return [Patches(self.coefficients[:, g], self.energies[:, g], self.brightness[g]) for g in groups]

    def relations(self) -> FloatArray:
        """How fine texture relates to coarse texture, brightness and direction, and channels to each other: (r,)."""
        coarse, fine = (np.log(self.energies[..., part].mean(axis=2) + LEAST_ENERGY) for part in (COARSE, FINE))
        light = np.log(np.maximum(self.brightness, 0.0) + DARKEST)
        across, along = (np.square(self.coefficients[..., part]).sum(axis=2) for part in _DIRECTIONS)
        direction = np.square((across - along) / (across + along + LEAST_ENERGY)).mean(axis=1)
        found = [direction, coarse.std(axis=1), fine.std(axis=1)]
        found += [_correlations(fine, coarse), _correlations(fine, np.broadcast_to(light, fine.shape))]
        first, second = np.triu_indices(len(fine), 1)
        found += [_correlations(fine[first], fine[second]), _correlations(coarse[first], coarse[second])]
        for part in _HALVES:
            whole = self.coefficients[..., part].reshape(len(fine), -1)
            found.append(_correlations(whole[first], whole[second]))
        return np.concatenate(found)


def _correlations(first: FloatArray, second: FloatArray) -> FloatArray:
    """Correlation coefficients of two arrays (n, m), row by row: (n,)."""
    first, second = (rows - rows.mean(axis=1, keepdims=True) for rows in (first, second))
    norms = np.sqrt(np.square(first).sum(axis=1) * np.square(second).sum(axis=1))
    return np.asarray((first * second).sum(axis=1) / (norms + LEAST_ENERGY))


def _patches(mixed: FloatArray, cut: FloatArray) -> tuple[Patches, float] | None:
    """Patches that are not clipped, and the share of all patches that hold one value; None if too few are left."""
    height, width = mixed.shape[1:]
    if min(height, width) < 2 * SIZE:
        return None
    stride = max(1, int(np.ceil(np.sqrt(height * width / MOST_PATCHES))))
    windows = sliding_window_view(mixed, (SIZE, SIZE), axis=(1, 2))[:, ::stride, ::stride]
    clipped = sliding_window_view(cut, (SIZE, SIZE))[::stride, ::stride].mean(axis=(2, 3)).reshape(-1)
    patches = windows.reshape(len(mixed), -1, SIZE**2)
    basis, bands = _bands()
    coefficients = patches @ basis
    energies = np.square(coefficients) @ bands
    varied = energies[0].sum(axis=1) > LEAST_ENERGY**2
    for most in (*UNCUT, np.inf):
        usable = varied & (clipped < most)
        if np.count_nonzero(usable) > max(FEWEST_UNCUT * len(usable), FEWEST_PATCHES):
            break
    if np.count_nonzero(usable) < FEWEST_PATCHES:
        return None
    brightness = patches[0, usable].mean(axis=1) / np.sqrt(len(mixed))
    found = Patches(coefficients[:, usable], energies[:, usable], brightness)
    return found, float(np.mean(~varied & (clipped < UNCUT[0])))


def halve(values: FloatArray) -> FloatArray:
    """Means over 2×2 pixels."""
    height, width = (length // 2 * 2 for length in values.shape[-2:])
    even = values[..., :height, :width]
    return np.asarray(
        (even[..., ::2, ::2] + even[..., 1::2, ::2] + even[..., ::2, 1::2] + even[..., 1::2, 1::2]) * np.float32(0.25)
    )


@lru_cache(maxsize=1)
def _bands() -> tuple[FloatArray, FloatArray]:
    """The cosine basis without its constant (b², d), and what averages over its bands (d, bands)."""
    matrix = FilterBank.dct(SIZE).matrix
    members = np.array([(low <= _RADIUS) & (high > _RADIUS) for low, high in pairwise(EDGES)])
    return matrix.T.astype(np.float32), (members / members.sum(axis=1, keepdims=True)).T.astype(np.float32)
