"""`hp.train`: from images to a prior in one call, in a run folder if wanted."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from heatprior.errors import InvalidInputError
from heatprior.learning.material import Images, gather
from heatprior.learning.patch_training import TrainingConfig
from heatprior.learning.runs import Report, begin_run, interruptible, resume_run
from heatprior.learning.training import Loop, TrainingSettings
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import StoredPrior

PriorT = TypeVar("PriorT", bound=StoredPrior)


@overload
def train(
    images: Images,
    config: None = None,
    *,
    validation: Images | None = None,
    report: Report | None = None,
    run: str | PathLike[str] | None = None,
) -> PatchPrior: ...


@overload
def train(
    images: Images | None,
    config: TrainingSettings[PriorT],
    *,
    validation: Images | None = None,
    report: Report | None = None,
    run: str | PathLike[str] | None = None,
    resume: bool = False,
) -> PriorT: ...


@overload
def train(
    images: Images | None = None,
    config: None = None,
    *,
    validation: Images | None = None,
    report: Report | None = None,
    run: str | PathLike[str],
    resume: Literal[True],
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
