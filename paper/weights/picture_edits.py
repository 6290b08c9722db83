"""What happens to pictures of 8 bits on their way: cutting, resizing, sharpening, compressing, gamma."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

Picture = NDArray[np.uint8]  # (H, W, 3)
Rng = np.random.Generator
FILTERS = (Image.Resampling.BICUBIC, Image.Resampling.LANCZOS, Image.Resampling.BOX)
MIX = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])  # brightness and two colours


def read(path: Path) -> Picture:
    """A file in colours."""
    return np.asarray(Image.open(path).convert("RGB"))


def as_bytes(values: NDArray[Any]) -> Picture:
    """Rounded and cut off."""
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


def compress(picture: Picture, quality: Any, subsampling: int = -1) -> Picture:
    """As JPEG has it."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=int(quality), subsampling=subsampling)
    return np.asarray(Image.open(file).convert("RGB"))


def resize(picture: Picture, factor: float, how: Image.Resampling = FILTERS[0]) -> Picture:
    """Another size."""
    height, width = (max(8, round(length * factor)) for length in picture.shape[:2])
    return np.asarray(Image.fromarray(picture).resize((width, height), how))


def sharpen(picture: NDArray[Any], amount: float) -> NDArray[Any]:
    """By an unsharp mask."""
    return np.asarray(picture + amount * (picture - gaussian_filter(picture, (1, 1, 0))))


def crop(rng: Rng, picture: NDArray[Any], side: int) -> NDArray[Any]:
    """A square from anywhere."""
    side = min(side, *picture.shape[:2])
    row, column = rng.integers(picture.shape[0] - side + 1), rng.integers(picture.shape[1] - side + 1)
    return picture[row : row + side, column : column + side]


def crop_both(rng: Rng, noisy: Picture, clean: Picture, side: int) -> tuple[Picture, Picture]:
    """The same square of both."""
    both = crop(rng, np.concatenate([noisy, clean], axis=-1), side)
    return both[..., :3], both[..., 3:]


def to_light(picture: NDArray[Any]) -> NDArray[Any]:
    """Before the gamma, 0 to 1."""
    return (np.asarray(picture, float) / 255) ** 2.2


def from_light(light: NDArray[Any]) -> NDArray[Any]:
    """After the gamma, 0 to 255."""
    return np.asarray(np.clip(light, 0, 1) ** (1 / 2.2) * 255)
