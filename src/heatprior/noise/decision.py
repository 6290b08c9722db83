"""Whether denoising pays, and at which level: a decision learnt from pictures of many cameras, with and without noise.

What a camera leaves of its noise is neither white nor as strong in flat parts as elsewhere, so no likelihood of white
noise tells its level. But one white level is enough to remove it, and what the flattest patches hold, at full size and
reduced, tells which, beside the likelihood of white noise at the same sizes: noise halves with every octave and is the
same everywhere, texture is neither. Small networks look at that and choose a level relative to what the flattest
patches hold; a kernel classifier whether noise is white, so that the likelihood says more, and whether to denoise at
all. Where the likelihood finds the same white noise at full, half and quarter size, it is white, whatever the picture.
`paper/weights/noise_decision.py` learns them; the card of the file says on what.
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

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
GREY, COLOUR = "grey", "colour"  # the two sets of networks of the file
PRIOR = "patch7"  # whose likelihood finds the level of white noise

SIZE = 8  # pixels along the side of a patch
SCALES = 3  # full size, half and quarter
EDGES = (0.5, 1.6, 2.6, 4.1, 5.7, 7.5, 10.0)  # half periods in a patch: between them the bands
PARTS = (0.0, 0.01, 0.05, 0.2, 0.5)  # quantiles of energy: patches are averaged in between, the flattest first
SAME = 0.25  # of log levels: of 1,014 clean pictures three have them so close, of 312 of cameras none
FLAT = 1  # which of the parts the others are compared with
MOST_PATCHES, FEWEST_PATCHES = 8000, 40
UNCUT = (0.02, 0.1, 0.3)  # of the pixels of a patch, at most, are at black or white; with too few patches, more
FEWEST_UNCUT = 0.1  # of the patches
LEAST_ENERGY = 1e-3  # in squared grey levels of 8 bits: below rounding
WHITE = 255.0  # grey levels that features are in
MIX = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]]) / np.sqrt([[3.0], [2.0], [6.0]])  # orthonormal
NARROWNESS = 0.006  # of the Gaussians over standardised features: -log of their value at distance one
OFFSETS = np.arange(-1.0, 3.01, 0.25)  # of the logarithms of the levels that may be chosen, from what is flattest


class Decision(NamedTuple):
    """What is done with an image whose grey levels are 0 to 1."""

    level: float  # of white noise that removes it best if there is noise, the same in all channels
    probability: float  # that denoising at this level pays
    error: float  # of the level
    pays: bool  # whether to denoise
    is_white: bool  # whether the level is that of the likelihood of white noise, which then says more


class Description(NamedTuple):
    """What an image is judged by; logarithms of levels in grey levels of 8 bits."""

    features: FloatArray
    log_level: float  # of what its flattest patches hold
    log_white: float  # of white noise, by likelihood
    octaves: float  # by how much that differs at most at half and quarter size, times two for each octave


def decide(channels: FloatArray) -> Decision | None:
    """Decide for a grey image (1, H, W) or colours (3, H, W), grey levels 0 to 1; None if too little is there."""
    found = describe(channels)
    if found is None:
        return None
    return _learnt()[GREY if len(channels) == 1 else COLOUR].decide(found)


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
    constant = 0.0
    for scale in range(SCALES):
        found = _energies(mixed, cut)
        if found is None and scale == 0:
            return None
        if found is None:
            scales.append(scales[-1])
        else:
            energies, one_value = found
            constant = one_value if scale == 0 else constant
            scales.append(_by_flatness(energies) + scale * np.log(4.0))
        mixed, cut = halve(mixed), halve(cut)
    logs = np.array(scales)  # (scales, parts, C, bands); white noise has the same at all scales
    reference = float(logs[:2, FLAT, 0, :4].mean())
    halves = logs.reshape(*logs.shape[:3], 2, -1).mean(axis=-1)
    spread = np.delete(halves, FLAT, axis=1) - halves[:, FLAT, None]
    white = _log_white_levels(channels[len(channels) // 2], whole[len(channels) // 2])
    rest = [reference, float(np.log(constant + 0.01))]
    features = [(logs[:, FLAT] - reference).reshape(-1), spread.reshape(-1), white - reference / 2.0, rest]
    return Description(np.concatenate(features), reference / 2.0, float(white[0]), float(np.ptp(white)))


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


class Networks(NamedTuple):
    """Some networks of one hidden layer, whose chances are averaged."""

    hidden: FloatArray  # (n, F, h)
    hidden_bias: FloatArray  # (n, h)
    output: FloatArray  # (n, h, actions)
    output_bias: FloatArray  # (n, actions)

    def chances(self, features: FloatArray) -> FloatArray:
        """Of every action, by standardised features: (actions,)."""
        hidden = np.tanh(features @ self.hidden + self.hidden_bias)  # (n, h)
        logits = np.einsum("nh,nha->na", hidden, self.output) + self.output_bias
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray((powers / powers.sum(axis=1, keepdims=True)).mean(axis=0))


class Kernel(NamedTuple):
    """Two scores from -1 to 1, sums of Gaussians around some of the pictures that were learnt from."""

    axes: FloatArray  # principal axes of the features, (F, k)
    centres: FloatArray  # (m, k)
    weights: FloatArray  # (m, 2)
    offsets: FloatArray  # (2,)

    def scores(self, x: FloatArray) -> FloatArray:
        """That denoising pays, and that noise is white, by standardised features (…, F): (…, 2)."""
        return np.asarray(gaussians(x @ self.axes, self.centres) @ self.weights + self.offsets)


def gaussians(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Of points (…, k) around centres (m, k): (…, m)."""
    squares = np.square(points).sum(axis=-1)[..., None] + np.square(centres).sum(axis=-1) - 2.0 * points @ centres.T
    return np.asarray(np.exp(-NARROWNESS * squares))


class Learnt(NamedTuple):
    """What was learnt from grey pictures, or from colours."""

    centre: FloatArray  # of the features, (F,)
    spread: FloatArray
    level: Networks  # which of the `OFFSETS`, if there is noise
    kernel: Kernel  # whether to denoise, and whether the level is that of white noise
    farthest: float  # spreads from the centre that a feature counts
    threshold: float  # of the probability that denoising pays
    error: float  # of the level, relative, in pictures of cameras that were left out

    def standardise(self, features: FloatArray) -> FloatArray:
        """Features (…, F) as networks and kernel see them."""
        return np.clip((features - self.centre) / self.spread, -self.farthest, self.farthest)

    def decide(self, found: Description) -> Decision:
        """What is done with an image."""
        x = self.standardise(found.features)
        scores = self.kernel.scores(x)
        pays, white = (float(score) for score in np.clip((1.0 + scores) / 2.0, 0.0, 1.0))
        same = found.octaves < SAME
        is_white = same or white > 0.5  # no clean picture that was left out is taken for one with white noise
        log_level = found.log_white if is_white else found.log_level + middle_offset(self.level.chances(x))
        level = float(np.exp(log_level)) / WHITE
        probability = max(pays, white, float(same)) if is_white else pays
        return Decision(level, probability, self.error * level, is_white or pays > self.threshold, is_white)


def middle_offset(chances: FloatArray) -> float:
    """The median of the `OFFSETS`."""
    return float(np.interp(0.5, np.cumsum(chances) - chances / 2.0, OFFSETS))


@lru_cache(maxsize=1)
def _learnt() -> dict[str, Learnt]:
    """What the shipped file holds."""
    with safe_open(str(FILE), framework="numpy") as file:
        card = json.loads(file.metadata()["heatprior"])

        def read(*names: str) -> FloatArray:
            return np.asarray(file.get_tensor(".".join(names)), np.float64)

        return {
            name: Learnt(
                read(name, "centre"),
                read(name, "spread"),
                Networks(*(read(name, "level", field) for field in Networks._fields)),
                Kernel(*(read(name, "kernel", field) for field in Kernel._fields)),
                card["farthest"],
                card["threshold"][name],
                card["error"][name],
            )
            for name in (GREY, COLOUR)
        }


def _energies(mixed: FloatArray, cut: FloatArray) -> tuple[FloatArray, float] | None:
    """Mean energies (C, n, bands) of patches that are not clipped, and which part of the patches is one value."""
    height, width = mixed.shape[1:]
    if min(height, width) < 2 * SIZE:
        return None
    stride = max(1, int(np.ceil(np.sqrt(height * width / MOST_PATCHES))))
    windows = sliding_window_view(mixed, (SIZE, SIZE), axis=(1, 2))[:, ::stride, ::stride]
    clipped = sliding_window_view(cut, (SIZE, SIZE))[::stride, ::stride].mean(axis=(2, 3)).reshape(-1)
    patches = windows.reshape(len(mixed), -1, SIZE**2)
    basis, bands = _bands()
    energies = np.square(patches @ basis) @ bands
    varied = energies[0].sum(axis=1) > LEAST_ENERGY**2
    for most in (*UNCUT, np.inf):
        usable = varied & (clipped < most)
        if np.count_nonzero(usable) > max(FEWEST_UNCUT * len(usable), FEWEST_PATCHES):
            break
    if np.count_nonzero(usable) < FEWEST_PATCHES:
        return None
    return energies[:, usable], float(np.mean(~varied & (clipped < UNCUT[0])))


def _by_flatness(energies: FloatArray) -> FloatArray:
    """Log energies of the flattest patches, of less flat ones, and so on: (parts, C, bands)."""
    order = np.argsort(energies.mean(axis=2).sum(axis=0), kind="stable")
    starts = [int(part * len(order)) for part in PARTS]
    groups = [order[start : max(stop, start + 4)] for start, stop in pairwise(starts)]
    return np.log(np.array([energies[:, group].mean(axis=1) for group in groups]) + LEAST_ENERGY)


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
    radius = np.hypot(*np.divmod(np.arange(1, SIZE**2), SIZE))
    members = np.array([(radius >= low) & (radius < high) for low, high in pairwise(EDGES)])
    return matrix.T.astype(np.float32), (members / members.sum(axis=1, keepdims=True)).T.astype(np.float32)
