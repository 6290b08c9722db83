"""What a training needs, gathered from folders or arrays: patches to learn from, images to validate on."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.data import bsds500
from heatprior.data.datasets import ImageSet, PatchSource, SkippedFile, folder_files, read_images
from heatprior.errors import InvalidInputError
from heatprior.images import to_grey
from heatprior.learning.settings import TrainingSettings
from heatprior.learning.validation import MOST_IMAGES, Validation, held_out
from heatprior.priors.stored import StoredPrior

BSDS500_WORD = "bsds500"  # stands for the paper's training set, and for the 32 images of its validation
Images = str | PathLike[str] | Sequence[NDArray[Any]]


class Material(NamedTuple):
    """Patches, validation (None if there are no images for it), files not used, and a description of the images."""

    source: PatchSource
    validation: Validation | None
    skipped: list[SkippedFile]
    description: str


def is_bsds500(images: Images) -> bool:
    """Whether images are given by the word for BSDS500; a folder of that name can be given as a path."""
    return isinstance(images, str) and images == BSDS500_WORD


def gather(
    config: TrainingSettings[StoredPrior],
    images: Images,
    validation: Images | None = None,
    data: str | None = None,
    *,
    hold_out: bool = True,
) -> Material:
    """Take images from a folder, from BSDS500 for the word `bsds500`, or as arrays, grey or colour.

    Validation is on other images or, if `hold_out`, on one in ten of these, which are then not learnt from. `data` is
    where BSDS500 is looked for (see `heatprior.data.bsds500`).
    """
    if validation is None and is_bsds500(images):
        validation = BSDS500_WORD
    found = _read(images, config, data)
    to_learn, skipped = found.images, list(found.skipped)
    checks = None
    if validation is not None:
        kept = _read(validation, config, data, for_validation=True)
        checks = Validation(kept.images, config.size, config.noise_of_images)
        skipped += kept.skipped
    elif hold_out and (spared := set(held_out(len(to_learn)))):
        checks = Validation([to_learn[i] for i in sorted(spared)], config.size, config.noise_of_images)
        to_learn = [image for i, image in enumerate(to_learn) if i not in spared]
    return Material(_patches(to_learn, config), checks, skipped, _described(images))


def _read(
    images: Images, config: TrainingSettings[StoredPrior], data: str | None, *, for_validation: bool = False
) -> ImageSet:
    if not isinstance(images, str | PathLike):
        return ImageSet([to_grey(np.asarray(image)) for image in images], [], [])
    if not str(images):
        raise InvalidInputError("the name of the folder of images is empty; give a folder")
    if is_bsds500(images):
        place = Path(data) if data else None
        files = bsds500.validation(place) if for_validation else bsds500.training(place)
    else:
        files = folder_files(Path(images))
    return read_images(files[:MOST_IMAGES] if for_validation else files, config.size, config.noise_of_images)


def _patches(images: Sequence[NDArray[Any]], config: TrainingSettings[StoredPrior]) -> PatchSource:
    """The source of patches; images that do not make up one batch are refused."""
    source = PatchSource(images, config.size, config.noise_of_images)
    if source.positions < config.batch:
        raise InvalidInputError(
            f"{source.images} images hold only {source.positions} patches of {config.size}×{config.size} pixels, fewer "
            f"than one batch of {config.batch}; give more or larger images, or a smaller batch"
        )
    return source


def _described(images: Images) -> str:
    if not isinstance(images, str | PathLike):
        return f"{len(images)} images from memory"
    return "BSDS500, train and test" if is_bsds500(images) else f"the folder {Path(images).resolve().name}"
