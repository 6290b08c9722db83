"""Decoding files of unknown origin: bounds before anything is allocated, errors in one line, metadata only if sound."""

from __future__ import annotations

import logging
import os
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images.model import Metadata
from heatprior.locks import thread_lock

EXPANSION = 2600  # bytes of pixels that one byte of a file may stand for; the most is that of LZW
SMALL = 1 << 20  # whatever declares less is harmless
MOST_SAMPLES = 4  # of a pixel, for which the headers of PNG, JPEG and WebP are taken
ROOM = 1 << 26  # bytes that a file may hold beside its pixels: profiles, previews, the film of a moving photograph
COPIES = 3  # of the image, that reading it, comparing and converting may need
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
CHUNK = 1 << 20
EXIF = b"Exif\0\0"
ORIENTATION = 0x0112
ICC_SIGNATURE = slice(36, 40)
LARGEST_DPI = 1e6
SEVERAL = ("TIFF", "JPEG")  # formats of which several pictures are no animation; a JPEG's others are previews, or depth
_LOCK = thread_lock()  # around Pillow's own limit, which is global


def check_size(declared: int, stored: int, expansion: int = EXPANSION) -> None:
    """Refuse an image of `declared` bytes if a file of `stored` bytes cannot hold it, or memory cannot."""
    if declared > max(stored * expansion, SMALL if expansion > 1 else 0):
        raise ImageFileError(
            f"it declares {describe_size(declared)} of pixels but is a file of {describe_size(stored)}: damaged, or "
            "meant to exhaust memory; get a fresh copy"
        )
    available = available_memory()
    if available is not None and declared > SMALL and COPIES * declared > available:
        raise ImageFileError(
            f"its {describe_size(declared)} of pixels need {describe_size(COPIES * declared)} of memory but "
            f"{describe_size(available)} are free; cut it into parts"
        )


def check_padding(declared: int, stored: int) -> None:
    """Refuse a file of `stored` bytes that is far larger than its image of `declared` bytes, before it is read."""
    if stored > 2 * declared + ROOM:  # packed pixels may be larger than plain ones, but not twice
        raise ImageFileError(
            f"it is a file of {describe_size(stored)} but its image has {describe_size(declared)}; save the image alone"
        )


def read_content(path: Path, measure: Callable[[bytes], int]) -> bytes:
    """The bytes of a file; of a large one not before `measure` has found, by its beginning, how large its image is."""
    with path.open("rb") as file:
        stored = os.fstat(file.fileno()).st_size
        if stored > ROOM:
            declared = measure(file.read(ROOM))
            check_padding(declared, stored)
            check_size(declared // MOST_SAMPLES, stored)
            file.seek(0)
        return file.read()


def check_inflated(data: bytes, expected: int, *, raw: bool = False) -> None:
    """Refuse deflated data, `raw` if they have no header, that inflate to more than the `expected` bytes."""
    inflater, rest, total = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS), data, 0
    while rest and not inflater.eof and total <= expected + CHUNK:
        total += len(inflater.decompress(rest, CHUNK))
        rest = inflater.unconsumed_tail
    if total > expected + CHUNK:
        raise ImageFileError("its compressed pixels are more than it declares; get a fresh copy")


def available_memory() -> int | None:
    """Bytes available without swapping; None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        return None
    for name in MEMORY_FILES:  # in a container
        try:
            free = min(free, int(Path(name).read_text(encoding="utf-8")))
        except (OSError, ValueError):  # absent, or the word "max"
            continue
    return free


def describe_size(size: int) -> str:
    """Say how many bytes these are, for people to read."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 10_000:
            return f"{size} {unit}"
        size //= 1000
    return f"{size} TB"


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn whatever a decoder raises on a damaged file into one line that names the file."""
    with silence_decoders():
        try:
            yield
        except OutputFileError:
            raise
        except ImageFileError as error:
            message = " ".join(str(error).split())
            if str(path) not in message:
                message = f"cannot read {path}: {message}"
            raise ImageFileError(message) from error
        except MemoryError as error:
            raise ImageFileError(
                f"cannot read {path}: it takes more memory than there is; cut it into parts"
            ) from error
        except Exception as error:  # decoders raise all sorts: OSError, SyntaxError, struct.error, zlib.error, …
            raise ImageFileError(f"cannot read {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Say what is wrong with a file, and how to mend it."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check its name"
    if isinstance(error, IsADirectoryError):
        return "it is a folder; give a file in it"
    if isinstance(error, PermissionError):
        return "it may not be read; change its permissions"
    text = " ".join(str(error).partition("Traceback (most recent")[0].split())  # some quote where they raised it
    text = text if len(text) <= 200 else f"{text[:200]}…"  # some quote the whole file
    return f"it is damaged or no image ({type(error).__name__}: {text}); get a fresh copy"


@contextmanager
def silence_decoders() -> Iterator[None]:
    """Suppress warnings of decoders about metadata that does not matter here."""
    loggers = [logging.getLogger(name) for name in ("tifffile", "PIL", "pydicom", "nibabel.global")]
    before = [logger.propagate for logger in loggers]
    nowhere = logging.NullHandler()
    for logger in loggers:  # and those below them, such as PIL.TiffImagePlugin, which `disabled` would let speak
        logger.propagate = False
        logger.addHandler(nowhere)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for logger, propagated in zip(loggers, before, strict=True):
            logger.propagate = propagated
            logger.removeHandler(nowhere)


@contextmanager
def open_image(source: Path | bytes, kind: str, expansion: int = EXPANSION, sample: int = 1) -> Iterator[Any]:
    """Open a file, or its contents, of this format with Pillow, if its size is allowed; `sample`: bytes per sample."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    with _LOCK:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # `check_size` has better bounds
        try:
            image = Image.open(BytesIO(source) if isinstance(source, bytes) else source, formats=[kind])
        finally:
            Image.MAX_IMAGE_PIXELS = limit
    with image:
        if getattr(image, "is_animated", False) and kind not in SEVERAL:
            raise ImageFileError("it is animated; save its pictures one by one")
        check_size(image.width * image.height * len(image.getbands()) * sample, size, expansion)
        yield image


@contextmanager
def silence_stderr() -> Iterator[None]:
    """Send the stderr of the process to nowhere: libtiff writes to it, not to Python's."""
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


def read_metadata(info: dict[str, Any]) -> Metadata:
    """The metadata that Pillow found, as far as it is valid."""
    icc, exif = info.get("icc_profile"), info.get("exif")
    exif = exif if exif is None or exif.startswith(EXIF) else EXIF + exif
    return Metadata(icc if is_profile(icc) else None, exif if parse_exif(exif) else None, valid_dpi(info.get("dpi")))


def is_profile(data: bytes | None) -> bool:
    """Whether this is an ICC profile, by its length and signature."""
    return (
        data is not None
        and len(data) >= 128
        and data[ICC_SIGNATURE] == b"acsp"
        and struct.unpack_from(">I", data)[0] == len(data)
    )


def valid_dpi(dpi: Any) -> tuple[float, float] | None:
    """Dots per inch, or None if they are not plausible numbers."""
    try:
        across, down = (float(dots) for dots in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (across, down) if 0 < across < LARGEST_DPI and 0 < down < LARGEST_DPI else None


def orientation_of(exif: bytes | None) -> int:
    """EXIF orientation, 1 to 8; 1 if there is none."""
    found = parse_exif(exif).get(ORIENTATION)
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def exif_of(orientation: int) -> bytes | None:
    """EXIF that holds an orientation only; None for the normal one."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    if not 2 <= orientation <= 8:
        return None
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return bytes(exif.tobytes())


def parse_exif(data: bytes | None) -> dict[int, Any]:
    """The entries of EXIF, from "Exif" on; none if it cannot be parsed."""
    from PIL import Image  # noqa: PLC0415

    if data is None or not data.startswith(EXIF) or data[len(EXIF) :][:4] not in (b"II*\0", b"MM\0*"):
        return {}
    exif = Image.Exif()
    try:
        exif.load(data)
        found = dict(exif)
        for pointer in (0x8769, 0x8825):  # the sub-directories: EXIF proper and GPS
            dict(exif.get_ifd(pointer))
    except Exception:  # whatever its parser stumbles over: it is not valid
        return {}
    return found
