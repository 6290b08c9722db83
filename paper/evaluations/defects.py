"""Hot pixels and other defects of sensors: what is found where there are some, and where there are none.

    python -m paper.evaluations.defects [--data DIR] [--every N]       three minutes; writes records/defects.json
    python -m paper.evaluations.defects fit [--data DIR]               what the constants of noise/defects.py come from

False alarms are counted in pictures without known defects, by source: none of them is among the photographs that the
constants were fitted on. Then 43 hot pixels a 160,000 are put into the validation images, in noise of several levels:
how many of those that show (by more than six standard deviations of the noise) are found, and what the error of the
result is, over that without hot pixels. Last, dead columns and column offsets.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tqdm import tqdm

import heatprior as hp
from heatprior.border.entry import enter
from heatprior.border.pixels import in_unit_range
from heatprior.images import read_grey
from heatprior.noise.defects import STEPS, find_isolated, mend
from paper import RECORDS
from paper.records import write_record
from paper.weights.drawings import draw
from paper.weights.noise_pictures import Pictures
from paper.weights.picture_edits import as_bytes, read

RESULT = RECORDS / "defects.json"
SEED = 500
HOT = 43 / 160_000  # of the pixels
SHOWS = 6.0  # standard deviations of the noise
LEVELS = (5, 10, 15, 25)
CROP = (slice(30, 286), slice(30, 286))
Picture = NDArray[Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["judge", "fit"], default="judge")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    parser.add_argument("--every", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.part == "fit":
        fit(arguments.data)
        return
    record = {
        "every": arguments.every,
        "false_alarms": judge_false_alarms(arguments.data, arguments.every),
        "hot": judge_hot(arguments.data, arguments.every),
        "lines": judge_lines(arguments.data, arguments.every),
        "seconds": measure_time(),
    }
    write_record(RESULT, record)
    print(f"wrote {RESULT}")


def fit(data: Path) -> None:
    """Print what photographs without noise hold of isolated pixels, and white noise."""
    found, pixels = [], 0
    for number, path in enumerate(tqdm(sorted((data / "bsds500" / "train").glob("*.jpg")), disable=None)):
        channel = in_unit_range(read(path)[..., number % 3], 255.0)
        found.append(find_isolated(channel, float(STEPS[0]), 1 / 255).isolation)
        pixels += channel.size
    every = np.concatenate(found)
    for limit in (5.06, 7.6, 11.4, 17.0, 25.6):
        print(f"beyond {limit}: {np.count_nonzero(every > limit) / pixels:.2g} of the pixels")
    counts = np.histogram(every, STEPS)[0]
    print("ratios of counts, photographs:", counts[1:] / counts[:-1])
    noise = np.random.default_rng(SEED).standard_normal((1024, 1024)).astype(np.float32)
    counts = np.histogram(find_isolated(noise, float(STEPS[0]), 0.0).isolation, STEPS)[0]
    print("white noise:", counts / noise.size, counts[1:] / counts[:-1])


def sources(data: Path, every: int) -> Iterator[tuple[str, list[Picture]]]:
    """Pictures without known defects."""
    pictures = Pictures(data)
    validation = [data / "bsds500" / "val" / Path(name).name for name in (data / "val32.txt").read_text().split()]
    rng = np.random.default_rng(SEED)
    clean = [read_grey(path.with_suffix(".jpg")).astype(np.float64) for path in validation][::every]
    yield "BSD68", [np.asarray(Image.open(path)) for path in sorted((data / "bsd68").glob("*.png"))[::every]]
    yield "validation, colour", [read(path.with_suffix(".jpg")) for path in validation[::every]]
    for name in ("cc15", "polyu", "sidd"):
        pairs = [pair for pair in pictures.pairs if pair.source.startswith(name)][::every]
        yield f"{name}, noisy", [read(pair.noisy) for pair in pairs]
        yield f"{name}, mean", [read(pair.mean) for pair in pairs]
    frames = sorted((data / "real" / "w2s").glob("*.tif"))[::every]
    yield "w2s", [read_grey(path) for path in frames]
    yield "scikit-image", [np.asarray(Image.open(path).convert("RGB")) for path in pictures.bundled[::every]]
    yield "drawings", [draw(np.random.default_rng(91000 + number)) for number in range(0, 100, every)]
    for sigma in (5, 25, 50):
        yield f"white noise {sigma}", [as_bytes(x + sigma * rng.standard_normal(x.shape)) for x in clean]
    for peak in (1, 2, 5, 20):
        yield f"{peak} photons", [rng.poisson(x / 255 * peak).astype(np.uint16) for x in clean]


def judge_false_alarms(data: Path, every: int) -> dict[str, Any]:
    """In how many pictures anything is found, how many pixels, and how many pictures have lines or stripes."""
    found = {}
    for name, pictures in sources(data, every):
        defects = [mend(enter(one, channel_axis=-1 if one.ndim == 3 else None))[1] for one in pictures]
        found[name] = {
            "pictures": len(pictures),
            "with_outliers": sum(own.hot + own.dead > 0 for own in defects),
            "outliers": sum(own.hot + own.dead for own in defects),
            "with_lines": sum(own.columns + own.rows + own.stripes > 0 for own in defects),
        }
        print(name, found[name], flush=True)
    return found


def judge_hot(data: Path, every: int) -> dict[str, Any]:
    """Of hot pixels in noise: what part is found, and the error of the result over that without them."""
    names = (data / "val32.txt").read_text().split()[:: 2 * every]
    result = {}
    for sigma in LEVELS:
        shown = told = 0
        ratios = []
        for number, name in enumerate(names):
            rng = np.random.default_rng(SEED + number)
            clean = read_grey((data / "bsds500" / "val" / Path(name).name).with_suffix(".jpg"))[CROP].astype(np.float64)
            noisy = as_bytes(clean + sigma * rng.standard_normal(clean.shape))
            hot = rng.choice(clean.size, round(HOT * clean.size), replace=False)
            spoilt = noisy.copy()
            spoilt.flat[hot] = 255
            shows = hot[255 - clean.flat[hot] > SHOWS * sigma]
            mended = mend(enter(spoilt))[0].pixels
            shown, told = shown + len(shows), told + int((mended.flat[shows] != 255).sum())
            errors = [
                [_error(hp.denoise(image, level, keep_outliers=kept), clean) for level in (None, float(sigma))]
                for image, kept in ((noisy, False), (spoilt, False), (spoilt, True))
            ]
            ratios.append([[errors[k][j] / errors[0][j] for k in (1, 2)] for j in (0, 1)])
        mean = np.mean(ratios, axis=0)
        result[str(sigma)] = {
            "images": len(names),
            "found_of_those_that_show": round(told / max(shown, 1), 3),
            "error_blind": round(float(mean[0, 0]), 3),
            "error_blind_kept": round(float(mean[0, 1]), 3),
            "error_told": round(float(mean[1, 0]), 3),
            "error_told_kept": round(float(mean[1, 1]), 3),
        }
        print(sigma, result[str(sigma)], flush=True)
    return result


def judge_lines(data: Path, every: int) -> dict[str, Any]:
    """A dead column, and offsets of half the noise, in noise of 10 grey levels: how often found; error over without."""
    names = (data / "val32.txt").read_text().split()[:: 2 * every]
    found: dict[str, list[Any]] = {"dead column": [], "stripes": []}
    for number, name in enumerate(names):
        rng = np.random.default_rng(SEED + number)
        clean = read_grey((data / "bsds500" / "val" / Path(name).name).with_suffix(".jpg"))[CROP].astype(np.float64)
        noisy = clean + 10.0 * rng.standard_normal(clean.shape)
        before = _error(hp.denoise(as_bytes(noisy), 10.0), clean)
        column, striped = as_bytes(noisy), as_bytes(noisy + 5.0 * rng.standard_normal(clean.shape[1]))
        column[:, 100] = 0
        for kind, image in (("dead column", column), ("stripes", striped)):
            own = mend(enter(image))[1]
            errors = [_error(hp.denoise(image, 10.0, keep_outliers=kept), clean) / before for kept in (False, True)]
            found[kind].append([own.columns == 1 if kind == "dead column" else own.stripes == 1, *errors])
    result = {}
    for kind, rows in found.items():
        means = np.mean(rows, axis=0)
        result[kind] = {name: round(float(means[k]), 3) for k, name in enumerate(("found", "error", "error_kept"))}
    return result


def measure_time() -> dict[str, float]:
    """Seconds of one thread for a megapixel of noise: what looking for defects takes, and denoising (default)."""
    noisy = as_bytes(128 + 20 * np.random.default_rng(SEED).standard_normal((1024, 1024)))
    entered = enter(noisy)
    seconds = []
    for work in (lambda: mend(entered), lambda: hp.denoise(noisy, 20.0, keep_outliers=True)):
        work()
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return {
        "looking": round(seconds[0], 3),
        "denoising": round(seconds[1], 3),
        "part": round(seconds[0] / seconds[1], 3),
    }


def _error(image: Picture, clean: Picture) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(image.astype(np.float64) - clean))))


if __name__ == "__main__":
    main()
