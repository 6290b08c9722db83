"""Few photons a pixel, told and blind, beside the variance-stabilising transform with BM3D: mean PSNR in dB.

    python -m paper.evaluations.counts [--data DIR] [--again]      everything; BM3D takes half an hour
    python -m paper.evaluations.counts --limit 4                   a trial; writes nothing

Crops of 256² of the validation images, scaled to a peak of 1 to 100 counts and drawn from the Poisson distribution, and
W2S: twelve fluorescence frames of 8 bits, each stretched by itself, beside the mean of 400 (Zhou et al. 2020), where
PSNR is after the best affine fit of the result to the mean. Told is the gain, for W2S the line fitted to frame and
mean; blind is nothing. BM3D (extra `bench`) is told, has sigma 1 and the same exact unbiased inverse; its results are
taken from the record if they are there, unless `--again`. Writes records/counts.json.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import heatprior as hp
from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, psnr
from heatprior.images import read_grey
from heatprior.noise.stabilisation import split_line
from paper import RECORDS, bsds500
from paper.records import write_record

PEAKS = (1, 2, 5, 10, 20, 50, 100)
CROP = (slice(30, 286), slice(30, 286))
BM3D_RANGE = 0.7  # of full scale, that stabilised values are brought to, as its authors do
TURNS, LEAST_PART = 10, 0.05  # of the fit of a line, and of the mean variance: what it may be at least
RESULT = RECORDS / "counts.json"


class Trial(NamedTuple):
    """A noisy image, its noise, and how good a denoised one is."""

    group: str
    name: str
    noisy: FloatArray
    noise: hp.PoissonGaussian
    quality: Callable[[FloatArray], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, help="so many images of each kind; writes nothing")
    parser.add_argument("--again", action="store_true", help="run BM3D again")
    arguments = parser.parse_args()
    trials = [*counted(arguments.data, arguments.limit), *fluorescence(arguments.data, arguments.limit)]
    known = {} if arguments.again or not RESULT.exists() else json.loads(RESULT.read_text())["trials"]
    found: dict[str, dict[str, float]] = {}
    for trial in tqdm(trials, disable=None):
        before = known.get(f"{trial.group} {trial.name}", {}).get("bm3d")
        found[f"{trial.group} {trial.name}"] = measure(trial, before)
    groups = {group: summarise(found, group) for group in dict.fromkeys(trial.group for trial in trials)}
    for group, row in groups.items():
        print(group, "  ".join(f"{method} {value:.2f}" for method, value in row.items()))
    if arguments.limit is None:
        write_record(RESULT, {"first_seed": FIRST_SEED, "crop": [30, 286], "mean": groups, "trials": found})
        print(f"wrote {RESULT}")


def measure(trial: Trial, bm3d: float | None) -> dict[str, float]:
    image = trial.noisy.astype(np.uint8) if trial.group == "W2S" else trial.noisy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return {
            "noisy": trial.quality(trial.noisy),
            "bm3d": trial.quality(stabilised_bm3d(trial.noisy, trial.noise)) if bm3d is None else bm3d,
            "told": trial.quality(hp.denoise(trial.noisy, noise=trial.noise)),
            "blind": trial.quality(hp.denoise(image).astype(np.float64)),
        }


def summarise(found: dict[str, dict[str, float]], group: str) -> dict[str, float]:
    rows = [row for name, row in found.items() if name.startswith(f"{group} ")]
    return {method: float(np.mean([row[method] for row in rows])) for method in rows[0]}


def counted(data: Path | None, limit: int | None) -> Iterator[Trial]:
    for number, path in enumerate(bsds500.validation(data)[:limit]):
        clean = read_grey(path)[CROP].astype(np.float64) / 255
        for peak in PEAKS:
            noisy = np.random.default_rng(FIRST_SEED + number).poisson(peak * clean).astype(np.float64)

            def quality(image: FloatArray, peak: int = peak, clean: FloatArray = clean) -> float:
                return psnr(image / peak, clean)

            yield Trial(f"peak {peak}", path.stem, noisy, hp.PoissonGaussian(1.0), quality)


def fluorescence(data: Path | None, limit: int | None) -> Iterator[Trial]:
    folder = bsds500.data_folder(data) / "real" / "w2s"
    for path in sorted(folder.glob("*_real.tif"))[:limit]:
        noisy, mean = (read_grey(path.with_name(path.name.replace("real", kind))) for kind in ("real", "mean"))
        noisy, mean = noisy.astype(np.float64), mean.astype(np.float64)

        def quality(image: FloatArray, mean: FloatArray = mean) -> float:
            return -10.0 * float(np.log10(np.mean(np.square(fit(image, mean) - mean)) / 255**2))

        yield Trial("W2S", path.stem.removesuffix("_real"), noisy, true_noise(noisy, mean), quality)


def fit(image: FloatArray, target: FloatArray) -> FloatArray:
    """a · image + b that is nearest to a target."""
    return np.asarray(np.polyval(np.polyfit(image.ravel(), target.ravel(), 1), image))


def true_noise(noisy: FloatArray, mean: FloatArray) -> hp.PoissonGaussian:
    """The line of squared differences over brightness, weighted by the variance that it says."""
    light = fit(mean, noisy)
    squares = np.square(noisy - light)
    variance = np.ones_like(squares)
    for _ in range(TURNS):
        line = np.polyfit(light.ravel(), squares.ravel(), 1, w=1.0 / variance.ravel())
        variance = np.maximum(np.polyval(line, light), LEAST_PART * squares.mean())
    return split_line(float(line[0]), float(line[1]), noisy)


def stabilised_bm3d(noisy: FloatArray, noise: hp.PoissonGaussian) -> FloatArray:
    stabilised: Any = noise.stabilise(noisy)
    low, scale = stabilised.min(), BM3D_RANGE / np.ptp(stabilised)
    shift = (1.0 - BM3D_RANGE) / 2.0
    clean = import_module("bm3d").bm3d((stabilised - low) * scale + shift, scale)
    return noise.unstabilise((clean - shift) / scale + low)


if __name__ == "__main__":
    main()
