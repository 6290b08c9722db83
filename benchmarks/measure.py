"""What every benchmark needs: the shortest time, and a place for the result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heatprior import adapt, denoise
from heatprior.arrays import FloatArray
from heatprior.priors.protocol import DiffusedPrior, complete
from heatprior.restoration.pipeline import Pipeline

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # where the folder `paper` is
from paper.records import write_record  # noqa: E402

RECORDS = ROOT / "records"


def prior_called(name: str) -> str:
    """A prior as `heatprior.load` takes it: the path of an exhibit of the paper, or the name of a shipped one."""
    exhibit = ROOT / "paper" / "priors" / f"{name}.safetensors"
    return str(exhibit) if exhibit.is_file() else name


def denoise_at(
    noisy: FloatArray, sigma: float, prior: DiffusedPrior, scales: int, *, adapted: bool = False
) -> FloatArray:
    """By splitting at so many scales, or in one step if that is none; `adapted` to the image before."""
    own = adapt(prior, noisy, sigma, white=1.0) if adapted else prior
    if not scales:
        return denoise(noisy, sigma, prior=own, steps=1, white=1.0)
    return Pipeline(complete(own), (noisy.shape[0], noisy.shape[1]), most_scales=scales).denoise(noisy, sigma)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of some runs: what disturbs a run only makes it longer."""
    shortest = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest


def write_result(name: str, result: dict[str, Any]) -> None:
    """Write records/NAME.json."""
    path = RECORDS / f"{name}.json"
    write_record(path, result)
    print(f"written to {path.relative_to(ROOT)}")
