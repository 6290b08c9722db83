"""The images of a training, gathered from folders or arrays: patches to learn from, images to validate on."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.data.datasets import ImageSet, PatchSource, folder_files, read_images
from heatprior.errors import InvalidInputError
from heatprior.images import to_grey
from heatprior.learning.training import MOST_IMAGES, TrainingSettings, Validation, choose_held_out
from heatprior.priors.protocol import StoredPrior

Images = str | PathLike[str] | Sequence[NDArray[Any]]


class Material(NamedTuple):
    """Patches, validation (None without images for it), files that were skipped, and a description of the images."""

    source: PatchSource
    validation: Validation | None
    skipped: list[str]
    description: str


def gather(
    config: TrainingSettings[StoredPrior], images: Images, validation: Images | None = None, *, hold_out: bool = True
) -> Material:
    """Read training images from a folder or from arrays, grey or colour.

    Validation is on other images or, if `hold_out`, on one in ten of these, which are then not trained on.
    """
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
    return Material(_patches(to_learn, config), checks, skipped, _describe(images))


def _read(images: Images, config: TrainingSettings[StoredPrior], *, for_validation: bool = False) -> ImageSet:
    if not isinstance(images, str | PathLike):
        return ImageSet([to_grey(np.asarray(image)) for image in images], [], [])
    if not str(images):
        raise InvalidInputError("the folder of images is an empty string; give a folder")
    files = folder_files(Path(images))
    return read_images(files[:MOST_IMAGES] if for_validation else files, config.size, config.noise_of_images)


def _patches(images: Sequence[NDArray[Any]], config: TrainingSettings[StoredPrior]) -> PatchSource:
    """The source of patches; raises if the images hold less than one batch."""
    source = PatchSource(images, config.size, config.noise_of_images)
    if source.positions < config.batch:
        raise InvalidInputError(
            f"{source.images} images hold only {source.positions} patches of {config.size}×{config.size} pixels, fewer "
            f"than one batch of {config.batch}; give more or larger images, or a smaller batch"
        )
    return source


def _describe(images: Images) -> str:
    if not isinstance(images, str | PathLike):
        return f"{len(images)} images from memory"
    return f"the folder {Path(images).resolve().name}"
