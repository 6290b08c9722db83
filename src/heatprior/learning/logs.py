"""The log of a training: one row for each interval of its steps, and the CSV file that keeps them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatprior.data.trials import LEVELS
from heatprior.files import replacing

PSNR_COLUMNS = tuple(f"psnr{level}" for level in LEVELS)
COLUMNS = ("step", "loss", *PSNR_COLUMNS, "steps_per_second", "seconds")
LIKELIHOOD_COLUMNS = (*COLUMNS[:2], "log_likelihood", *COLUMNS[2:])
VALIDATION_COLUMNS = ("log_likelihood", *PSNR_COLUMNS)


@dataclass(frozen=True)
class LogEntry:
    """A summary of the steps since the last entry: mean loss, speed, and PSNR for each of LEVELS, or None.

    `seconds` counts from the start of the run, interruptions left out. `log_likelihood` is the mean over patches of the
    validation images, for kinds of priors whose training maximises it.
    """

    step: int
    loss: float
    psnr: tuple[float, ...] | None
    steps_per_second: float
    seconds: float
    log_likelihood: float | None = None

    def row(self) -> dict[str, float | None]:
        """The entry with one value for each column."""
        psnr = self.psnr or (None,) * len(LEVELS)
        return asdict(self) | dict(zip(PSNR_COLUMNS, psnr, strict=True))


@dataclass(frozen=True)
class LogFile:
    """A CSV file with these columns."""

    path: Path
    columns: tuple[str, ...]

    def rows(self) -> list[dict[str, float]]:
        """All rows, NaN where there was no validation; a row that was cut short is left out."""
        if not self.path.exists():
            return []
        rows = []
        with self.path.open(newline="") as file:
            for row in csv.DictReader(file):
                try:
                    rows.append({name: float(row[name] or "nan") for name in self.columns})
                except (KeyError, ValueError, TypeError):
                    continue
        return rows

    def append(self, entry: LogEntry) -> None:
        """One more row."""
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(self._cells(entry.row()))

    def cut_after(self, step: int) -> None:
        """Drop the rows beyond `step`; a file that is not there is begun."""
        rows = [row for row in self.rows() if row["step"] <= step]
        with replacing(self.path) as temporary, temporary.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self._cells(row) for row in rows)

    def last_validation(self) -> dict[str, float]:
        """The validated values of the last row that has any."""
        for row in reversed(self.rows()):
            validated = {name: row[name] for name in VALIDATION_COLUMNS if np.isfinite(row.get(name, np.nan))}
            if validated:
                return validated
        return {}

    def _cells(self, row: Mapping[str, Any]) -> list[str]:
        """The values of a row as text; empty for those that are not known."""
        values = [row[name] for name in self.columns[1:]]
        return [str(int(row["step"])), *("" if x is None or np.isnan(x) else f"{x:.8g}" for x in values)]
