"""Density, score and posterior of a million noisy 7×7 patches, each with its own noise level.

Compared with the plain numpy twin on the same number of threads (timed on fewer patches, given per million), and with
the two matrix products alone. Memory is the growth of the peak resident size over the inputs, results included.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import seconds, write_result
from numba import set_num_threads

from heatprior import PatchPrior
from heatprior.arrays import FloatArray
from heatprior.kernels.expert_moments import mixture_moments_plain
from heatprior.kernels.threads import for_each
from heatprior.zoo import load

SEED = 0
PATCHES = 1_000_000
PATCHES_FOR_THE_TWIN = 8_192
ROWS = 128  # of the twin at once: its arrays of patches × experts × components then fit into the cache
MEGABYTE = 1e6


def twin(prior: PatchPrior, y: FloatArray, sigma: FloatArray, *, score: bool) -> None:
    def work(start: int) -> FloatArray:
        rows = slice(start, start + ROWS)
        u = prior.filters.analyse(y[rows].astype(np.float64))
        variances = prior.experts.base_sigma**2 + (sigma[rows, None] * prior.filters.norms) ** 2
        moments = mixture_moments_plain(u, variances, prior.experts.log_weights, prior.experts.means)
        return prior.filters.synthesise((moments.mean - u) / variances) if score else moments.log_density.sum(axis=1)

    for_each(work, range(0, len(y), ROWS))


def products(prior: PatchPrior, y: FloatArray) -> None:
    def work(start: int) -> FloatArray:
        return prior.filters.synthesise(prior.filters.analyse(y[start : start + 1024].astype(np.float64)))

    for_each(work, range(0, len(y), 1024))


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def memory_now() -> float:
    """Resident size at this moment, from Linux; elsewhere the peak so far, which may hide some growth."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak_memory()
    return int(statm.read_text().split()[1]) * resource.getpagesize() / MEGABYTE


def main() -> None:
    prior: Any = load("patch7")
    rng = np.random.default_rng(SEED)
    y = rng.standard_normal((PATCHES, prior.filters.pixels), dtype=np.float32)
    y *= 0.2
    sigma = rng.uniform(0.0, 0.4, PATCHES)
    few, few_sigma = y[:PATCHES_FOR_THE_TWIN], sigma[:PATCHES_FOR_THE_TWIN]
    prior.posterior(few, few_sigma), prior.log_prob(few, few_sigma)  # compiles

    before = memory_now()
    prior.log_prob(y, sigma)
    memory_log_prob = peak_memory() - before
    before = memory_now()
    prior.score(y, sigma)
    memory_score = peak_memory() - before

    jobs: dict[str, Callable[[], object]] = {
        "log_prob": lambda: prior.log_prob(y, sigma),
        "score": lambda: prior.score(y, sigma),
        "posterior": lambda: prior.posterior(y, sigma),
        "products": lambda: products(prior, y),
    }
    twins = {
        "log_prob": lambda: twin(prior, few, few_sigma, score=False),
        "score": lambda: twin(prior, few, few_sigma, score=True),
    }
    times: dict[str, dict[int, float]] = {name: {} for name in jobs}
    twin_times: dict[str, dict[int, float]] = {name: {} for name in twins}
    for threads in (1, 2):
        set_num_threads(threads)
        for name, job in jobs.items():
            times[name][threads] = seconds(job)
        for name, job in twins.items():
            twin_times[name][threads] = seconds(job) * 1e6 / PATCHES_FOR_THE_TWIN

    print(f"{'seconds per million 7×7 patches':34} 1 thread  2 threads   ratio")
    for name, row in [*times.items(), *((f"numpy twin: {name}", row) for name, row in twin_times.items())]:
        print(f"{name:34} {row[1]:8.2f} {row[2]:10.2f} {row[1] / row[2]:7.2f}")
    speedup = {name: {n: twin_times[name][n] / times[name][n] for n in (1, 2)} for name in twins}
    for name, row in speedup.items():
        print(f"{name} is {row[1]:.0f} (1 thread) and {row[2]:.0f} (2 threads) times faster than the twin")
    output = PATCHES * prior.filters.pixels * 4 / MEGABYTE
    print(f"peak memory above the inputs: log_prob {memory_log_prob:.0f} MB, score {memory_score:.0f} MB")
    print(f"(of which the result: log_prob {PATCHES * 4 / MEGABYTE:.0f} MB, score {output:.0f} MB)")
    write_result(
        "patch_prior",
        {
            "seed": SEED,
            "patches": PATCHES,
            "seconds_per_million": times,
            "twin_seconds_per_million": twin_times,
            "times_faster_than_twin": speedup,
            "megabytes_above_inputs": {"log_prob": memory_log_prob, "score": memory_score},
        },
    )


if __name__ == "__main__":
    main()
