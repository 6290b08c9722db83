"""What every benchmark needs: the shortest time, and a place for the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heatprior.records import write_record

HERE = Path(__file__).parent


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of some runs: what disturbs a run only makes it longer."""
    shortest = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest


def write_result(name: str, result: dict[str, Any]) -> None:
    """Write benchmarks/results/NAME.json."""
    path = HERE / "results" / f"{name}.json"
    write_record(path, result)
    print(f"written to {path.relative_to(HERE.parent)}")
