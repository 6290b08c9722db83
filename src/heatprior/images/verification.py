"""A result is read back and compared with what was computed before it gets its name.

Whatever a codec, a disk or a damaged original did to it, nothing wrong is passed on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images.model import Format, ImageFile, explaining

BLOCK = 1 << 22  # pixels compared at a time
# Root mean square of what a lossy format may change, in grey levels. At quality 95 the steps of the coefficients are
# 6.7 (brightness) and 9.1 (colour) in root mean square; all wrong by half a step, blue is wrong by 3.4 + 1.77 × 4.6.
LOSS = 16.0


def check_written(path: Path, name: Path, kind: Format, pixels: NDArray[Any], like: ImageFile) -> None:
    """Refuse the file at `path`, to be called `name`, unless it holds `pixels` and the other samples of `like`."""
    try:
        with explaining(path):
            again = kind.read(path)
    except ImageFileError as error:
        reason = str(error).removeprefix(f"cannot read {path}: ").removesuffix("; get a fresh copy")
        raise OutputFileError(
            f"cannot write {name}: the result could not be read back: {reason}; {_remedy()}"
        ) from error
    if not (_agree(again, pixels, like, kind) and _agree_beside(again.others, like.others)):
        raise OutputFileError(f"cannot write {name}: the file did not keep the result, pixel for pixel; {_remedy()}")


def _agree(again: ImageFile, pixels: NDArray[Any], like: ImageFile, kind: Format) -> bool:
    found = again.pixels
    if like.colour and not again.colour:  # a format without grey, in which the colours agree
        found = np.broadcast_to(found[..., None], (*found.shape, 3))
    if found.shape != pixels.shape or found.dtype != pixels.dtype:
        return False
    if kind.lossy:
        return _distance(found, pixels) <= LOSS
    return all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in _blocks(found, pixels))


def _agree_beside(found: NDArray[Any] | None, others: NDArray[Any] | None) -> bool:
    """Whether transparency came back as it was; none at all is the same as opaque throughout."""
    if others is None or found is None:
        present = found if others is None else others
        return present is None or (present.dtype.kind == "u" and bool((present == np.iinfo(present.dtype).max).all()))
    return bool(np.array_equal(found, others, equal_nan=others.dtype.kind == "f"))


def _distance(found: NDArray[Any], pixels: NDArray[Any]) -> float:
    total = 0.0
    for one, other in _blocks(found, pixels):
        total += float(np.square(one.astype(np.float32) - other).sum(dtype=np.float64))
    return float(np.sqrt(total / max(1, pixels.size)))


def _blocks(one: NDArray[Any], other: NDArray[Any]) -> Any:
    """Both, some rows or pictures at a time."""
    step = max(1, BLOCK * len(one) // max(1, one.size))
    for start in range(0, len(one), step):
        yield one[start : start + step], other[start : start + step]


def _remedy() -> str:
    return "choose .npy, or another format"
