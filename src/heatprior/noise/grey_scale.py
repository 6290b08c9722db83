"""Which value is full scale, if nobody says: what a photograph as bright and as rich in detail would have.

Priors know photographs whose grey levels are 0 to 1. An image w u, u such a photograph, with noise of sigma has patches
y of density f(y / w, sigma / w) / w^d, exact at every noise level: so w is found as sigma is. That tells w by the
detail of the image, its range tells it by the brightness; both together scatter less about the truth than either. An
image and its noise times any factor have w times that factor, and hence the same result. The full scale of the type
stays where the range speaks for it; photons that were counted, stars, and floats in any units have another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import likelihood_of, noise_level, without_gaps
from heatprior.noise.squares import plane_of, squares, telling
from heatprior.pixels.channels import is_transparency
from heatprior.pixels.inputs import LARGEST_GREY, as_channels, as_noise_level, as_white, in_unit_range, type_white
from heatprior.priors.protocol import Prior
from heatprior.zoo import shipped

FOUND_BY = "mixture"  # the prior by which the scale is found
NOISE_BY = "patch7"  # and sigma first, where it is not told
ENDS = (0.02, 0.98)  # quantiles: the range of an image is what lies between
CELL = 4  # pixels, over whose mean the range is read: noise hardly widens it
# Full scale over the range of validation images (crops of 200², noise of 10, 25 and 50), on average: it scatters by
# 0.28 of its logarithm, what is likeliest by 0.38, the geometric mean of both by 0.27.
OVER_RANGE = 1.6
# The full scale of the type over what the range says, if it stays: from an image that fills it to one that is not much
# dimmer than photographs are. It costs hundredths of a decibel at most (experiments/grey_scales.py).
AS_GOOD = (1 / 1.65, 1.5)
BRIGHT, NOT_DARK = 0.7, 0.35  # of 255: images of 8 bits that reach it keep it in any case, the latter to estimate noise
PATCHES = 400
FAR_OUT = 1e3  # times the range: patches with such pixels do not count
OCTAVES = 12  # above the first guess, at most
LEAST_SIGMA = 1e-3  # over the range, where no noise can be measured
LEAST_OVER_SIGMA = 2.0  # full scale: of nothing but noise the likelihood would find ever less
LEAST_RANGE_OVER_SIGMA = 0.5  # the range over sigma, at least, if there is such noise: one in nothing but noise

Groups = Sequence[Sequence[NDArray[Any]]]  # squares (h, w), channel by channel


def full_scale(white: float | None, pixels: NDArray[Any], sigma: ArrayLike | None, channel_axis: int | None) -> float:
    """The value that stands for full scale: as given, else as it is found from squares spread over the image.

    `pixels` are as `as_pixels` gives them; `sigma` is that of `denoise`, None if it is not told.
    """
    if white is not None:
        return as_white(white, pixels)
    channels = as_channels(pixels, channel_axis)
    levels = None if sigma is None else as_noise_level(sigma, pixels, channel_axis, np.inf)
    by_type = type_white(pixels)
    found = scale_of_squares(without_alpha(squares_of(channels)), levels, by_type)
    return as_white(None if found == by_type else found, pixels)


def scale_for_noise(white: float | None, pixels: NDArray[Any], channel_axis: int | None) -> float:
    """The same for estimating noise: as given, else what the range of the image says, whatever its type.

    Which kind of noise has the most evidence may depend on the scale, so that must not depend on the units.
    """
    if white is not None:
        return as_white(white, pixels)
    channels, by_type = as_channels(pixels, channel_axis), type_white(pixels)
    looked_at = [square for own in _chosen(without_alpha(squares_of(channels))) for square in own]
    spread = 0.0 if _reaches(NOT_DARK, looked_at, by_type) else _range(looked_at)
    return as_white(OVER_RANGE * spread if spread > 0.0 else max(by_type, _largest(channels)), pixels)


def scale_of_images(images: Sequence[NDArray[Any]]) -> float:
    """Of images (C, H, W) of one camera and type together, noise not told."""
    found = [own for channels in images for own in without_alpha(squares_of(channels))]
    return scale_of_squares(found, None, type_white(images[0]))


def squares_of(channels: NDArray[Any]) -> list[list[NDArray[Any]]]:
    """Of every channel (..., C, H, W), squares spread over all planes of it."""
    places = squares((*channels.shape[:-3], *channels.shape[-2:]))
    return [[plane_of(channels[..., c, :, :][place]) for place in places] for c in range(channels.shape[-3])]


def without_alpha(found: Groups) -> Groups:
    """All but the last of four channels if that is transparency."""
    return found[:3] if len(found) == 4 and is_transparency(np.stack(found[3])) else found


def scale_of_squares(found: Groups, told: NDArray[Any] | None, by_type: float) -> float:
    """Full scale of what these squares are of.

    It does not depend on the noise levels that are told, as `as_noise_level` gives them, so that to estimate the noise
    and to tell what was estimated are the same; unless one is beyond what is there: then it may be in other units.
    """
    chosen = _chosen(found)
    looked_at = [square for own in chosen for square in own]
    largest = max(_largest(square) for own in found for square in own)
    spread, prior = _range(looked_at), shipped(FOUND_BY)
    if spread == 0.0 or min(min(square.shape) for square in looked_at) < max(prior.patch_shape):
        return max(by_type, largest)
    if largest > LARGEST_GREY * spread:
        raise InvalidInputError(
            f"the image has values up to {largest:g} but nearly all lie within {spread:g}; set values that stand for "
            "missing pixels to NaN, or give the value of full scale (white)"
        )
    if _reaches(BRIGHT, looked_at, by_type) or AS_GOOD[0] <= by_type / (OVER_RANGE * spread) <= AS_GOOD[1]:
        return by_type
    if told is not None and told.shape[-2:] in ((), (1, 1)) and spread < LEAST_RANGE_OVER_SIGMA * told.max():
        return by_type
    levels = [level for own in chosen if own for level in [first_noise(own, spread)] * len(own)]
    patches, noise = some_patches(looked_at, levels, prior)
    usual = np.abs(patches).max(axis=1) <= FAR_OUT * spread
    patches, noise = patches[usual], noise[usual]
    if len(patches) == 0:
        return max(by_type, largest)
    least = LEAST_OVER_SIGMA * float(np.median(noise))
    likely = likely_white(prior, patches, noise, spread, least)
    return float(np.sqrt(likely * max(OVER_RANGE * spread, least)))


def likely_white(prior: Prior, patches: FloatArray, sigma: FloatArray, start: float, least: float = 0.0) -> float:
    """argmax_w Σ log f(y / w, sigma / w) − d log w over patches (n, a) of noise levels (n,), from `start` on.

    In octaves uphill, down to about `least`, then at the top of the parabola through the best and its neighbours.
    """
    dimension = patches.shape[1] - 1  # brightness is not modelled
    seen: dict[int, float] = {}

    def value(octave: int) -> float:
        if octave not in seen:
            w = start * 2.0**octave
            density = prior.log_prob(patches / w, sigma / w)
            seen[octave] = float(density.sum()) - len(patches) * dimension * float(np.log(w))
        return seen[octave]

    best, lowest = 0, int(np.floor(np.log2(least / start))) if least > 0 else -OCTAVES
    while lowest < best < OCTAVES and (next_best := max((best - 1, best, best + 1), key=value)) != best:
        best = next_best
    below, peak, above = (value(best + step) for step in (-1, 0, 1))
    bend = below - 2.0 * peak + above
    top = 0.5 * (below - above) / bend if bend < 0 else 0.0
    return max(float(start * 2.0 ** (best + np.clip(top, -0.5, 0.5))), least)


def some_patches(found: Sequence[NDArray[Any]], levels: Sequence[float], prior: Prior) -> tuple[FloatArray, FloatArray]:
    """Patches (n, a) without NaN from anywhere in squares (h, w), and the noise level of each."""
    size = max(prior.patch_shape)
    rng = np.random.default_rng(0)
    numbers = rng.integers(len(found), size=PATCHES)
    patches, own = np.empty((PATCHES, size**2)), np.empty(PATCHES)
    for row, (number, place) in enumerate(zip(numbers, rng.random((PATCHES, 2)), strict=True)):
        i, j = (place * (np.array(found[number].shape) - size + 1)).astype(int)
        patches[row] = found[number][i : i + size, j : j + size].reshape(-1)
        own[row] = levels[number]
    whole = np.isfinite(patches).all(axis=1)
    return patches[whole], own[whole]


def first_noise(found: Sequence[NDArray[Any]], spread: float) -> float:
    """One noise level for squares (h, w) of one channel in its units, as if their range were full scale."""
    likelihood = likelihood_of(shipped(NOISE_BY))
    grey = without_gaps(in_unit_range(np.concatenate(found), spread))
    return spread * max(noise_level(grey, likelihood).sigma, LEAST_SIGMA)


def _chosen(found: Groups) -> list[list[NDArray[Any]]]:
    """Of every channel, squares in which there is something to see."""
    return [[own[k] for k in telling(own)] for own in found]


def _largest(values: NDArray[Any]) -> float:
    """The largest absolute value of those that are finite."""
    return float(np.abs(values).max(initial=0, where=np.isfinite(values)))


def _reaches(part: float, found: Sequence[NDArray[Any]], by_type: float) -> bool:
    """Whether these are squares of 8 bits that reach so much of their full scale."""
    return bool(found) and found[0].dtype.itemsize == 1 and _ends(found, 1)[1] >= part * by_type


def _range(found: Sequence[NDArray[Any]]) -> float:
    """Between the ends, or of all where nearly all pixels are the same; 0 if there are none."""
    if not found:
        return 0.0
    low, high = _ends(found, CELL)
    if high > low:
        return high - low
    every = [float(end) for square in found for end in (np.nanmin(square), np.nanmax(square))]
    return max(every) - min(every)


def _ends(found: Sequence[NDArray[Any]], cell: int) -> tuple[float, float]:
    """The darkest and the brightest means of cell×cell pixels without NaN, but for a few."""
    means = []
    for square in found:
        height, width = (length // cell * cell for length in square.shape)
        cells = square[:height, :width].astype(np.float64).reshape(height // cell, cell, width // cell, cell)
        means.append(cells.mean(axis=(1, 3)).reshape(-1))
    known = np.concatenate(means)
    known = known[np.isfinite(known)]
    low, high = np.quantile(known, ENDS) if known.size else (0.0, 0.0)
    return float(low), float(high)
