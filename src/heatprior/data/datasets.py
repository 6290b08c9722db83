"""Training patches: uniform over all positions of all images, drawn on demand, never all in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import ImageFileError, InvalidInputError
from heatprior.images import SUFFIXES, image_files, read_grey
from heatprior.kernels.patches import cut_patches

MOST_DEVIATIONS = 10.0  # by which noisy pixels may leave [0, 1]: Gaussian noise does not reach that far


class ImageSet(NamedTuple):
    """Grey images, the files that they come from, and of the files that could not be used why, by name."""

    images: list[NDArray[Any]]
    files: list[Path]
    skipped: list[str]


def folder_files(folder: Path) -> list[Path]:
    """List the image files in `folder` and below, sorted; there must be at least one."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InvalidInputError(f"{folder} {what}; give a folder with images ({', '.join(SUFFIXES)})")
    files = image_files(folder)
    if not files:
        raise InvalidInputError(f"{folder} holds no images; give a folder with files in {', '.join(SUFFIXES)}")
    return files


def read_images(files: Sequence[Path], size: int, sigma: float = 0.0) -> ImageSet:
    """The images of these files that can be read and hold a patch of `size`×`size`; the others are listed.

    Floats beyond [0, 1], but for noise of `sigma`, are skipped too; if most are so, all are refused: other units.
    """
    usable = ImageSet([], [], [])
    beyond: list[InvalidInputError] = []
    for path in files:
        try:
            image = read_grey(path)
            if min(image.shape) < size:
                raise ImageFileError(f"{path} is too small: {image.shape[1]}×{image.shape[0]} pixels")
            _check_range(image, str(path), sigma)
            usable.images.append(image)
            usable.files.append(path)
        except ImageFileError as error:
            usable.skipped.append(str(error))
        except InvalidInputError as error:
            beyond.append(error)
            usable.skipped.append(str(error))
    if len(beyond) > len(usable.images):
        raise beyond[0]
    if not usable.images:
        first = f"; {usable.skipped[0]}" if usable.skipped else ""
        raise InvalidInputError(
            f"none of {len(files)} images can be used: at least one must be {size}×{size} pixels or larger{first}"
        )
    return usable


class PatchSource:
    """Grey images of uint8, uint16, or floats in [0, 1] but for noise of `sigma`, from which random patches are cut.

    They stay as they came, if all are of one kind. Among others, 8 bits become 16 (× 257, exactly), and all float32.
    """

    def __init__(self, images: Sequence[NDArray[Any]], size: int, sigma: float = 0.0) -> None:
        for number, image in enumerate(images):
            if image.ndim != 2:
                raise InvalidInputError(f"image {number} has shape {image.shape}; expected a grey image (H, W)")
            _check_range(image, f"image {number}", sigma)
        usable = [image for image in images if min(image.shape) >= size]
        if not usable:
            raise InvalidInputError(
                f"none of {len(images)} images is as large as a patch of {size}×{size} pixels; give larger images"
            )
        self.size = size
        self.images = len(usable)
        common = np.dtype(np.float32)
        if all(image.dtype.kind != "f" for image in usable):
            common = np.result_type(*(image.dtype.newbyteorder("=") for image in usable))
        self._scale = _full_scale(common)
        self._buffer = np.concatenate([_widen(image, common).ravel() for image in usable])
        heights, widths = np.array([image.shape for image in usable], dtype=np.int64).T
        self._widths = widths
        self._begins = np.concatenate([[0], np.cumsum(heights * widths)[:-1]])
        self._columns = widths - size + 1
        self._ends = np.cumsum((heights - size + 1) * self._columns)  # positions up to and with each image

    @property
    def positions(self) -> int:
        """How many patches there are to draw from, symmetries not counted."""
        return int(self._ends[-1])

    @property
    def digest(self) -> str:
        """A fingerprint of the images and of the size of the patches: equal sources draw equal patches."""
        sum_of_all = hashlib.blake2b(digest_size=16)
        for array in (self._buffer, self._widths, self._ends, np.array([self.size])):
            sum_of_all.update(f"{array.dtype.name} {array.size}\n".encode())
            sum_of_all.update(np.ascontiguousarray(array).data)
        return sum_of_all.hexdigest()

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Patches as columns, (size², count): position and one of eight symmetries uniform."""
        position = rng.integers(self.positions, size=count)
        image = np.searchsorted(self._ends, position, side="right")
        local = position - np.where(image > 0, self._ends[image - 1], 0)
        row, column = np.divmod(local, self._columns[image])
        widths = self._widths[image]
        corners = self._begins[image] + row * widths + column
        patches: FloatArray = cut_patches(self._buffer, corners, widths, rng.integers(8, size=count), self.size)
        patches *= self._scale
        return patches


def scale_by_type(image: NDArray[Any]) -> NDArray[np.float32]:
    """Scale an image of uint8, uint16 or floats to float32 in [0, 1]."""
    return (image * _full_scale(image.dtype)).astype(np.float32)


def _check_range(image: NDArray[Any], name: str, sigma: float) -> None:
    """Integers are scaled by the range of their type; floats must lie in [0, 1], up to their noise."""
    if image.dtype.kind == "f":
        low, high = (float(image.min()), float(image.max())) if image.size else (0.0, 0.0)
        beyond = MOST_DEVIATIONS * sigma
        if not (low >= -beyond and high <= 1.0 + beyond):  # NaN is refused too
            but = f", but for their noise of {sigma:g}" if sigma else ""
            raise InvalidInputError(
                f"{name} has values from {low:g} to {high:g}; images of floats must lie in [0, 1]{but}: rescale them"
            )
    elif image.dtype.newbyteorder("=") not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise InvalidInputError(f"{name} is of type {image.dtype}; expected uint8, uint16, or floats in [0, 1]")


def _widen(image: NDArray[Any], common: np.dtype[Any]) -> NDArray[Any]:
    if common.kind == "f":
        return scale_by_type(image)
    widened = image.astype(common, copy=False)
    return widened * common.type(257) if image.dtype.itemsize < common.itemsize else widened


def _full_scale(dtype: np.dtype[Any]) -> float:
    return 1.0 / np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1.0
