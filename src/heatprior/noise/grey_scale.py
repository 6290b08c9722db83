"""Which value is full scale, if nobody says: by the type of the image or, where that cannot be, by likelihood.

Priors know photographs whose grey levels are 0 to 1. An image w u, u such a photograph, with noise of sigma has patches
y of density f(y / w, sigma / w) / w^d, exact at every noise level: so w is found as sigma is. Photons that were
counted, stars, and floats in other units than 0 to 1 have a w that their type does not tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import likelihood_of, noise_level, without_gaps
from heatprior.pixels.inputs import LARGEST_GREY, as_channels, as_noise_level, as_white, in_unit_range, type_white
from heatprior.priors.protocol import Prior
from heatprior.zoo import as_prior

FOUND_BY = "mixture"  # the prior by which the scale is found
NOISE_BY = "patch7"  # and sigma first, where it is not told
ENDS = (0.005, 0.995)  # quantiles: the range of an image is what lies between
PLAUSIBLE = (0.45, 1.3)  # range of floats over full scale, as photographs have it
BRIGHT = 1 / 16  # of the full scale of integers, which has a meaning of its own: an image that reaches it keeps it
# The scale of the type stays if what is found is so near to it that PSNR hardly differs (experiments/grey_scales.py).
AS_GOOD = (0.6, 1.4)
PIXELS = 100_000  # from which the range is read
PATCHES = 400
OCTAVES = 12  # to either side of the first guess: a likelihood that still rises there has no top
LEAST_SIGMA = 1e-3  # over the range, where no noise can be measured


def full_scale(white: float | None, pixels: NDArray[Any], sigma: ArrayLike | None, channel_axis: int | None) -> float:
    """The value that stands for full scale: as given, as the type says if the image fills that, else by likelihood.

    `pixels` are as `as_pixels` gives them; `sigma` is that of `denoise`, None if it is not told.
    """
    if white is not None or pixels.dtype.itemsize == 1:
        return as_white(white, pixels)
    by_type, (low, high) = type_white(pixels), _ends(pixels)
    spread = high - low
    is_float = pixels.dtype.kind == "f"
    fills = PLAUSIBLE[0] <= spread / by_type <= PLAUSIBLE[1] if is_float else high >= BRIGHT * by_type
    if spread == 0.0 or fills:
        return as_white(None, pixels)
    channels = as_channels(pixels, channel_axis)
    prior = as_prior(FOUND_BY)
    if min(channels.shape[-2:]) < max(prior.patch_shape):
        return as_white(None, pixels)
    if (largest := float(np.nanmax(np.abs(pixels)))) > LARGEST_GREY * spread:
        raise InvalidInputError(
            f"the image has values up to {largest:g} but nearly all lie within {spread:g}; set values that stand for "
            "missing pixels to NaN, or give the value of full scale (white)"
        )
    levels = first_noise(channels, spread) if sigma is None else as_noise_level(sigma, pixels, channel_axis, np.inf)
    patches, own = some_patches(channels, levels, prior)
    found = likely_white(prior, patches, own, spread) if len(patches) else None
    return by_type if found is None or AS_GOOD[0] * by_type <= found <= AS_GOOD[1] * by_type else found


def likely_white(prior: Prior, patches: FloatArray, sigma: FloatArray, start: float) -> float | None:
    """argmax_w Σ log f(y / w, sigma / w) − d log w over patches (n, a) of noise levels (n,), from `start` on.

    In octaves uphill, then at the top of the parabola through the best of them and its neighbours. None if there is no
    top: patches with less in them than the noise that they are said to have tell no scale.
    """
    dimension = patches.shape[1] - 1  # brightness is not modelled
    seen: dict[int, float] = {}

    def value(octave: int) -> float:
        if octave not in seen:
            w = start * 2.0**octave
            density = prior.log_prob(patches / w, sigma / w)
            seen[octave] = float(density.sum()) - len(patches) * dimension * float(np.log(w))
        return seen[octave]

    best = 0
    while abs(best) < OCTAVES and (next_best := max((best - 1, best, best + 1), key=value)) != best:
        best = next_best
    if abs(best) == OCTAVES:
        return None
    below, peak, above = (value(best + step) for step in (-1, 0, 1))
    bend = below - 2.0 * peak + above
    top = 0.5 * (below - above) / bend if bend < 0 else 0.0
    return float(start * 2.0 ** (best + np.clip(top, -0.5, 0.5)))


def some_patches(channels: NDArray[Any], sigma: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray]:
    """Patches (n, a) without NaN from anywhere in channels (..., H, W), and the noise level in the middle of each."""
    size = max(prior.patch_shape)
    images, levels = (x.reshape(-1, *x.shape[-2:]) for x in (channels, np.broadcast_to(sigma, channels.shape)))
    rng = np.random.default_rng(0)
    ends = (len(images), images.shape[1] - size + 1, images.shape[2] - size + 1)
    places = np.stack([rng.integers(end, size=PATCHES) for end in ends], axis=1)
    patches = np.stack([images[n, i : i + size, j : j + size].reshape(-1) for n, i, j in places]).astype(np.float64)
    own = np.array([levels[n, i + size // 2, j + size // 2] for n, i, j in places], np.float64)
    whole = np.isfinite(patches).all(axis=1)
    return patches[whole], own[whole]


def first_noise(channels: NDArray[Any], spread: float) -> FloatArray:
    """One noise level for each image (..., 1, 1) in its units, as if its range were full scale."""
    likelihood = likelihood_of(as_prior(NOISE_BY))
    levels = np.empty((*channels.shape[:-2], 1, 1))
    for index in np.ndindex(channels.shape[:-2]):
        grey = without_gaps(in_unit_range(channels[index], spread))
        levels[index] = spread * max(noise_level(grey, likelihood).sigma, LEAST_SIGMA)
    return levels


def _ends(pixels: NDArray[Any]) -> tuple[float, float]:
    some = pixels.reshape(-1)[:: max(1, pixels.size // PIXELS)]
    known = some[np.isfinite(some)] if some.dtype.kind == "f" else some
    low, high = np.quantile(known.astype(np.float64), ENDS) if known.size else (0.0, 0.0)
    return float(low), float(high)
