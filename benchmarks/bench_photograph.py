"""Time of blind denoising of a photograph with correlated noise, each part: estimating, denoising.

    python benchmarks/bench_photograph.py [--megapixels 12]

The photograph is one of scikit-image, mirrored until it is large enough, with noise that was smoothed as cameras do.
On all cores; the processor time of both parts, too, which hardly depends on what else runs. Writes
records/bench_photograph.json.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
from measure import write_result
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage import data

from heatprior.noise.estimation import estimate_noise
from heatprior.restoration.denoising import denoise

SIGMA, SMOOTH = 12.0, 0.8
WARM_UP = 96  # pixels of a side


def photograph(megapixels: float) -> NDArray[np.uint8]:
    """4:3, in colour, with noise."""
    height = round(np.sqrt(megapixels * 1e6 * 3 / 4))
    width = round(height * 4 / 3)
    astronaut: Any = data.astronaut  # has no types
    rows, columns = (np.pad(np.arange(512), (0, max(0, n - 512)), "reflect")[:n] for n in (height, width))
    noise = np.random.default_rng(0).standard_normal((height, width, 3)).astype(np.float32)
    smooth = gaussian_filter(noise, (SMOOTH, SMOOTH, 0))
    noisy = np.rint(astronaut()[np.ix_(rows, columns)] + SIGMA * smooth / smooth.std()).clip(0, 255)
    return np.asarray(noisy, np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=float, default=12.0)
    arguments = parser.parse_args()
    photo = photograph(arguments.megapixels)
    small = photo[:WARM_UP, :WARM_UP]
    denoise(small, channel_axis=-1)
    start, start_cpu = time.perf_counter(), time.process_time()
    report = estimate_noise(photo, channel_axis=-1)
    between, between_cpu = time.perf_counter(), time.process_time()
    print("estimating", round(between - start, 1), report.models[0], flush=True)
    denoise(photo, report.sigma, channel_axis=-1)
    end, end_cpu = time.perf_counter(), time.process_time()
    record = {
        "megapixels": arguments.megapixels,
        "threads": len(os.sched_getaffinity(0)),
        "model": report.models[0],
        "seconds_estimating": round(between - start, 1),
        "seconds_denoising": round(end - between, 1),
        "cpu_seconds_estimating": round(between_cpu - start_cpu, 1),
        "cpu_seconds_denoising": round(end_cpu - between_cpu, 1),
    }
    print(record)
    write_result("bench_photograph", record)


if __name__ == "__main__":
    main()
