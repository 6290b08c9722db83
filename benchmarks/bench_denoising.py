"""Denoising of one picture, sigma 25/255: seconds per megapixel and PSNR beside peers, all on one core in one run.

Also: how near one step is to its two matrix products alone, two cores against one, and a large image (100 megapixels
unless --side says otherwise) against one of a megapixel, with the growth of the peak resident size over the start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from bench_patch_prior import MEGABYTE, memory_now, peak_memory
from measure import seconds, write_result
from numba import njit, set_num_threads
from skimage import data

from heatprior import PatchPrior, denoise
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from heatprior.kernels.patch_averaging import LANES
from heatprior.kernels.patches import extract
from heatprior.kernels.threads import products_in_one_thread
from heatprior.priors.patch import response_tables
from heatprior.zoo import load

SEED = 0
SIGMA = 25 / 255
RUNS = (272, 320, 352, 400)  # columns of the bare products, of which the fastest counts; more than 425 are twice slower
LARGE_SIDE = 10_000
STEPS = {"eb": 1, "hqs": None}
Job = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=LARGE_SIDE, help="of the large image, in pixels")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--large", metavar="METHOD", help=argparse.SUPPRESS)  # the part that needs a fresh process
    arguments = parser.parse_args()
    if arguments.large:
        print(json.dumps(large(arguments.large, arguments.side)))
        return
    priors: dict[str, Any] = {name: load(name) for name in ("patch7", "patch15")}
    result: dict[str, Any] = {
        "seed": SEED,
        "sigma": SIGMA,
        "products": {name: ratio_to_products(name, prior) for name, prior in priors.items()},
        "one_core": one_core(priors, with_peers=not arguments.without_peers),
        "two_cores": two_cores(),
        "large": {method: in_fresh_process(method, arguments.side) for method in ("eb", "hqs")},
    }
    for method, row in result["large"].items():
        print(f"{method}, {row['megapixels']:.0f} Mpx: {row['seconds_per_megapixel']:.3f} s/Mpx", end=" ")
        print(
            f"({row['seconds_per_megapixel_small']:.3f} for one Mpx); peak {row['megabytes_above_start']:.0f} MB",
            end=" ",
        )
        print(f"above the start, of an image of {row['megabytes_of_image']:.0f} MB")
    write_result("bench_denoising", result)


def picture(rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    """The cameraman, repeated as often as needed: clean, noisy."""
    camera: Any = data.camera
    shades = camera().astype(np.float32) / 255
    clean = np.tile(shades, (-(-rows // 512), -(-columns // 512)))[:rows, :columns].copy()
    noise = np.random.default_rng(SEED).standard_normal(clean.shape, np.float32)
    noise *= np.float32(SIGMA)
    noise += clean
    return clean, noise


def on_cores(count: int) -> None:
    """Keep this process to so many cores, where the system can; and ours to so many threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, CORES[:count])
    set_num_threads(count)


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]


@njit(nogil=True)
def _products(filters: Any, transposed: Any, patches: Any, responses: Any, changes: Any, times: int) -> None:
    for _ in range(times):
        np.dot(filters, patches, responses)
        np.dot(transposed, responses, changes)


def aligned(rows: int, columns: int) -> FloatArray:
    room = np.ones(rows * columns + LANES, np.float32)
    begin = (-(room.ctypes.data // 4)) % LANES
    return room[begin : begin + rows * columns].reshape(rows, columns)


def products(prior: PatchPrior, patches: int, columns: int) -> Job:
    """The two matrix products for so many patches, `columns` at a time, on data that stay in the cache."""
    filters = np.ascontiguousarray(prior.filters.matrix, np.float32)
    count, pixels = filters.shape
    room = (aligned(pixels, columns), aligned(count, columns), aligned(pixels, columns))
    return partial(_products, filters, np.ascontiguousarray(filters.T), *room, patches // columns)


def whole_products(prior: PatchPrior, noisy: FloatArray) -> Job:
    """The two matrix products by plain numpy, on all patches at once."""
    filters = np.ascontiguousarray(prior.filters.matrix, np.float32)
    patches = np.ascontiguousarray(extract(noisy, prior.filters.size).T)
    return lambda: filters.T @ (filters @ patches)


def ratio_to_products(name: str, prior: PatchPrior) -> dict[str, float]:
    """One step over its bare products, in turns, so that both meet the same disturbances.

    The products are those of plain numpy on all patches at once, and, stricter, those on data that stay in the cache,
    with the number of columns at which they are fastest. The tables of a noise level are made once and kept; what that
    takes stands beside it.
    """
    on_cores(1)
    side = 1024 if prior.filters.size < 10 else 400
    _, noisy = picture(side, side)
    megapixels = noisy.size / 1e6
    jobs: list[Job] = [partial(denoise, noisy, SIGMA, prior=prior, steps=1)]
    jobs += [whole_products(prior, noisy)]
    jobs += [partial(response_tables.__wrapped__, prior, SIGMA)]
    jobs += [products(prior, noisy.size, columns) for columns in RUNS]
    with products_in_one_thread():
        times = [[seconds(job, 1) for job in jobs] for _ in range(16)][1:]
    step, whole, tables, *bare = (float(time) for time in np.min(times, axis=0) / megapixels)
    row = {
        "step": step,
        "seconds_for_tables": tables * megapixels,
        "products_by_numpy": whole,
        "ratio_by_numpy": step / whole,
        "products_in_cache": min(bare),
        "ratio_in_cache": step / min(bare),
    }
    print(f"{name}: one step {step:.3f} s/Mpx;", end=" ")
    print(f"products by numpy {whole:.3f}, ratio {step / whole:.2f};", end=" ")
    print(f"products in the cache {min(bare):.3f}, ratio {step / min(bare):.2f}")
    return row


def one_core(priors: dict[str, PatchPrior], *, with_peers: bool) -> dict[str, dict[str, float]]:
    on_cores(1)
    clean, noisy = picture(512, 512)
    jobs: dict[str, Callable[[], FloatArray]] = {}
    for name, prior in priors.items():
        for method in ("eb", "hqs"):
            jobs[f"heatprior {name} {method}"] = partial(denoise, noisy, SIGMA, prior=prior, steps=STEPS[method])
    if with_peers:
        jobs |= peers(noisy)
    rows = {}
    print(f"{'one core, 512×512':42} s/Mpx     PSNR")
    for name, job in jobs.items():
        job() if name != "bm3d" else None  # compiles, loads
        denoised: list[FloatArray] = []
        time = seconds(partial(_keep, job, denoised), 1 if name == "bm3d" else 3)
        rows[name] = {"seconds_per_megapixel": time / (clean.size / 1e6), "psnr": psnr(denoised[-1], clean)}
        print(f"{name:40} {rows[name]['seconds_per_megapixel']:7.3f} {rows[name]['psnr']:8.2f}", flush=True)
    if with_peers:
        for row in rows.values():
            row["times_faster_than_bm3d"] = rows["bm3d"]["seconds_per_megapixel"] / row["seconds_per_megapixel"]
        for method in ("eb", "hqs"):
            times = rows[f"heatprior patch7 {method}"]["times_faster_than_bm3d"]
            print(f"patch7 {method} is {times:.0f} times faster than bm3d")
    return rows


def _keep(job: Callable[[], FloatArray], results: list[FloatArray]) -> None:
    results.append(job())


def peers(noisy: FloatArray) -> dict[str, Callable[[], FloatArray]]:
    os.environ["OMP_NUM_THREADS"] = "1"  # read by bm3d when it is loaded
    bm3d, cv2 = import_module("bm3d"), import_module("cv2")
    from skimage.restoration import cycle_spin, denoise_nl_means, denoise_tv_chambolle, denoise_wavelet

    cv2.setNumThreads(1)
    wavelet = {"sigma": SIGMA, "wavelet": "sym4", "method": "BayesShrink", "rescale_sigma": False}
    bytes_ = np.clip(np.rint(noisy * 255), 0, 255).astype(np.uint8)
    return {
        "scikit-image wavelet": partial(denoise_wavelet, noisy, **wavelet),
        "scikit-image wavelet, 4×4 cycle-spun": partial(
            cycle_spin, noisy, func=denoise_wavelet, max_shifts=3, func_kw=wavelet, workers=1
        ),
        "scikit-image TV (Chambolle)": partial(denoise_tv_chambolle, noisy, weight=0.8 * SIGMA),
        "scikit-image NLM (fast)": partial(
            denoise_nl_means, noisy, patch_size=5, patch_distance=6, h=0.6 * SIGMA, sigma=SIGMA, fast_mode=True
        ),
        "OpenCV NLM, 8 bits": lambda: (
            cv2.fastNlMeansDenoising(bytes_, None, 255 * SIGMA, 7, 21).astype(np.float32) / 255
        ),
        "bm3d": partial(bm3d.bm3d, noisy, SIGMA, profile="np"),
    }


def two_cores() -> dict[str, float]:
    """How many times faster two cores are than one."""
    if len(CORES) < 2:
        return {}
    _, noisy = picture(2048, 2048)
    rows = {}
    for method in ("eb", "hqs"):
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(6 if method == "eb" else 3):
            for cores, found in times.items():  # in turns, so that both meet the same disturbances
                on_cores(cores)
                found.append(seconds(partial(denoise, noisy, SIGMA, prior="patch7", steps=STEPS[method]), 1))
        rows[method] = min(times[1]) / min(times[2])
        print(f"{method}: two cores are {rows[method]:.2f} times as fast as one")
    return rows


def in_fresh_process(method: str, side: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--large", method, "--side", str(side)]
    row: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return row


def large(method: str, side: int) -> dict[str, float]:
    on_cores(1)
    _, small = picture(1024, 1024)
    denoise(small[:64, :64], SIGMA, prior="patch7", steps=STEPS[method])  # compiles
    time_small = seconds(lambda: denoise(small, SIGMA, prior="patch7", steps=STEPS[method]))
    _, noisy = picture(side, side)
    before, highest = memory_now(), peak_memory()
    time = seconds(lambda: denoise(noisy, SIGMA, prior="patch7", steps=STEPS[method]), 1)
    return {
        "megapixels": noisy.size / 1e6,
        "megabytes_of_image": noisy.nbytes / MEGABYTE,
        "megabytes_above_start": peak_memory() - before,
        "megabytes_of_earlier_peak_above_start": highest - before,  # were it larger, it would hide the one above
        "seconds_per_megapixel": time / (noisy.size / 1e6),
        "seconds_per_megapixel_small": time_small / (small.size / 1e6),
    }


if __name__ == "__main__":
    main()
