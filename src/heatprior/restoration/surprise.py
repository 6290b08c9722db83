"""Where an image is unlike what a prior knows: how likely each patch is, beside what noisy photographs give.

The density of noisy patches is exact at every noise level, so the log-density of each patch can be compared with that
of patches of photographs under the same noise: p is the part of those that are less likely. Photographs give every p as
often as every other. Patches with p near 0 are stranger than the noise explains (text, drawings, too small a sigma),
those near 1 are too plain (too large a sigma, grey levels that are not what full scale says). A wrong sigma alone moves
p by little, since images differ more in texture than that, so the noise is estimated as well and compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from os import PathLike
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.border.entry import enter, resize
from heatprior.border.pixels import check_one_level, in_unit_range
from heatprior.display import as_html
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import clipping, estimate_sigma
from heatprior.priors.protocol import DiffusedPrior
from heatprior.priors.schedules import TableOverSigma, read_table
from heatprior.zoo import as_prior

CARD_ENTRY = "photographs"
PARTS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999)
MOST_PATCHES = 6000  # that are looked at
EXTREME = 0.01  # p beyond which, to either side, a patch is strange or plain
MANY = 0.15  # of the patches: fifteen times as many as photographs have
OTHER_LEVEL = 1.35  # times sigma, or a part of it: the noise is not what was given
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
        The noise that was found, over what was given.
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

    def __repr__(self) -> str:
        height, width = self.p.shape
        why = self.reason or "nothing unusual"
        return f"<Surprise: {width}×{height} pixels, {100 * self.strange:.2g} % of the patches strange; {why}>"

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.p)


def surprise(
    image: ArrayLike,
    sigma: float,
    *,
    prior: str | PathLike[str] | DiffusedPrior = "mixture",
    white: float | None = None,
) -> Surprise:
    """Measure, place by place, how unlike photographs a grey image with noise of standard deviation `sigma` is.

    Parameters
    ----------
    image : array_like, (H, W)
        A grey image, as in `denoise`. A few thousand patches, spread evenly, are examined.
    sigma : float
        Standard deviation of the noise, in the units of the image.
    prior : str, path or DiffusedPrior
        A prior whose card has the statistics of photographs, as that of the shipped `mixture`.
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
    >>> hp.surprise(noisy, 0.05).noise > 1.5  # twice as much as was given
    True
    """
    entered = enter(image, white=white, sigma=sigma)
    pixels = entered.pixels
    if pixels.ndim != 2:
        raise InvalidInputError(f"the image has shape {pixels.shape}; expected one grey image (H, W)")
    check_one_level(sigma)
    full, model = entered.full, as_prior(prior)
    grey, level = in_unit_range(pixels, full), sigma / full
    quantiles = np.array(read_quantiles(model.card).at(level))
    p = np.interp(log_densities(grey, level, model), quantiles, PARTS, left=0.0, right=1.0)
    known = p[np.isfinite(p)]
    if not known.size:
        raise InvalidInputError("no patch of the image is without missing pixels; nothing can be said of it")
    strange, plain = float((known < EXTREME).mean()), float((known > 1.0 - EXTREME).mean())
    noise = float(estimate_sigma(grey, white=1.0).sigma) / level
    return Surprise(resize(p, grey.shape), strange, plain, noise, _reason(grey, strange, plain, noise))


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


def read_quantiles(card: Mapping[str, Any]) -> TableOverSigma:
    """Quantiles of the log-density of noisy patches of photographs, a column for each of PARTS, from a prior's card."""

    def make(sigmas: tuple[float, ...], rows: tuple[Sequence[float], ...]) -> TableOverSigma:
        quantiles = np.array(rows, np.float64)
        if quantiles.shape != (len(sigmas), len(PARTS)) or not (np.diff(quantiles, axis=1) >= 0).all():
            raise InvalidInputError(f"quantiles are {quantiles.shape}, or not ascending")
        return TableOverSigma(sigmas, tuple(map(tuple, quantiles.T.tolist())))

    found = read_table(card, CARD_ENTRY, ("sigmas", "quantiles"), make)
    if found is None:
        raise InvalidInputError("the prior's card has no quantiles of photographs; use the prior 'mixture'")
    return found


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
