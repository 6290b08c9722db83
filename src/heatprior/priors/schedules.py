"""Schedules of half-quadratic splitting: the noise level and the weight of the noisy image, step by step.

A prior's card may hold schedules for some noise levels, `"hqs": {"sigmas": [s_1 … s_m], "levels": [[…] …], "weights":
[[…] …]}`, each with the same number of steps. An entry `"strides": [2, 2]`, if there is one, says how many pixels apart
the patches of each step are; step k begins them k pixels from the edge, so that the grids of two steps are not the
same. Whatever a card holds for some noise levels is a table over sigma: linear in log sigma, and constant beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.patches import EVERY, Grid

CARD_ENTRY = "hqs"
LEAST_SIGMA = 1e-9  # indistinguishable from no noise, but has a logarithm
Table = TypeVar("Table")


@dataclass(frozen=True)
class TableOverSigma:
    """Columns of numbers, (m,) each, at m noise levels `sigmas`, which ascend."""

    sigmas: tuple[float, ...]
    columns: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            sigmas, *columns = (np.array(column, np.float64) for column in (self.sigmas, *self.columns))
        except (TypeError, ValueError) as error:
            raise InvalidInputError("sigmas and the columns of a table must be lists of numbers") from error
        if sigmas.ndim != 1 or not sigmas.size or any(column.shape != sigmas.shape for column in columns):
            raise InvalidInputError("sigmas and the columns of a table must be lists of numbers of the same length")
        if not all(np.isfinite(column).all() for column in (sigmas, *columns)):
            raise InvalidInputError("the numbers of a table over sigma must be finite")
        if not (sigmas[0] > 0.0 and (np.diff(sigmas) > 0.0).all()):
            raise InvalidInputError("sigmas must be positive and ascending")

    def at(self, sigma: float | FloatArray) -> tuple[FloatArray, ...]:
        """The columns at noise levels of any shape, each of that shape, in float64."""
        return tuple(interpolate(self.sigmas, column, sigma) for column in self.columns)


def interpolate(sigmas: Sequence[float], values: Sequence[float] | FloatArray, sigma: float | FloatArray) -> FloatArray:
    """What is between values (m,) at m noise levels: linear in log sigma, constant beyond their ends."""
    return np.asarray(np.interp(np.log(np.maximum(sigma, LEAST_SIGMA)), np.log(sigmas), values))


def read_table(
    card: Mapping[str, Any], entry: str, names: Sequence[str], make: Callable[..., Table], *, section: str | None = None
) -> Table | None:
    """Make a table from the named columns of an entry of a card, or of a section of it; None if there is none."""
    try:
        columns = card.get(entry)
        if columns is not None and section is not None:
            columns = columns.get(section)
        if columns is None:
            return None
        return make(*(tuple(columns[name]) for name in names))
    except (AttributeError, InvalidInputError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise PriorFileError(f'"{entry}" of the prior\'s card: {error}') from error


@dataclass(frozen=True)
class Schedules:
    """One schedule for each of some noise levels `sigmas`, ascending, grey levels being 0 to 1.

    For each step `levels` are those handed to the prior, over sigma, and `weights` those of the noisy image after it.
    """

    sigmas: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    strides: tuple[int, ...] = ()  # of the steps; empty if all patches take part

    def __post_init__(self) -> None:
        try:
            sigmas, levels, weights = (np.array(x, np.float64) for x in (self.sigmas, self.levels, self.weights))
        except (TypeError, ValueError) as error:
            raise InvalidInputError("a schedule needs numbers, the same count of steps for every sigma") from error
        if sigmas.ndim != 1 or levels.ndim != 2 or levels.shape != weights.shape or len(levels) != len(sigmas):
            raise InvalidInputError(
                f"sigmas {sigmas.shape}, levels {levels.shape} and weights {weights.shape} of a schedule do not match; "
                "expected (m,), (m, steps) and (m, steps)"
            )
        if levels.size == 0:
            raise InvalidInputError("a schedule has no steps; give at least one")
        TableOverSigma(self.sigmas, ())  # checks them
        if not (np.isfinite(levels).all() and (levels > 0).all()):
            raise InvalidInputError("levels of a schedule must be positive: parts of sigma such as 0.5")
        if not ((weights >= 0) & (weights <= 1)).all():
            raise InvalidInputError("weights of a schedule must lie between 0 and 1")
        if self.strides and (
            len(self.strides) != self.steps or not all(type(x) is int and x > 0 for x in self.strides)
        ):
            raise InvalidInputError(f"strides are {list(self.strides)}; expected a whole number above 0 for every step")

    @classmethod
    def constant(cls, levels: tuple[float, ...], weights: tuple[float, ...]) -> Schedules:
        """The same schedule for every sigma."""
        return cls((1.0,), (levels,), (weights,))

    @property
    def steps(self) -> int:
        """The number of steps, the same for every sigma."""
        return len(self.levels[0])

    def grid(self, step: int) -> Grid:
        """The grid of patches that take part in a step."""
        return Grid(self.strides[step], step % self.strides[step]) if self.strides else EVERY

    def level(self, step: int, sigma: float | FloatArray) -> FloatArray:
        """The noise level of a step over sigma, for each sigma."""
        return interpolate(self.sigmas, np.array(self.levels)[:, step], sigma)

    def weight(self, step: int, sigma: float | FloatArray) -> FloatArray:
        """The weight of the noisy image after a step, for each sigma."""
        return interpolate(self.sigmas, np.array(self.weights)[:, step], sigma)


# Found by a search on validation images with another 7×7 prior: good for any prior of natural images.
GENERAL = Schedules.constant((0.54, 0.47, 0.37, 0.30), (0.28, 0.10, 0.04, 0.01))
# Mixtures leave noise behind if the first step is below the noise level; two steps do nearly as well as EPLL's five.
OF_MIXTURES = Schedules.constant((1.0, 0.4), (0.3, 0.0))


def schedules_on(card: Mapping[str, Any], otherwise: Schedules = GENERAL) -> Schedules:
    """The schedules on a prior's card; without any, one schedule for every sigma."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return otherwise
    keys = ("sigmas", "levels", "weights")
    try:
        if not isinstance(entry, Mapping) or set(entry) - {"strides"} != set(keys):
            raise InvalidInputError(f"expected an object with {', '.join(keys)}")
        levels, weights = (tuple(tuple(steps) for steps in entry[key]) for key in keys[1:])
        return Schedules(tuple(entry["sigmas"]), levels, weights, tuple(entry.get("strides", ())))
    except InvalidInputError as error:
        why = str(error)
    except TypeError:
        why = "sigmas and strides must be lists, levels and weights lists of lists"
    raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card: {why}')
