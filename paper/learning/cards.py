"""What tunings have in common: a prior that is there already is made to denoise whole images, at a range of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from heatprior.errors import InvalidInputError


def check_range(sigma_min: float, sigma_max: float) -> None:
    """Refuse what is no range of noise levels."""
    if not 0 < sigma_min < sigma_max:
        raise InvalidInputError(f"noise levels are {sigma_min} to {sigma_max}; expected a positive range")


def part_of_newest(averaged: int, steps: int) -> float:
    """How much the newest iterate counts in their average after so many steps: at first more, at last 1 / averaged."""
    return 1.0 / min(averaged, 1.0 + steps / 10.0)


def tuned_card(before: Mapping[str, Any], name: str, config: Any, done: int) -> dict[str, Any]:
    """The card of the prior that was tuned, with the settings under `name`; what was validated is no longer true."""
    known = {key: entry for key, entry in before.items() if key != "validation"}
    return {**known, name: {**asdict(config), "steps_done": done}}
