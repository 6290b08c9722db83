"""A training run as a folder: it can be watched, interrupted at any moment, killed, and resumed.

    config.json               the settings, and a fingerprint of the images
    log.csv                   one row for each log entry
    checkpoint.safetensors    everything needed to resume, written whole or not at all
    prior.safetensors         the result

A row of the log is on the disk before the checkpoint that counts it, and rows beyond the checkpoint are dropped when a
run is resumed: so the log has no gaps and no duplicates, and the result is the same bits as without a break.
"""

from __future__ import annotations

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
from heatprior.files import discard_unfinished, replacing
from heatprior.kinds import KINDS
from heatprior.learning.logs import LogEntry, LogFile
from heatprior.learning.loop import Loop
from heatprior.learning.settings import TrainingSettings
from heatprior.learning.steps import StepReport
from heatprior.priors.stored import StoredPrior

CONFIG, LOG, CHECKPOINT, PRIOR = "config.json", "log.csv", "checkpoint.safetensors", "prior.safetensors"
FIRST_KIND = "patch"  # of runs from the time when there was only one kind
HEADER = "heatprior-run"
CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True)
class RunSettings:
    """What config.json holds: how to train, on which images, validated on which, and the digest of the training images.

    The places, and whether some images are held out for validation if there are no others, are those of `gather`.
    """

    training: TrainingSettings[StoredPrior]
    images: str
    validation: str | None
    data: str | None
    digest: str
    hold_out: bool = True

    def to_json(self) -> str:
        """As text that people can read."""
        return json.dumps({"kind": self.training.kind} | asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunSettings:
        """The inverse of `to_json`."""
        values = json.loads(text)
        config = KINDS[values.pop("kind", FIRST_KIND)].training_config()
        return cls(**{**values, "training": config(**values["training"])})


class Run:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / CONFIG).is_file()

    def check_new(self, *, replace: bool) -> None:
        """Refuse at once a folder in which no new run can begin."""
        folder = self.folder
        discard_unfinished(folder / CONFIG)  # of a process that was killed as it began
        if folder.exists() and not folder.is_dir():
            raise OutputFileError(f"cannot write {folder}: it is a file; give the name of a folder for the run")
        if not folder.parent.is_dir():
            raise OutputFileError(f"cannot write {folder}: {folder.parent} does not exist; create the folder first")
        if self.exists() and not replace:
            raise OutputFileError(f"{folder} holds a run already; resume it, or give the name of a new folder")
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
        """The settings of the run in this folder."""
        path = self.folder / CONFIG
        try:
            return RunSettings.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise TrainingError(f"{self.folder} holds no run to resume; begin one") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise TrainingError(
                f"{path} is damaged or from another version of heatprior ({error}); begin another run"
            ) from error

    def check_unchanged(self, kind: str | None, asked: Mapping[str, Any]) -> None:
        """Refuse to resume a run that was begun as another kind or with other settings than are asked for now."""
        begun = self.settings().training
        wanted = {"kind": begun.kind if kind is None else kind, **asked}
        for name, value in wanted.items():
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
        with self._writing(LOG):
            self.log().cut_after(done)

    def train(
        self,
        loop: Loop,
        *,
        report: Callable[[StepReport | LogEntry], object] | None = None,
        stop: Callable[[], bool] = lambda: False,
        card: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> StoredPrior | None:
        """Go on from the last checkpoint to the end and write the prior; save and return None when `stop` says so."""
        if not checkpoint_seconds >= 0.0:
            raise InvalidInputError(f"{checkpoint_seconds} seconds between checkpoints; expected 0 or more")
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
        """A disk that is full or gone, as an error that says how to go on."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ if isinstance(error, OutputFileError) else error
            reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
            raise OutputFileError(
                f"cannot write {self.folder / name}: {reason}; make room, then resume the run"
            ) from error


def _read_checkpoint(path: Path, settings: RunSettings) -> dict[str, FloatArray]:
    try:
        with safe_open(str(path), framework="numpy") as file:
            written = RunSettings.from_json((file.metadata() or {})[HEADER])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise TrainingError(f"{path} is damaged or not a checkpoint ({error}); begin another run") from error
    if written != settings:
        raise TrainingError(f"{path} belongs to a run with other settings than {CONFIG}; begin another run")
    return state
