"""`hp.train`: from images to a prior in one call, in a run folder if wanted; runs begun, resumed and interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from heatprior.data.datasets import ImageSet, PatchSource, folder_files, read_images
from heatprior.errors import InvalidInputError, TrainingError
from heatprior.files import keep_apart
from heatprior.images import to_grey
from heatprior.learning.patch_training import TrainingConfig
from heatprior.learning.runs import Report, Run, RunSettings
from heatprior.learning.training import MOST_IMAGES, Loop, TrainingSettings, Validation, choose_held_out
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import StoredPrior
from heatprior.version import __version__

IN_MEMORY = "(in memory)"  # the place of images that were given as arrays
PriorT = TypeVar("PriorT", bound=StoredPrior)
Images = str | PathLike[str] | Sequence[NDArray[Any]]


class Options(TypedDict, total=False):
    """What every call may name, for type checkers."""

    validation: Images | None
    report: Report | None
    run: str | PathLike[str] | None


@overload
def train(images: Images, config: None = None, **options: Unpack[Options]) -> PatchPrior: ...
@overload
def train(
    images: Images | None, config: TrainingSettings[PriorT], *, resume: bool = False, **options: Unpack[Options]
) -> PriorT: ...
@overload
def train(
    images: Images | None = None, config: None = None, *, resume: Literal[True], **options: Unpack[Options]
) -> StoredPrior: ...
def train(
    images: Images | None = None,
    config: TrainingSettings[Any] | None = None,
    *,
    validation: Images | None = None,
    report: Report | None = None,
    run: str | PathLike[str] | None = None,
    resume: bool = False,
) -> Any:
    """Train a prior on images.

    Parameters
    ----------
    images : path or sequence of array_like, optional
        Training images: a folder, or arrays, grey or colour; uint8, uint16, or floats in [0, 1].
    config : TrainingConfig or MixtureConfig, optional
        Settings. A `TrainingConfig` (the default) gives a `PatchPrior`, a `MixtureConfig` a `GaussianMixturePrior`.
    validation : path or sequence of array_like, optional
        Images on which PSNR is measured during training.
    report : callable, optional
        Called with a `StepReport` after every step and with a `LogEntry` after every interval; the entries hold the
        PSNR on the `validation` images, if given.
    run : path, optional
        A new folder to which settings, log, checkpoints and the prior are written, as by the command
        `heatprior train`. Ctrl-C then saves a checkpoint before KeyboardInterrupt is raised.
    resume : bool
        Continue from the last checkpoint of `run`, to the same bits. Images and config may be omitted; if given,
        they must be the same.

    Returns
    -------
    PatchPrior or GaussianMixturePrior
        The trained prior, with a card that says how it was trained.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> images = [np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)]
    >>> prior = hp.train(images, hp.TrainingConfig(size=3, steps=5, batch=100))
    >>> prior.patch_shape
    (3, 3)
    """
    if run is not None and resume:
        kind, asked = (config.kind, asdict(config)) if config else (None, {})
        session = resume_run(Path(run), images, validation, kind=kind, asked=asked)
    elif resume or images is None:
        raise InvalidInputError("no images to train on; give a folder or arrays, or resume a run folder")
    elif run is not None:
        session = begin_run(Path(run), config or TrainingConfig(), images, validation, hold_out=False)
    else:
        config = config or TrainingConfig()
        material = gather(config, images, validation, hold_out=False)
        loop = Loop(config.training(material.source), material.validation)
        for event in loop.run():
            if report is not None:
                report(event)
        return loop.training.prior()
    with interruptible() as stop:
        prior = session.run.train(session.loop, report=report, stop=stop, card=session.card)
    if prior is None:
        raise KeyboardInterrupt
    return prior


class Material(NamedTuple):
    """Patches, validation (None without images for it), files that were skipped, and a description of the images."""

    source: PatchSource
    validation: Validation | None
    skipped: list[str]
    description: str


def gather(
    config: TrainingSettings[StoredPrior], images: Images, validation: Images | None = None, *, hold_out: bool = True
) -> Material:
    """Read training images, and those to validate on: others or, if `hold_out`, one in ten, not trained on then."""
    found = _read(images, config)
    to_learn, skipped = found.images, list(found.skipped)
    checks = None
    if validation is not None:
        kept = _read(validation, config, for_validation=True)
        checks = Validation(kept.images, config.size, config.noise_of_images)
        skipped += kept.skipped
    elif hold_out and (spared := set(choose_held_out(len(to_learn)))):
        checks = Validation([to_learn[i] for i in sorted(spared)], config.size, config.noise_of_images)
        to_learn = [image for i, image in enumerate(to_learn) if i not in spared]
    source = PatchSource(to_learn, config.size, config.noise_of_images)
    if source.positions < config.batch:
        raise InvalidInputError(
            f"{source.images} images hold only {source.positions} patches of {config.size}×{config.size} pixels, fewer "
            f"than one batch of {config.batch}; give more or larger images, or a smaller batch"
        )
    if isinstance(images, str | PathLike):
        return Material(source, checks, skipped, f"the folder {Path(images).resolve().name}")
    return Material(source, checks, skipped, f"{len(images)} images from memory")


def _read(images: Images, config: TrainingSettings[StoredPrior], *, for_validation: bool = False) -> ImageSet:
    if not isinstance(images, str | PathLike):
        return ImageSet([to_grey(np.asarray(image)) for image in images], [], [])
    if not str(images):
        raise InvalidInputError("the folder of images is an empty string; give a folder")
    files = folder_files(Path(images))
    return read_images(files[:MOST_IMAGES] if for_validation else files, config.size, config.noise_of_images)


@dataclass(frozen=True)
class Session:
    """A run in progress: its folder, its loop, and the images that it learns from."""

    run: Run
    loop: Loop
    material: Material

    @property
    def card(self) -> dict[str, str]:
        """The provenance entries of the card of the prior."""
        return {
            "name": self.run.folder.resolve().name,
            "made": f"by heatprior train, version {__version__}",
            "trained on": self.material.description,
        }


def begin_run(
    folder: Path,
    config: TrainingSettings[StoredPrior],
    images: Images,
    validation: Images | None = None,
    *,
    hold_out: bool = True,
    replace: bool = False,
) -> Session:
    """Start a new run in `folder`; an existing run is an error, or is deleted with `replace`."""
    _keep_apart(folder, images, validation)
    run = Run(folder)
    run.check_new(replace=replace)
    material = gather(config, images, validation, hold_out=hold_out)
    place, other = _place(images), None if validation is None else _place(validation)
    run.begin(RunSettings(config, place, other, material.source.digest, hold_out))
    return Session(run, Loop(config.training(material.source), material.validation), material)


def resume_run(
    folder: Path,
    images: Images | None = None,
    validation: Images | None = None,
    *,
    kind: str | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Session:
    """Resume the run in `folder`, with its own settings and images.

    Images may be given again, if they have moved or were arrays, but must be the same ones. `kind` and `asked` are what
    the settings are expected to be: a run that was started with others is an error.
    """
    run = Run(folder)
    run.check_unchanged(kind, asked or {})
    settings = run.settings()
    if images is None:
        images = _known(settings.images, "images", folder)
    if validation is None and settings.validation is not None:
        validation = _known(settings.validation, "validation images", folder)
    _keep_apart(folder, images, validation)
    material = gather(settings.training, images, validation, hold_out=settings.hold_out)
    if material.source.digest != settings.digest:
        raise TrainingError(f"the images differ from those with which {folder} was started; start a new run with them")
    return Session(run, Loop(settings.training.training(material.source), material.validation), material)


def _keep_apart(folder: Path, *given: Images | None) -> None:
    """Refuse a run folder that is one of the folders with images, contains one or lies within one."""
    places = [images for images in given if isinstance(images, str | PathLike)]
    keep_apart([folder], [Path(place) for place in places])


def _place(images: Images) -> str:
    """The absolute place of images, so that a run can be resumed from any working directory."""
    return str(Path(images).resolve()) if isinstance(images, str | PathLike) else IN_MEMORY


def _known(place: str, what: str, folder: Path) -> str:
    if place == IN_MEMORY:
        raise TrainingError(f"the {what} of {folder} were arrays and are not stored; give them again")
    return place


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a question: yields a function that says whether SIGINT or SIGTERM was received.

    A second signal has its default effect. Only the main thread can receive signals; in others the answer is no.
    """
    received: list[int] = []
    if current_thread() is not main_thread():
        yield lambda: False
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: object) -> None:
        received.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(received)
    finally:
        restore()
