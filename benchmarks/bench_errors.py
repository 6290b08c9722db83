"""What errors and the predicted PSNR cost beside denoising: processor time on one core, all in one run.

One more run of the denoiser gives both, so their times are one: that of `denoise(…, return_error=True)` less that of
`denoise`, over the latter. Times are of the processor, the shortest of some runs in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from bench_denoising import SEED, SIGMA, on_cores, picture
from measure import write_result

from heatprior import denoise
from heatprior.kernels.threads import products_in_one_thread

SIDE = 512
REPEATS = 5
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {"quality": "default"},
    "fast": {"quality": "fast"},
    "patch7, one step": {"prior": "patch7", "steps": 1},
}


def processor_seconds(work: Callable[[], object]) -> float:
    """What a run takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    on_cores(1)
    _, noisy = picture(SIDE, SIDE)
    rows = {}
    with products_in_one_thread():
        for name, options in OPTIONS.items():
            ways: list[Callable[[], object]] = [
                partial(denoise, noisy, SIGMA, white=1.0, **options),
                partial(denoise, noisy, SIGMA, white=1.0, return_error=True, **options),
            ]
            times = np.array([[processor_seconds(way) for way in ways] for _ in range(REPEATS + 1)])
            plain, both = times[1:].min(axis=0)  # the first compiled
            rows[name] = {"seconds": float(plain), "with_errors": float(both), "extra": float(both / plain - 1.0)}
            print(f"{name:18} {plain:.3f} s, with errors {both:.3f} s: {both / plain - 1.0:.2f} of it more", flush=True)
    write_result("bench_errors", {"side": SIDE, "seed": SEED, "threads": 1, "rows": rows})


if __name__ == "__main__":
    main()
