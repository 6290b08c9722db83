"""How values show themselves to people: levels in three digits, objects in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LONGEST = 60  # letters of a value in a line


def format_level(value: float) -> str:
    """Three digits, also if the last is 0, and no powers of ten in large numbers."""
    if not np.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:#.3g}".removesuffix(".") if abs(value) < 1000 else f"{value:.0f}"


def format_full_scale(value: float) -> str:
    """255, 65535 or 1: without digits that say nothing."""
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
    name = f" {printable(prior.card['name'])[:LONGEST]!r}" if prior.card.get("name") else ""
    return f"<{type(prior).__name__}{name}: {parts}, {prior.parameters:,} parameters>"


def printable(text: object) -> str:
    """Text from a file of unknown origin, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))
