"""Where an image is unlike what a prior knows: how likely each patch is, beside what noisy photographs give.

The density of noisy patches is exact at every noise level, so the log-density of each patch can be compared with that
of patches of photographs under the same noise: p is the part of those that are less likely. Photographs give every p as
often as every other. Patches with p near 0 are stranger than the noise explains (text, drawings, too small a sigma),
those near 1 are too plain (too large a sigma, grey levels that are not what full scale says). A wrong sigma alone moves
p by little, since images differ more in texture than that, so the noise is estimated as well and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from os import PathLike
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.noise.levels import clipping, estimate_sigma
from heatprior.pixels.inputs import as_pixels, as_white, in_unit_range
from heatprior.priors.protocol import DiffusedPrior
from heatprior.zoo import as_prior

CARD_ENTRY = "photographs"
PARTS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999)
MOST_PATCHES = 6000  # that are looked at
EXTREME = 0.01  # p beyond which, to either side, a patch is strange or plain
MANY = 0.15  # of the patches: fifteen times as many as photographs have
OTHER_LEVEL = 1.35  # times sigma, or a part of it: the noise is not what was told
SATURATED = 0.05  # of the pixels, at the lowest or the highest value
FAINT, GLARING = 0.02, 0.6  # standard deviation of an image, grey levels being 0 to 1: of no photograph


@dataclass(frozen=True)
class Surprise:
    """How unlike noisy photographs an image is, as `surprise` finds it.

    Attributes
    ----------
    p : ndarray, (H, W)
        The part of patches of photographs that are less likely than the patch around each pixel.
    strange : float
        Part of the patches with p < 0.01; one per cent in photographs.
    plain : float
        Part of them with p > 0.99.
    noise : float
        The noise that was found, over what was told.
    reason : str
        What the image looks like, in a few words; empty if nothing is unusual.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    >>> found = hp.surprise(noisy, 0.1)
    >>> found.p.shape, 0 <= found.strange <= 1
    ((64, 64), True)
    """

    p: FloatArray
    strange: float
    plain: float
    noise: float
    reason: str


def surprise(
    image: ArrayLike,
    sigma: float,
    *,
    prior: str | PathLike[str] | DiffusedPrior = "mixture",
    white: float | None = None,
) -> Surprise:
    """How unlike photographs a grey image with noise of standard deviation `sigma` is, place by place.

    Parameters
    ----------
    image : array_like, (H, W)
        A grey image, as in `denoise`. At most some thousand patches, spread evenly, are looked at.
    sigma : float
        In the units of the image.
    prior : str, path or DiffusedPrior
        One with a table of what photographs give on its card, as the shipped `mixture` has.
    white : float, optional
        As in `denoise`.

    Returns
    -------
    Surprise
        Probabilities place by place, how much is unusual, and what it looks like.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    >>> hp.surprise(noisy, 0.05).noise > 1.5  # twice as much as was told
    True
    """
    pixels = as_pixels(image)
    if pixels.ndim != 2:
        raise InvalidInputError(f"the image has shape {pixels.shape}; expected one grey image (H, W)")
    if not 0 < sigma < np.inf:
        raise InvalidInputError(f"sigma is {sigma:g}; expected a positive number, in the units of the image")
    full, model = as_white(white, pixels), as_prior(prior)
    grey, level = in_unit_range(pixels, full), sigma / full
    quantiles = Photographs.on(model.card).quantiles(level)
    p = np.interp(log_densities(grey, level, model), quantiles, PARTS, left=0.0, right=1.0)
    known = p[np.isfinite(p)]
    if not known.size:
        raise InvalidInputError("no patch of the image is without missing pixels; nothing can be said of it")
    strange, plain = float((known < EXTREME).mean()), float((known > 1.0 - EXTREME).mean())
    noise = float(estimate_sigma(grey, white=1.0).sigma) / level
    return Surprise(_as_map(p, grey.shape), strange, plain, noise, _reason(grey, strange, plain, noise))


def log_densities(image: FloatArray, sigma: float, prior: DiffusedPrior, most: int = MOST_PATCHES) -> FloatArray:
    """Of patches spread evenly over an image (H, W), at most so many: (rows, columns), NaN where pixels are missing."""
    size = as_prior(prior).patch_shape[0]
    counts = [length - size + 1 for length in image.shape]
    if min(counts) < 1:
        raise InvalidInputError(f"the image has shape {image.shape} but patches have {size}×{size} pixels")
    stride = max(1, ceil(sqrt(counts[0] * counts[1] / most)))
    windows = sliding_window_view(image, (size, size))[::stride, ::stride]
    patches = windows.reshape(*windows.shape[:2], size**2)
    whole = np.isfinite(patches).all(axis=-1)
    result = np.full(whole.shape, np.nan)
    result[whole] = prior.log_prob(patches[whole], sigma)
    return result


@dataclass(frozen=True)
class Photographs:
    """Quantiles of the log-density of noisy patches of photographs, (sigmas, PARTS), by noise level, ascending."""

    sigmas: FloatArray
    table: FloatArray

    @classmethod
    def on(cls, card: Mapping[str, Any]) -> Photographs:
        """What a prior's card says."""
        entry = card.get(CARD_ENTRY)
        if entry is None:
            raise InvalidInputError("the prior's card does not say what photographs give; take the prior 'mixture'")
        try:
            sigmas, table = (np.array(entry[key], np.float64) for key in ("sigmas", "quantiles"))
        except (KeyError, TypeError, ValueError) as error:
            raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card: {error}') from error
        if table.shape != (sigmas.size, len(PARTS)) or not (np.diff(table, axis=1) >= 0).all():
            raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card: quantiles are {table.shape}, or not ascending')
        return cls(sigmas, table)

    def quantiles(self, sigma: float) -> FloatArray:
        """At one noise level, straight in log sigma between those of the table: (PARTS,)."""
        place = np.log(sigma)
        return np.array([np.interp(place, np.log(self.sigmas), column) for column in self.table.T])


def _as_map(p: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The p of the nearest patch, for every pixel."""
    rows, columns = (np.arange(length) * count // length for length, count in zip(shape, p.shape, strict=True))
    return p[np.ix_(rows, columns)]


def _reason(image: FloatArray, strange: float, plain: float, noise: float) -> str:
    """What is unusual of an image: another noise level, saturation, another scale, or that it is no photograph."""
    finite = image[np.isfinite(image)]
    ends = {end for end in clipping(image) if np.isfinite(end)}
    if sum(np.count_nonzero(finite == end) for end in ends) > SATURATED * finite.size:
        return "many pixels are saturated"
    if not FAINT < float(finite.std()) < GLARING:
        return "grey levels are not on the scale of photographs: check full scale (white)"
    if noise > OTHER_LEVEL or noise < 1.0 / OTHER_LEVEL:
        return f"the noise is about {noise:.2g} times what sigma says"
    if max(strange, plain) > MANY:
        return "it is unlike a photograph: text, a drawing, or synthetic"
    return ""
