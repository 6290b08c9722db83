"""What a training needs, gathered from folders: patches to learn from, images to validate on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from heatprior.data import bsds500
from heatprior.data.datasets import PatchSource, SkippedFile, folder_files, read_images
from heatprior.learning.kinds import AnyConfig, noise_of_images
from heatprior.learning.loop import patch_source
from heatprior.learning.validation import MOST_IMAGES, Validation, held_out

BSDS500 = "bsds500"  # stands for the paper's training set, and for the 32 images of its validation


class Material(NamedTuple):
    """Patches, validation (none if there are too few images to spare any), files not used, and a word on the images."""

    source: PatchSource
    validation: Validation | None
    skipped: list[SkippedFile]
    description: str


def gather(config: AnyConfig, images: str, validation: str | None = None, data: str | None = None) -> Material:
    """Read the images of a folder, or of BSDS500 for the word `bsds500`; validate on others, or on some held out.

    `data` is where BSDS500 is looked for (see `heatprior.data.bsds500`).
    """
    place = Path(data) if data else None
    if images == BSDS500:
        files, description = bsds500.training(place), "BSDS500, train and test"
        validation = validation or BSDS500
    else:
        files, description = folder_files(Path(images)), f"the folder {Path(images).resolve().name}"
    sigma = noise_of_images(config)
    found = read_images(files, config.size, sigma)
    to_learn, skipped = found.images, list(found.skipped)
    checks = None
    if validation:
        others = bsds500.validation(place) if validation == BSDS500 else folder_files(Path(validation))
        kept = read_images(others[:MOST_IMAGES], config.size, sigma)
        checks, skipped = Validation(kept.images, config.size, sigma), skipped + kept.skipped
    elif spared := set(held_out(len(to_learn))):
        checks = Validation([to_learn[i] for i in sorted(spared)], config.size, sigma)
        to_learn = [image for i, image in enumerate(to_learn) if i not in spared]
    return Material(patch_source(to_learn, config), checks, skipped, description)
