"""Scales: the coarse half of an image is denoised by itself, where its noise is half as strong, and its half in turn.

An image reduced by two through cropping its cosine transform keeps its low frequencies exactly, and its noise white: of
half the standard deviation, since four pixels become one. There a patch of the prior sees twice as far. The denoised
coarse image then replaces the low frequencies of the denoised fine one. Where one takes over from the other is a
`Crossover`, which a prior's card may have for some noise levels: `"crossover": {"sigmas": [s_1 … s_m], "edges": […],
"widths": […]}`, straight in log sigma in between. With `"crossover_between"`, which has `"heights"` as well, the coarse
image takes part after every step of the fine one, not only after the last: what is left of the noise is then nearly
all of high frequency, and the shapes of smooth patches are easier to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import PriorFileError
from heatprior.noise_model import Noise
from heatprior.scipy_extensions import cosine_transform, inverse_cosine_transform

CARD_ENTRY, BETWEEN = "crossover", "crossover_between"
LARGEST_EXPONENT = 80.0  # beyond it next to nothing is left
LEAST_SIGMA = 1e-9  # indistinguishable from no noise, but has a logarithm


class Crossover(NamedTuple):
    """Where both scales count the same, and the width of the transition, over the highest coarse frequency.

    `height` is how much the coarse image counts at the lowest frequencies.
    """

    edge: float = 0.5
    width: float = 0.1
    height: float = 1.0

    def part_of_coarse(self, frequencies: FloatArray) -> FloatArray:
        """How much the coarse image counts at these frequencies."""
        exponents = np.minimum((frequencies - self.edge) / self.width, LARGEST_EXPONENT)
        return np.asarray(self.height / (1.0 + np.exp(exponents)))


def crossover_on(card: Mapping[str, Any], noise: Noise) -> Crossover:
    """What a prior's card says for noise that is of this level in the fine image; of a map, for its middle level."""
    return _on_card(card, CARD_ENTRY, ("edges", "widths"), noise) or Crossover()


def crossover_between(card: Mapping[str, Any], noise: Noise) -> Crossover | None:
    """The same for the merging after every step but the last; None if there is none."""
    return _on_card(card, BETWEEN, ("edges", "widths", "heights"), noise)


def _on_card(card: Mapping[str, Any], name: str, columns: Sequence[str], noise: Noise) -> Crossover | None:
    entry = card.get(name)
    if entry is None:
        return None
    try:
        sigmas, *values = (np.array(entry[key], np.float64) for key in ("sigmas", *columns))
        if not ((sigmas > 0.0).all() and np.isfinite(sigmas).all() and (np.diff(sigmas) > 0.0).all()):
            raise PriorFileError(f'"{name}" of the prior\'s card: sigmas must be positive and ascending')
        place = log(max(sqrt(noise.lowest * noise.highest), LEAST_SIGMA))
        found = Crossover(*(float(np.interp(place, np.log(sigmas), column)) for column in values))
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise PriorFileError(f'"{name}" of the prior\'s card needs lists of equal length: {error}') from error
    if not (np.isfinite(found).all() and found.width > 0.0):
        raise PriorFileError(f'"{name}" of the prior\'s card gives {found}; expected numbers, widths above 0')
    return found


def reduced(image: FloatArray) -> FloatArray:
    """The image (H, W) on a grid of half the pixels in either direction: the low half of its cosine transform."""
    height, width = (-(-length // 2) for length in image.shape)
    low = cosine_transform(image)[:height, :width]
    return np.asarray(inverse_cosine_transform(low) * _factor(image.shape, low.shape), np.float32)


def noise_of_reduced(noise: Noise, shape: tuple[int, int]) -> Noise:
    """The noise in a reduced image, of which the whole has this `shape`; a map by the mean variance of 2×2 pixels."""
    return noise.halved(shape, _factor(shape, (-(-shape[0] // 2), -(-shape[1] // 2))))


def merged(fine: FloatArray, coarse: FloatArray, crossover: Crossover = Crossover()) -> FloatArray:  # noqa: B008
    """`fine` (H, W) with its low frequencies those of `coarse`, its reduced grid: in float32."""
    spectrum = cosine_transform(fine)
    height, width = coarse.shape
    low = spectrum[:height, :width]
    frequencies = np.hypot((np.arange(height) / height)[:, None], np.arange(width) / width)
    part = crossover.part_of_coarse(frequencies)
    low += part.astype(np.float32) * (cosine_transform(coarse) / _factor(fine.shape, coarse.shape) - low)
    return np.asarray(inverse_cosine_transform(spectrum), np.float32)


def _factor(shape: tuple[int, ...], small: tuple[int, ...]) -> float:
    """What one grey level of the whole image is in orthonormal coefficients of the reduced one: about a half."""
    return float(np.sqrt((small[0] * small[1]) / (shape[0] * shape[1])))
