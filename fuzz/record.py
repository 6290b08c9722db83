"""What was run of each target and how it went, in one JSON file that a later run goes on with."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fuzz.worker import Verdict
from paper.records import running_commit, write_record


class Tally:
    """The cases of a target: how many ended how, which broke a law, and which of those keep it by now."""

    def __init__(self, first: int = 0, record: dict[str, Any] | None = None) -> None:
        kept = record or {"next": first, "exit_codes": {}, "broken": {}, "mended": {}}
        self.next: int = kept["next"]  # the number of the first case that was not run
        self.codes: Counter[str] = Counter(kept["exit_codes"])
        self.broken: dict[str, list[str]] = kept["broken"]
        self.mended: dict[str, list[str]] = kept["mended"]
        self.slowest = (kept.get("slowest_seconds", 0.0), kept.get("slowest_case", 0))
        self.memory: int = kept.get("most_memory_mb", 0)

    def count(self, number: int, verdict: Verdict) -> None:
        """Add a case, or judge it again if it broke a law before."""
        name = str(number)
        before = self.broken.pop(name, None)
        if before is None:
            self.codes[str(verdict.code)] += 1
            self.next = max(self.next, number + 1)
        if verdict.broken:
            self.broken[name] = verdict.broken
        elif before is not None:
            self.mended[name] = before
        self.slowest = max(self.slowest, (round(verdict.seconds, 2), number))
        self.memory = max(self.memory, verdict.memory >> 20)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "cases": self.codes.total(),
            "next": self.next,
            "exit_codes": dict(sorted(self.codes.items())),
            "broken": self.broken,
            "mended": self.mended,
            "slowest_seconds": self.slowest[0],
            "slowest_case": self.slowest[1],
            "most_memory_mb": self.memory,
        }


class Record:
    """The tallies of all targets, and which commit ran how many cases."""

    def __init__(self, path: Path | None, targets: list[str], first: int) -> None:
        known = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        kept = known.get("targets", {})
        self.path = path
        self.tallies = {name: Tally(first, kept.get(name)) for name in (*kept, *targets)}
        self.parts: list[dict[str, Any]] = [*known.get("parts", []), {"commit": running_commit()}]
        self._before, self._start = self.cases, time.monotonic()

    @property
    def cases(self) -> int:
        """How many were run."""
        return sum(tally.codes.total() for tally in self.tallies.values())

    @property
    def broken(self) -> list[tuple[str, int]]:
        """The cases that broke a law when they were run last."""
        return [(target, int(number)) for target, tally in self.tallies.items() for number in tally.broken]

    def write(self) -> None:
        """Keep what is known so far."""
        self.parts[-1]["cases"] = self.cases - self._before
        self.parts[-1]["seconds"] = round(time.monotonic() - self._start)
        if self.path is not None:
            targets = {target: tally.record() for target, tally in sorted(self.tallies.items())}
            counts = {"cases": self.cases, "broken": len(self.broken)}
            write_record(self.path, {**counts, "parts": self.parts, "targets": targets})
