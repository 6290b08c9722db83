"""What every benchmark needs: times, the machine and the commit, written as JSON."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    """Write benchmarks/results/NAME.json with the result, the commit, the time and the kind of machine."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=HERE
    ).stdout.strip()
    about = {
        "commit": commit,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "processor": platform.machine(),
    }
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"benchmark": name, **about, **result}, indent=2) + "\n")
    print(f"written to {path.relative_to(HERE.parent)}")
