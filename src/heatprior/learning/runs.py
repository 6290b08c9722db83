"""A training run as a folder: it can be watched, interrupted at any moment, killed, and resumed.

It holds the settings and a fingerprint of the images (config.json), a row for each log entry (log.csv), everything
needed to resume (checkpoint.safetensors, whole or not at all), and the result (prior.safetensors). A row of the log is
on the disk before the checkpoint that counts it, and rows beyond the checkpoint are dropped when a run is resumed: so
the log has no gaps and no duplicates, and the result is the same bits as without a break.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, OutputFileError, TrainingError
from heatprior.files import discard_unfinished, hold_folder, replacing
from heatprior.kinds import KINDS
from heatprior.learning.training import PSNR_COLUMNS, LogEntry, Loop, StepReport, TrainingSettings
from heatprior.priors.protocol import StoredPrior

CONFIG, LOG, CHECKPOINT, PRIOR = "config.json", "log.csv", "checkpoint.safetensors", "prior.safetensors"
HEADER = "heatprior-run"
CHECKPOINT_SECONDS = 30.0
VALIDATION_COLUMNS = ("log_likelihood", *PSNR_COLUMNS)
Report = Callable[[StepReport | LogEntry], object]


@dataclass(frozen=True)
class RunSettings:
    """The contents of config.json: settings, images, validation images, and the digest of the training images.

    The places, and whether some images are held out for validation if there are no others, are those of `gather`.
    """

    training: TrainingSettings[StoredPrior]
    images: str
    validation: str | None
    digest: str
    hold_out: bool = True

    def to_json(self) -> str:
        """As indented JSON."""
        return json.dumps({"kind": self.training.kind} | asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunSettings:
        """The inverse of `to_json`."""
        values = json.loads(text)
        config = KINDS[values.pop("kind")].find("training")
        return cls(**{**values, "training": config(**values["training"])})


@dataclass(frozen=True)
class LogFile:
    """The log of a run: a CSV file with these columns."""

    path: Path
    columns: tuple[str, ...]

    def rows(self) -> list[dict[str, float]]:
        """All rows, NaN where there was no validation; a truncated row is skipped."""
        if not self.path.exists():
            return []
        rows = []
        with self.path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                try:
                    rows.append({name: float(row[name] or "nan") for name in self.columns})
                except (KeyError, ValueError, TypeError):
                    continue
        return rows

    def append(self, entry: LogEntry) -> None:
        """Add a row."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(self._cells(entry.row()))

    def truncate(self, step: int) -> None:
        """Drop the rows beyond `step`; creates the file if there is none."""
        rows = [row for row in self.rows() if row["step"] <= step]
        with replacing(self.path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self._cells(row) for row in rows)

    def last_validation(self) -> dict[str, float]:
        """The validation scores of the last row that has any."""
        for row in reversed(self.rows()):
            scores = {name: row[name] for name in VALIDATION_COLUMNS if np.isfinite(row.get(name, np.nan))}
            if scores:
                return scores
        return {}

    def _cells(self, row: Mapping[str, Any]) -> list[str]:
        """The values of a row as text, empty where unknown."""
        values = [row[name] for name in self.columns[1:]]
        return [str(int(row["step"])), *("" if x is None or np.isnan(x) else f"{x:.8g}" for x in values)]


class Run:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return (self.folder / CONFIG).is_file()

    def check_new(self, *, replace: bool) -> None:
        """Raise if no new run can begin in this folder."""
        folder = self.folder
        discard_unfinished(folder / CONFIG)  # of a process that was killed as it began
        if folder.exists() and not folder.is_dir():
            raise OutputFileError(f"cannot write {folder}: it is a file; give a folder for the run")
        if not folder.parent.is_dir():
            raise OutputFileError(f"cannot write {folder}: {folder.parent} does not exist; create the folder first")
        if self.exists() and not replace:
            raise OutputFileError(f"{folder} already holds a run; resume it, or give a new folder")
        if folder.is_dir() and any(folder.iterdir()) and not self._is_ours():
            raise OutputFileError(f"{folder} is not empty and holds no run; give a new folder")

    def _is_ours(self) -> bool:
        """Whether the settings in the folder are those of a run, and not a file that happens to have their name."""
        try:
            self.settings()
        except (TrainingError, OSError):
            return False
        return True

    def begin(self, settings: RunSettings) -> None:
        """Create the folder, or clear it of an older run, and write the settings."""
        with self._writing(CONFIG):
            self.folder.mkdir(exist_ok=True)
        with hold_folder(self.folder), self._writing(CONFIG):
            for name in (CHECKPOINT, LOG, PRIOR):  # the checkpoint first: without it the rest is useless
                (self.folder / name).unlink(missing_ok=True)
            with replacing(self.folder / CONFIG) as temporary:
                temporary.write_text(settings.to_json(), encoding="utf-8")

    def settings(self) -> RunSettings:
        """The settings of the run in this folder."""
        path = self.folder / CONFIG
        try:
            return RunSettings.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise TrainingError(f"{self.folder} holds no run to resume; start one") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise TrainingError(
                f"{path} is damaged or from another version of heatprior ({error}); start a new run"
            ) from error

    def check_unchanged(self, kind: str | None, asked: Mapping[str, Any]) -> None:
        """Raise if the run was started as another kind, or with other settings, than are asked for now."""
        begun = self.settings().training
        wanted = {"kind": begun.kind if kind is None else kind, **asked}
        for name, value in wanted.items():
            if getattr(begun, name) != value:
                raise InvalidInputError(
                    f"{self.folder} was started with {name} = {getattr(begun, name)} and cannot continue with {value}; "
                    "omit the setting, or start a new run"
                )

    def resume(self, loop: Loop) -> None:
        """Restore `loop` from the last checkpoint, if there is one, and truncate the log there."""
        for name in (CHECKPOINT, LOG, PRIOR, CONFIG):
            discard_unfinished(self.folder / name)  # a process was killed while it wrote this
        path = self.folder / CHECKPOINT
        if path.exists():
            loop.restore(_read_checkpoint(path, self.settings()))
        done = loop.training.done - loop.is_due()  # a row that is due is not there yet
        with self._writing(LOG):
            self.log().truncate(done)

    def train(
        self,
        loop: Loop,
        *,
        report: Report | None = None,
        stop: Callable[[], bool] = lambda: False,
        card: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> StoredPrior | None:
        """Train from the last checkpoint to the end and write the prior; if `stop()` is true, save and return None."""
        if not checkpoint_seconds >= 0.0:
            raise InvalidInputError(f"checkpoint_seconds is {checkpoint_seconds}; expected 0 or more")
        with hold_folder(self.folder):
            self.resume(loop)
            settings, log, saved = self.settings(), self.log(), time.monotonic()
            for event in loop.run():
                if isinstance(event, LogEntry):
                    with self._writing(LOG):
                        log.append(event)
                if report is not None:
                    report(event)
                stopping = stop() and not loop.is_finished()
                if stopping or time.monotonic() - saved > checkpoint_seconds:
                    self._save(loop, settings)
                    saved = time.monotonic()
                if stopping:
                    return None
            self._save(loop, settings)
            validated = {name: round(value, 2) for name, value in log.last_validation().items()}
            prior = loop.training.prior({**(card or {}), **({"validation": validated} if validated else {})})
            with self._writing(PRIOR):
                prior.save(self.folder / PRIOR)
            return prior

    def log(self) -> LogFile:
        """The log, with the columns of this kind of training."""
        return LogFile(self.folder / LOG, self.settings().training.log_columns)

    def _save(self, loop: Loop, settings: RunSettings) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in loop.state().items()}
        with self._writing(CHECKPOINT), replacing(self.folder / CHECKPOINT) as temporary:
            temporary.write_bytes(save(arrays, metadata={HEADER: settings.to_json()}))

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Turn an error of the disk into one that says how to continue."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ if isinstance(error, OutputFileError) else error
            reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
            raise OutputFileError(
                f"cannot write {self.folder / name}: {reason}; free disk space, then resume the run"
            ) from error


def _read_checkpoint(path: Path, settings: RunSettings) -> dict[str, FloatArray]:
    try:
        with safe_open(str(path), framework="numpy") as file:
            written = RunSettings.from_json((file.metadata() or {})[HEADER])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise TrainingError(f"{path} is damaged or not a checkpoint ({error}); start a new run") from error
    if written != settings:
        raise TrainingError(f"{path} belongs to a run with other settings than {CONFIG}; start a new run")
    return state
