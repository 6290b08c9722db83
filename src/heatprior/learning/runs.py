"""A training run as a folder: it can be watched, interrupted at any moment, killed, and taken up again.

    config.json               the settings, and a fingerprint of the images
    log.csv                   one line for each record
    checkpoint.safetensors    everything needed to go on, written whole or not at all
    prior.safetensors         the result

A row of the log is on the disk before the checkpoint that counts it, and rows beyond the checkpoint are dropped when a
run is taken up again: so the log has no gaps and no duplicates, and the result is the same bits as without a break.
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
from safetensors.numpy import save_file

from heatprior.arrays import FloatArray
from heatprior.data.trials import LEVELS
from heatprior.errors import InvalidInputError, OutputFileError, TrainingError
from heatprior.files import replacing
from heatprior.learning.kinds import CONFIGS, AnyConfig, kind_of
from heatprior.learning.loop import Loop, Record
from heatprior.learning.mixture_training import MixtureConfig
from heatprior.learning.steps import Progress
from heatprior.priors import patch
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior

CONFIG, LOG, CHECKPOINT, PRIOR = "config.json", "log.csv", "checkpoint.safetensors", "prior.safetensors"
PSNR_COLUMNS = tuple(f"psnr{level}" for level in LEVELS)
COLUMNS = ("step", "loss", *PSNR_COLUMNS, "steps_per_second", "seconds")
MIXTURE_COLUMNS = (*COLUMNS[:2], "log_likelihood", *COLUMNS[2:])
HEADER = "heatprior-run"
CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True)
class RunSettings:
    """What config.json holds: how to train, on which images, validated on which, and the digest of the training images.

    The places are those of `gather`.
    """

    training: AnyConfig
    images: str
    validation: str | None
    data: str | None
    digest: str

    def to_json(self) -> str:
        """As text that people can read."""
        return json.dumps({"kind": kind_of(self.training)} | asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunSettings:
        """The inverse of `to_json`."""
        values = json.loads(text)
        config = CONFIGS[values.pop("kind", patch.KIND)]  # once there was only one
        return cls(**{**values, "training": config(**values["training"])})


class Run:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / CONFIG).is_file()

    def check_new(self, *, force: bool) -> None:
        """Refuse at once a folder in which no new run can begin."""
        folder = self.folder
        if folder.exists() and not folder.is_dir():
            raise OutputFileError(f"cannot write {folder}: it is a file; give the name of a folder for the run")
        if not folder.parent.is_dir():
            raise OutputFileError(f"cannot write {folder}: {folder.parent} does not exist; create the folder first")
        if self.exists() and not force:
            raise OutputFileError(f"{folder} holds a run already; add --resume to go on, or --force to begin anew")
        if folder.is_dir() and any(folder.iterdir()) and not self.exists():
            raise OutputFileError(f"{folder} holds other things than a run; give the name of a new folder")

    def begin(self, settings: RunSettings) -> None:
        """Make the folder, or empty it of an older run, and write the settings."""
        with self._writing(CONFIG):
            self.folder.mkdir(exist_ok=True)
            for name in (CHECKPOINT, LOG, PRIOR):  # the checkpoint first: without it the rest is of no use
                (self.folder / name).unlink(missing_ok=True)
            with replacing(self.folder / CONFIG) as temporary:
                temporary.write_text(settings.to_json(), encoding="utf-8")

    def settings(self) -> RunSettings:
        """The settings of the run that stands here."""
        path = self.folder / CONFIG
        try:
            return RunSettings.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise TrainingError(f"{self.folder} holds no run; leave out --resume to begin one") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TrainingError(
                f"{path} is damaged or from another version of heatprior ({error}); begin anew with --force"
            ) from error

    def check_unchanged(self, asked: Mapping[str, Any]) -> None:
        """Refuse to go on with a run that was begun with other settings than are asked for now."""
        begun = self.settings().training
        for name, value in asked.items():
            if getattr(begun, name) != value:
                raise InvalidInputError(
                    f"{self.folder} was begun with {name} = {getattr(begun, name)} and cannot go on with {value}; "
                    "leave that out, or begin another run"
                )

    def resume(self, loop: Loop) -> None:
        """Bring `loop` to where the last checkpoint was, or leave it at its start, and cut the log there."""
        for unfinished in self.folder.glob(".*-*"):
            if unfinished.name.startswith((".checkpoint-", ".log-", ".prior-", ".config-")):
                unfinished.unlink(missing_ok=True)  # a process was killed while it wrote this
        path = self.folder / CHECKPOINT
        if path.exists():
            loop.restore(_read_checkpoint(path, self.settings()))
        done = loop.training.done - loop.is_due()  # a row that is still to come is not there yet
        rows, columns = [row for row in self.log() if row["step"] <= done], self._columns()
        with self._writing(LOG), replacing(self.folder / LOG) as temporary, temporary.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(_cells(row, columns) for row in rows)

    def train(
        self,
        loop: Loop,
        *,
        report: Callable[[Progress | Record], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        card: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> PatchPrior | GaussianMixturePrior | None:
        """Go on from the last checkpoint to the end and write the prior; save and return None when `stop` says so."""
        self.resume(loop)
        settings, saved = self.settings(), time.monotonic()
        for event in loop.run():
            if isinstance(event, Record):
                self._append(event)
            if report is not None:
                report(event)
            stopping = stop() and not loop.is_finished()
            if stopping or time.monotonic() - saved > checkpoint_seconds:
                self._save(loop, settings)
                saved = time.monotonic()
            if stopping:
                return None
        self._save(loop, settings)
        prior = loop.training.prior({**(card or {}), **self._validation()})
        with self._writing(PRIOR):
            prior.save(self.folder / PRIOR)
        return prior

    def log(self) -> list[dict[str, float]]:
        """The rows of the log, NaN where there was no validation; a row that was cut short is left out."""
        path = self.folder / LOG
        if not path.exists():
            return []
        rows, columns = [], self._columns()
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                try:
                    rows.append({name: float(row[name] or "nan") for name in columns})
                except (KeyError, ValueError, TypeError):
                    continue
        return rows

    def _validation(self) -> dict[str, Any]:
        """The last validation, from the log, for the card."""
        for row in reversed(self.log()):
            validated = [name for name in ("log_likelihood", *PSNR_COLUMNS) if np.isfinite(row.get(name, np.nan))]
            if validated:
                return {"validation": {name: round(row[name], 2) for name in validated}}
        return {}

    def _append(self, record: Record) -> None:
        psnr = dict(zip(PSNR_COLUMNS, record.psnr or (np.nan,) * len(LEVELS), strict=True))
        cells = _cells(asdict(record) | psnr, self._columns())
        with self._writing(LOG), (self.folder / LOG).open("a", newline="") as file:
            csv.writer(file).writerow(cells)

    def _columns(self) -> tuple[str, ...]:
        return MIXTURE_COLUMNS if isinstance(self.settings().training, MixtureConfig) else COLUMNS

    def _save(self, loop: Loop, settings: RunSettings) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in loop.state().items()}
        with self._writing(CHECKPOINT), replacing(self.folder / CHECKPOINT) as temporary:
            try:
                save_file(arrays, str(temporary), metadata={HEADER: settings.to_json()})
            except SafetensorError as error:  # its word for a full disk
                raise OSError(str(error)) from error

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """A disk that is full or gone, as an error that says how to go on."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ if isinstance(error, OutputFileError) else error
            reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
            raise OutputFileError(
                f"cannot write {self.folder / name}: {reason}; make room, then go on with --resume"
            ) from error


def _read_checkpoint(path: Path, settings: RunSettings) -> dict[str, FloatArray]:
    try:
        with safe_open(str(path), framework="numpy") as file:
            written = RunSettings.from_json((file.metadata() or {})[HEADER])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TrainingError(f"{path} is damaged or no checkpoint ({error}); begin anew with --force") from error
    if written != settings:
        raise TrainingError(f"{path} belongs to a run with other settings than {CONFIG}; begin anew with --force")
    return state


def _cells(row: Mapping[str, Any], columns: tuple[str, ...]) -> list[str]:
    """The numbers of a row as the log has them; empty for those that are not known."""
    values = [row[name] for name in columns[1:]]
    return [str(int(row["step"])), *("" if x is None or np.isnan(x) else f"{x:.8g}" for x in values)]
