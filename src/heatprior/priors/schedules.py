"""Schedules of half-quadratic splitting: the noise level and the weight of the noisy image, step by step.

A prior's card may hold schedules for some noise levels, `"hqs": {"sigmas": [s_1 … s_m], "levels": [[…] …], "weights":
[[…] …]}`, each with the same number of steps. They are a table over sigma: see tables.py. An
entry `"strides": [2, 2]`, if there is one, says how many pixels apart the patches of each step are; step k begins them
k pixels from the edge, so that the grids of two steps are not the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.patches import EVERY, Grid
from heatprior.priors.tables import TableOverSigma

CARD_ENTRY = "hqs"


@dataclass(frozen=True)
class Schedule:
    """For each step the noise level handed to the prior, over sigma, and the weight of the noisy image after it."""

    levels: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        Schedules((1.0,), (self.levels,), (self.weights,))  # the same rules


@dataclass(frozen=True)
class Schedules:
    """One schedule for each of some noise levels `sigmas`, ascending, grey levels being 0 to 1."""

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

    @property
    def steps(self) -> int:
        """The number of steps, the same for every sigma."""
        return len(self.levels[0])

    def grid(self, step: int) -> Grid:
        """The grid of patches that take part in a step."""
        return Grid(self.strides[step], step % self.strides[step]) if self.strides else EVERY

    def level(self, step: int, sigma: float | FloatArray) -> FloatArray:
        """The noise level of a step over sigma, for each sigma."""
        return self._between([levels[step] for levels in self.levels], sigma)

    def weight(self, step: int, sigma: float | FloatArray) -> FloatArray:
        """The weight of the noisy image after a step, for each sigma."""
        return self._between([weights[step] for weights in self.weights], sigma)

    def _between(self, values: list[float], sigma: float | FloatArray) -> FloatArray:
        return TableOverSigma(self.sigmas, (tuple(values),)).at(sigma)[0]


# Found by a search on validation images with another 7×7 prior: good for any prior of natural images.
GENERAL = Schedule((0.54, 0.47, 0.37, 0.30), (0.28, 0.10, 0.04, 0.01))
# Mixtures leave noise behind if the first step is below the noise level; two steps do nearly as well as EPLL's five.
OF_MIXTURES = Schedule((1.0, 0.4), (0.3, 0.0))


def constant(schedule: Schedule) -> Schedules:
    """The same schedule for every sigma."""
    return Schedules((1.0,), (schedule.levels,), (schedule.weights,))


def schedules_on(card: Mapping[str, Any], otherwise: Schedule = GENERAL) -> Schedules:
    """The schedules on a prior's card; without any, one schedule for every sigma."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return constant(otherwise)
    try:
        return _from_card(entry)
    except InvalidInputError as error:
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card: {error}') from error


def _from_card(entry: Any) -> Schedules:
    keys = ("sigmas", "levels", "weights")
    if not isinstance(entry, Mapping) or set(entry) - {"strides"} != set(keys):
        raise InvalidInputError(f"expected an object with {', '.join(keys)}")
    sigmas, levels, weights = (entry[key] for key in keys)
    try:
        return Schedules(
            tuple(sigmas),
            tuple(tuple(x) for x in levels),
            tuple(tuple(x) for x in weights),
            tuple(entry.get("strides", ())),
        )
    except TypeError as error:
        raise InvalidInputError("sigmas and strides must be lists, levels and weights lists of lists") from error
