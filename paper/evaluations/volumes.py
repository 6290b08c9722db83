"""Volumes and a film with Gaussian noise, denoised in three dimensions: PSNR in dB, and seconds of the processor.

    python -m paper.evaluations.volumes [--data DIR] [--crops] [--levels S ...] [--only NAME ...] [--methods NAME ...]

The volumes are those of the folder `volumes` of --data (or HEATPRIOR_DATA), `volume / unit` being grey levels, and a
simulated stack of a fluorescence microscope. Volume n has the noise of default_rng(2000 + n) at 5, 10 and 20 % of full
scale, which all methods are told. `--crops` takes 24×64×64 voxels from the middle. The one parameter of total variation
and of non-local means is the best of four for each volume and level, which favours them. BM4D (non-commercial, from
PyPI) takes part where it is installed. Writes records/volumes.json, which says what of all this was measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from skimage import restoration

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from paper import RECORDS
from paper.records import write_record

LEVELS = (0.05, 0.1, 0.2)
FIRST_SEED = 2000
CROP = (24, 64, 64)
skimage: Any = restoration
Method = Callable[[FloatArray, float], Any]


def simulate_fluorescence(shape: tuple[int, int, int] = (32, 96, 96), seed: int = 7) -> FloatArray:
    """Filaments and blobs through a point spread function that is twice as deep as wide, brightest 1."""
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    rng, clean = np.random.default_rng(seed), np.zeros(shape)
    for _ in range(40):
        steps = np.cumsum(rng.standard_normal((400, 3)) * 0.15, axis=0) * np.linspace(0, 1, 400)[:, None]
        place = rng.random(3) * shape + np.linspace(0, 60, 400)[:, None] * rng.standard_normal(3) * (0.3, 1, 1) + steps
        inside = ((place >= 0) & (place < shape)).all(axis=1)
        np.add.at(clean, tuple(place[inside].astype(int).T), 1.0)
    for _ in range(60):
        clean[tuple((rng.random(3) * shape).astype(int))] += 20 * rng.random()
    clean = gaussian_filter(clean, (2.0, 1.0, 1.0))
    return np.asarray(clean / np.quantile(clean, 0.9995), np.float32).clip(0, 1)


def read_volumes(folder: Path) -> dict[str, FloatArray]:
    """By name: those of the folder, and the simulated one."""
    found = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            found[path.stem] = (file["volume"] / file["unit"]).astype(np.float32)
    return found | {"fluorescence": simulate_fluorescence()}


def crop(volume: FloatArray) -> FloatArray:
    """The middle of a volume."""
    return volume[tuple(slice(max(0, n - m) // 2, max(0, n - m) // 2 + m) for n, m in zip(volume.shape, CROP))]  # noqa: B905


def total_variation(noisy: FloatArray, sigma: float, weight: float) -> Any:
    return skimage.denoise_tv_chambolle(noisy, weight=weight * sigma)


def non_local_means(noisy: FloatArray, sigma: float, strength: float) -> Any:
    return skimage.denoise_nl_means(noisy, patch_size=3, patch_distance=4, h=strength * sigma, sigma=sigma)


def together(quality: str) -> Method:
    return lambda noisy, sigma: denoise(noisy, sigma, depth_axis=0, white=1.0, quality=quality, channel_axis=())


def methods() -> dict[str, list[Method]]:
    """By name, with a function for every value of the parameter."""
    found: dict[str, list[Method]] = {
        "slices": [lambda noisy, sigma: denoise(noisy, sigma, white=1.0, channel_axis=())],
        **{quality: [together(quality)] for quality in ("fast", "default", "best")},
        "tv": [partial(total_variation, weight=weight) for weight in (0.6, 0.9, 1.3, 1.8)],
        "nlm": [partial(non_local_means, strength=strength) for strength in (0.4, 0.6, 0.8, 1.0)],
    }
    if find_spec("bm4d") is not None:
        found["bm4d"] = [lambda noisy, sigma: import_module("bm4d").bm4d(noisy, sigma)]
    return found


def measure(runs: list[Method], clean: FloatArray, noisy: FloatArray, sigma: float) -> dict[str, float]:
    """The best PSNR of the runs, and the seconds of the processor for each, per million voxels."""
    start = time.process_time()
    best = max(psnr(np.asarray(run(noisy, sigma), np.float32), clean) for run in runs)
    seconds = (time.process_time() - start) / len(runs) / clean.size * 1e6
    return {"psnr": round(best, 3), "seconds_per_megavoxel": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", "data")))
    parser.add_argument("--crops", action="store_true")
    parser.add_argument("--only", nargs="+", help="names of volumes; then nothing is written")
    parser.add_argument("--methods", nargs="+", choices=list(methods()), help="then nothing is written")
    parser.add_argument("--levels", nargs="+", type=float, default=LEVELS)
    arguments = parser.parse_args()
    chosen = {name: runs for name, runs in methods().items() if name in (arguments.methods or methods())}
    volumes = read_volumes(arguments.data / "volumes")
    for runs in chosen.values():  # compiled beforehand
        runs[0](np.zeros((8, 24, 24), np.float32) + np.eye(24, dtype=np.float32), 0.1)
    print(f"{'':24}" + "".join(f"{name:>16}" for name in chosen))
    rows = []
    for number, (name, volume) in enumerate(volumes.items()):
        if arguments.only and name not in arguments.only:
            continue
        clean = crop(volume) if arguments.crops else volume
        for sigma in arguments.levels:
            drawn = np.random.default_rng(FIRST_SEED + number).standard_normal(clean.shape)
            noisy = np.asarray(clean + sigma * drawn, np.float32)
            row = {key: measure(runs, clean, noisy, sigma) for key, runs in chosen.items()}
            rows.append({"volume": name, "shape": clean.shape, "sigma": sigma, "methods": row})
            cells = "".join(f"{one['psnr']:9.2f}{one['seconds_per_megavoxel']:7.0f}" for one in row.values())
            print(f"{name:16}{sigma:8.2f}{cells}", flush=True)
    means = {key: round(float(np.mean([row["methods"][key]["psnr"] for row in rows])), 3) for key in chosen}
    times = {
        key: round(float(np.mean([row["methods"][key]["seconds_per_megavoxel"] for row in rows])), 1) for key in chosen
    }
    print(f"{'mean':24}" + "".join(f"{means[key]:9.2f}{times[key]:7.0f}" for key in chosen))
    if not (arguments.only or arguments.methods):
        mean = {key: {"psnr": means[key], "seconds_per_megavoxel": times[key]} for key in chosen}
        settings = {"first_seed": FIRST_SEED, "levels": list(arguments.levels), "crops": arguments.crops}
        write_record(RECORDS / "volumes.json", {**settings, "mean": mean, "volumes": rows})


if __name__ == "__main__":
    main()
