"""Noise estimation of one picture on one core: seconds per megapixel, and over those of one EB-PA step.

Also scikit-image's estimate_sigma, if PyWavelets is there. Writes records/bench_noise.json.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import seconds, write_result
from numba import set_num_threads
from skimage import data, restoration

from heatprior import denoise, estimate_noise, estimate_sigma, load
from heatprior.kernels.threads import products_in_one_thread

SEED = 0
SIGMA = 25 / 255
TIMES = 2  # the picture, 512×512, is laid out this often each way


def main() -> None:
    camera: Any = data.camera
    clean = np.tile(camera() / 255.0, (TIMES, TIMES))
    noisy = (clean + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape)).astype(np.float32)
    prior = load("patch7")
    jobs: dict[str, Callable[[], object]] = {
        "one step of empirical Bayes": lambda: denoise(noisy, SIGMA, prior=prior, steps=1),
        "estimate_sigma": lambda: estimate_sigma(noisy, prior=prior),
        "estimate_noise": lambda: estimate_noise(noisy, prior=prior),
    }
    if find_spec("pywt"):
        peer: Any = restoration.estimate_sigma
        jobs["scikit-image estimate_sigma"] = lambda: peer(noisy)
    set_num_threads(1)
    rows: dict[str, Any] = {}
    with products_in_one_thread():
        for name, job in jobs.items():
            rows[name] = seconds(job) * 1e6 / noisy.size
    step = rows["one step of empirical Bayes"]
    for name, time in rows.items():
        print(f"{name:32} {time:8.3f} s per megapixel, {time / step:6.2f} of a step")
    write_result("bench_noise", {"seed": SEED, "megapixels": noisy.size / 1e6, "seconds_per_megapixel": rows})


if __name__ == "__main__":
    main()
