"""Opening files with Pillow under our own bounds, without what its libraries say on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from heatprior.errors import ImageFileError
from heatprior.images.limits import EXPANSION, check_size

_LOCK = Lock()


@contextmanager
def opened(source: Path | bytes, kind: str, expansion: int = EXPANSION, sample: int = 1) -> Iterator[Any]:
    """The image of a file or of its contents, which must be of this kind; its size is checked before it is decoded.

    Pillow refuses more than 179 megapixels as a decompression bomb; the bound here is by what the file can hold and by
    the memory that is free. `sample` is the bytes of a sample.
    """
    from PIL import Image  # noqa: PLC0415 (slow to import)

    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    with _LOCK:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            image = Image.open(BytesIO(source) if isinstance(source, bytes) else source, formats=[kind])
        finally:
            Image.MAX_IMAGE_PIXELS = limit
    with image:
        if getattr(image, "is_animated", False) and kind != "TIFF":
            raise ImageFileError("it is animated; save its pictures one by one")
        check_size(image.width * image.height * len(image.getbands()) * sample, size, expansion)
        yield image


@contextmanager
def silent_stderr() -> Iterator[None]:
    """The stderr of the process leads nowhere: libtiff writes to it, not to Python's."""
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (OSError, AttributeError, ValueError):  # there is no stderr
        yield
        return
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
