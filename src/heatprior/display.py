"""How values show themselves to people: levels in three digits, objects in one line, in notebooks with a picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 60  # letters of a value in a line
THUMBNAIL = 160  # pixels along the longer side of a picture in a notebook, at least
TILES = 48  # of a picture, at most
ACROSS = 12  # tiles in a row
CONTRAST_QUANTILES = (0.001, 0.999)  # black and white where the type does not say what they are


def format_level(value: float) -> str:
    """Three digits, also if the last is 0, and no powers of ten in large numbers."""
    if not np.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:#.3g}".removesuffix(".") if abs(value) < 1000 else f"{value:.0f}"


def format_full_scale(value: float) -> str:
    """Format a full scale such as 255, 65535 or 1, without digits that say nothing."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def describe_fields(value: Any) -> str:
    """`Name(field=…)` of a dataclass or a named tuple in one line: arrays by their type and shape."""
    names = getattr(value, "_fields", None) or value.__dataclass_fields__
    return f"{type(value).__name__}({', '.join(f'{name}={_in_short(getattr(value, name))}' for name in names)})"


def _in_short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}" if value.ndim else f"{value.item():.4g}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Mapping) and value:
        return "{…}"
    line = " ".join(repr(value).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def describe_prior(prior: Any, parts: str) -> str:
    """`<Kind 'name': its parts, how many parameters>`."""
    name = f" {as_printable(prior.card['name'])[:LONGEST]!r}" if prior.card.get("name") else ""
    return f"<{type(prior).__name__}{name}: {parts}, {prior.parameters:,} parameters>"


def as_printable(value: object) -> str:
    """Text from a file of unknown origin, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))


def as_html(line: str, picture: NDArray[Any] | None = None, enlarged: int = 1) -> str:
    """A line, and below it a grey picture (H, W), black its least and white its largest value."""
    words = f"<code>{html.escape(line)}</code>"
    if picture is None or picture.ndim != 2 or picture.size == 0:
        return words
    from PIL import Image  # noqa: PLC0415 (only in notebooks)

    step = max(1, max(picture.shape) // (2 * THUMBNAIL))
    small = np.nan_to_num(np.asarray(picture[::step, ::step], np.float64))
    low, high = float(small.min()), float(small.max())
    grey = np.full(small.shape, 128.0) if high == low else (small - low) * (255.0 / (high - low))
    written = io.BytesIO()
    Image.fromarray(np.rint(grey).astype(np.uint8)).save(written, "PNG")
    data = base64.b64encode(written.getvalue()).decode()
    width = enlarged * grey.shape[1]
    style = f"display:block;width:{width}px;image-rendering:pixelated"
    return f'{words}<img alt="" style="{style}" src="data:image/png;base64,{data}">'


def contrast(pixels: NDArray[Any]) -> tuple[float, float]:
    """The values to show as black and white: 0 and 255 for 8 bits, else quantiles near the extremes."""
    if pixels.dtype == np.uint8:
        return 0.0, 255.0
    known = pixels[np.isfinite(pixels)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = np.quantile(known, CONTRAST_QUANTILES)
    return float(low), float(high)


def tile(images: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Small images (b, b) side by side in rows, each from black to white, so many as a look takes in."""
    shown = np.array(images[:TILES])
    largest = np.abs(shown).max(axis=(1, 2), keepdims=True)
    return mosaic(0.5 + 0.5 * shown / np.where(largest > 0, largest, 1.0), min(len(shown), ACROSS), filling=0.5)


def mosaic(images: NDArray[Any], across: int, *, gap: int = 1, filling: float) -> NDArray[Any]:
    """Images (count, H, W) in rows of `across`, `gap` pixels apart, which are `filling`."""
    count, height, width = images.shape
    down = -(-count // across)
    cells = np.full((down * across, height + gap, width + gap), filling, images.dtype)
    cells[:count, :height, :width] = images
    sheet = cells.reshape(down, across, height + gap, width + gap).swapaxes(1, 2)
    return sheet.reshape(down * (height + gap), across * (width + gap))[:-gap, :-gap]
