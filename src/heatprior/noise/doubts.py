"""Where the model of white noise does not hold: clipped, quantised or too weak, each in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.display import format_level
from heatprior.noise.levels import clipping
from heatprior.noise.likelihood import CLEAR, usable_patches

MANY_CLIPPED = 0.02  # of the pixels
ENOUGH = 0.25  # of the patches, not clipped
COARSE = 0.5  # times the step between grey levels: noise weaker than this
FEW_VALUES = 4096  # with more distinct values than this, quantisation is not looked for
NINETY = 1.645  # standard errors: the interval that holds the truth in 90 of 100 cases
NUMBER = re.compile(r"\d+(\.\d+)?")


def doubts(image: FloatArray, sigma: float, size: int, white: float = 1.0) -> list[str]:
    """What speaks against `sigma`, the estimate for a grey image (H, W) scaled to [0, 1] by patches of this size.

    It is said in the units of an image of this full scale (`white`), with what to do about it.
    """
    found = [_clipped(image, sigma, size), _quantised(image, sigma, white)]
    return [doubt for doubt in found if doubt]


def one_of_each(found: Sequence[str]) -> list[str]:
    """Of doubts that differ in a figure alone, as those of several channels do, the first."""
    kinds: dict[str, str] = {}
    for doubt in found:
        kinds.setdefault(NUMBER.sub("#", doubt), doubt)
    return list(kinds.values())


def too_weak(sigma: float, error: float, white: float = 1.0) -> str:
    """Whether an estimate with this standard error might as well be zero."""
    highest = sigma + NINETY * error
    if sigma > NINETY * error:
        return ""
    return f"noise below {format_level(highest * white)} looks like fine texture; if detail is lost, lower the strength"


def _clipped(image: FloatArray, sigma: float, size: int) -> str:
    """Whether so much is black or white that what is left may tell too little; less than that does no harm."""
    ends = clipping(image)
    cut = sum(np.count_nonzero(image == end) for end in set(ends) if np.isfinite(end))
    part = cut / np.count_nonzero(np.isfinite(image))
    if part < MANY_CLIPPED or part == 1.0:
        return ""
    clear = usable_patches(image, size, 1, ends, CLEAR[1] / CLEAR[0] * sigma).mean()
    if clear > ENOUGH:
        return ""
    return f"{part:.0%} of the pixels are clipped, black or white; if noise is left, raise the strength"


def _quantised(image: FloatArray, sigma: float, white: float) -> str:
    values = np.unique(image[np.isfinite(image)])
    if not 1 < len(values) <= FEW_VALUES:
        return ""
    step = float(np.diff(values).min())
    if sigma >= COARSE * step:
        return ""
    apart = format_level(step * white)
    return f"grey levels are {apart} apart, which hides the noise; if bands or grain are left, raise the strength"
