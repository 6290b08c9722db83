"""What an item works with: the priors, shipped or retrained, the images of the paper, and a progress callback."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, read_images
from heatprior.priors.patch import PatchPrior
from paper import bsds500, load_patch_prior, prior_file

TRAINING, BSD68 = "training", "bsd68"
SMALLEST = 15  # pixels of a side: the largest patches


@dataclass(eq=False)
class Bench:
    """`data` is where BSDS500 is looked for; `priors` are the files of priors that stand in for shipped ones."""

    data: Path | None = None
    quick: bool = False
    priors: Mapping[str, Path] = field(default_factory=dict)
    progress: Callable[[float], None] = lambda _: None  # the part of the item that is done, 0 to 1

    def part(self, number: int, count: int) -> Bench:
        """For one of so many parts of an item, whose progress is that of the part; it shares the images."""
        self.training_images  # noqa: B018 (read once for all parts)
        own = copy(self)
        own.progress = lambda done: self.progress((number + done) / count)
        return own

    def path(self, name: str) -> Path:
        """The file of a prior."""
        return self.priors.get(name, prior_file(name))

    def prior(self, name: str) -> PatchPrior:
        """A patch prior by its name."""
        return load_patch_prior(str(self.path(name)))

    def files(self, images: str) -> list[Path]:
        """The files of a set of images, in order."""
        return bsds500.training(self.data) if images == TRAINING else bsds500.bsd68(self.data)

    @cached_property
    def training_images(self) -> list[NDArray[Any]]:
        """The images that the priors were trained on: f_X of the paper is the distribution of their patches."""
        return read_images(self.files(TRAINING), SMALLEST).images

    def clean_patches(self, size: int, count: int, seed: int) -> FloatArray:
        """Patches of the training images as columns, (size², count), turned and mirrored at random."""
        return PatchSource(self.training_images, size).draw(count, np.random.default_rng(seed))

    def fingerprint(self, priors: Sequence[str], images: Sequence[str]) -> dict[str, str]:
        """Digests of the priors' files, and of names and sizes of the images: what a result depends on."""
        of_priors = {name: _digest(self.path(name).read_bytes()) for name in priors}
        of_images = {
            name: _digest("\n".join(f"{file.name} {file.stat().st_size}" for file in self.files(name)).encode())
            for name in images
        }
        return of_priors | of_images


def _digest(contents: bytes) -> str:
    return hashlib.blake2b(contents, digest_size=8).hexdigest()
