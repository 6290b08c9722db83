"""Tables over noise levels, as the card of a prior holds them: linear in log sigma between levels, constant beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError

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
        place, nodes = np.log(np.maximum(sigma, LEAST_SIGMA)), np.log(self.sigmas)
        return tuple(np.asarray(np.interp(place, nodes, column)) for column in self.columns)


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
