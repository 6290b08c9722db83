"""An item of the paper, a figure or a table: what the paper claims of it, what is measured here, whether it holds.

An item's `make` computes and draws, and hands back a `Finding`. Everything that the page shows of it is in the finding,
so that an item that is done need not be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from paper.claims.bench import Bench

Settings = Mapping[str, int]


class Check(NamedTuple):
    """One claim with its tolerance, what was measured, and whether it holds; None if that cannot be judged.

    `reason` says why, if it does not hold or cannot be judged.
    """

    claim: str
    measured: str
    holds: bool | None
    reason: str = ""


class Table(NamedTuple):
    """Numbers to read: a caption, the head and the rows."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """A figure, its caption, and what is added to the item's name to make the name of its file."""

    figure: Figure
    caption: str
    suffix: str = ""


@dataclass(frozen=True)
class Finding:
    """What came out: figures that JSON can hold, checks, pictures and tables."""

    figures: Mapping[str, Any]
    checks: Sequence[Check]
    pictures: Sequence[Picture]
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Item:
    """A figure or table: where it stands in the paper, what is said of it there, what it needs, and how it is made.

    `full` and `quick` are the settings of the two kinds of run; `images` names the sets of images that are read.
    """

    name: str
    title: str
    place: str
    claim: str
    make: Callable[[Bench, Settings], Finding]
    full: Settings
    quick: Settings
    priors: Sequence[str] = ()
    images: Sequence[str] = field(default=())

    def settings(self, *, quick: bool) -> Settings:
        """Of a quick or of a full run."""
        return self.quick if quick else self.full


def verdict(checks: Sequence[Check]) -> str:
    """In a word or two."""
    judged = [check.holds for check in checks if check.holds is not None]
    if not judged:
        return "not judged"
    if all(judged):
        return "holds" if len(judged) == len(checks) else "holds as far as judged"
    return "holds in part" if any(judged) else "does not hold"
