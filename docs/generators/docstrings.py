"""Docstrings as they stand in the source, a paragraph for each argument: there, each begins a line."""

from __future__ import annotations

import inspect
import re
from typing import Any


def part_arguments(_app: Any, _what: str, _name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Begin a new paragraph at every line that begins with an argument of the thing, in place."""
    try:
        arguments = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # modules, attributes
        return
    parted: list[str] = []
    for line in lines:
        begins = re.match(r"`(\w+)`", line)
        if begins and begins[1] in arguments and parted and parted[-1].strip():
            parted.append("")
        parted.append(line)
    lines[:] = parted
