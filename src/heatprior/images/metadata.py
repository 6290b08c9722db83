"""What belongs to a picture in any format, checked: broken profiles and EXIF are left behind rather than copied."""

from __future__ import annotations

import struct
from typing import Any

from heatprior.images.model import Carried

EXIF = b"Exif\0\0"
ORIENTATION = 0x0112
ICC_SIGNATURE = slice(36, 40)
LARGEST_DPI = 1e6


def carried(info: dict[str, Any]) -> Carried:
    """What Pillow found, as far as it is sound."""
    icc, exif = info.get("icc_profile"), info.get("exif")
    exif = exif if exif is None or exif.startswith(EXIF) else EXIF + exif
    return Carried(icc if is_profile(icc) else None, exif if is_exif(exif) else None, sound_dpi(info.get("dpi")))


def is_profile(data: bytes | None) -> bool:
    """Whether this is an ICC profile: its length and its signature are right."""
    return (
        data is not None
        and len(data) >= 128
        and data[ICC_SIGNATURE] == b"acsp"
        and struct.unpack_from(">I", data)[0] == len(data)
    )


def is_exif(data: bytes | None) -> bool:
    """Whether this is EXIF that can be read, from "Exif" on."""
    return data is not None and _exif(data) is not None


def sound_dpi(dpi: Any) -> tuple[float, float] | None:
    """Dots per inch, if that is what they are."""
    try:
        across, down = (float(dots) for dots in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (across, down) if 0 < across < LARGEST_DPI and 0 < down < LARGEST_DPI else None


def orientation_of(exif: bytes | None) -> int:
    """How the picture is to be turned for showing, 1 to 8; 1, as it is, if nothing is said."""
    found = None if exif is None else (_exif(exif) or {}).get(ORIENTATION)
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def exif_of(orientation: int) -> bytes | None:
    """EXIF that says no more than how to turn the picture."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    if not 2 <= orientation <= 8:
        return None
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return bytes(exif.tobytes())


def _exif(data: bytes) -> dict[int, Any] | None:
    from PIL import Image  # noqa: PLC0415

    if not data.startswith(EXIF) or data[len(EXIF) :][:4] not in (b"II*\0", b"MM\0*"):
        return None
    exif = Image.Exif()
    try:
        exif.load(data)
        found = dict(exif)
        for pointer in (0x8769, 0x8825):  # what it points to: EXIF proper and GPS
            dict(exif.get_ifd(pointer))
    except Exception:  # whatever its parser stumbles over: it is not sound
        return None
    return found or None
