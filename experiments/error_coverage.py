"""Do error bars cover what they say, and is the PSNR the one foretold? On BSD68, and on real noise (CC15).

    python experiments/error_coverage.py [ROW ...] [--data DIR]

Coverage of nominal 50, 68 and 90 % intervals (denoised ± k standard errors) over all pixels, and of 90 % ones in each
third of the pixels by local contrast of the clean image (its standard deviation under a Gaussian of two pixels); true
PSNR against the one by Stein's risk. Images and noise by the usual protocol (seed 1000 + i). Each row is added to
experiments/results/error_coverage.json once it is whole; nothing is chosen by it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from heatprior import denoise
from heatprior.arrays import FloatArray, IntArray
from heatprior.data import bsds500
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey, read_image
from heatprior.pictures.figures import save_figure
from heatprior.records import running_commit, write_record

RESULT = Path(__file__).parent / "results" / "error_coverage.json"
SHOWN = {50: 0.67449, 68: 0.99446, 90: 1.64485}  # per cent: standard errors to either side
PICTURE = Path(__file__).parent.parent / "docs" / "errors-coverage.png"
LEVELS = (15, 25, 50)  # 255 sigma
WIDTH = 2.0  # pixels, of the Gaussian for local contrast
OPTIONS: dict[str, dict[str, Any]] = {
    "fast": {"quality": "fast"},
    "patch7 eb": {"prior": "patch7", "method": "eb"},
    "default": {},
}


class Trial(NamedTuple):
    """A clean image with its noise, what the denoiser is told of it, and the axis of its channels."""

    clean: FloatArray
    noisy: FloatArray
    sigma: float | FloatArray | None
    channel_axis: int | None = None


def main() -> None:
    rows = [f"{name} {level}{kind}" for kind in ("", " map", " blind") for name in OPTIONS for level in LEVELS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join([*rows, 'cc15'])}")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    for row in arguments.rows or [*rows, "cc15"]:
        found = measured(row, arguments.data)
        print(row, json.dumps(found), flush=True)
        before = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else {}
        write_record(RESULT, {"first_seed": FIRST_SEED, "rows": {**before, row: found}})
    draw(json.loads(RESULT.read_text())["rows"])


def measured(row: str, data: Path | None) -> dict[str, Any]:
    """One row of the record."""
    start = time.process_time()
    if row == "cc15":
        options, trials = {}, list(of_cc15(data))
    else:
        name, level, kind = (*row.rsplit(maxsplit=1), "") if row[-1].isdigit() else _parted(row)
        options, trials = OPTIONS[name], list(of_bsd68(int(level) / 255, kind, data))
    ratios, contrasts, gaps, stated = [], [], [], []
    for trial in trials:
        found = denoise(
            trial.noisy, trial.sigma, white=1.0, channel_axis=trial.channel_axis, return_error=True, **options
        )
        error = np.abs(found.pixels - trial.clean)
        ratios.append((error / np.maximum(found.error, 1e-9)).ravel())
        contrasts.append(local_contrast(trial.clean, trial.channel_axis).ravel())
        true = -10.0 * np.log10(np.mean(np.square(error), dtype=np.float64))
        gaps.append(float(found.predicted.psnr - true))
        stated.append(found.predicted.stderr)
    ratio, third = np.concatenate(ratios), third_of(np.concatenate(contrasts))
    return {
        "images": len(trials),
        "coverage": {str(part): round(float(np.mean(ratio < wide)), 4) for part, wide in SHOWN.items()},
        "coverage_90_by_third": [round(float(np.mean(ratio[third == k] < SHOWN[90])), 4) for k in range(3)],
        "psnr_mean_absolute_error": round(float(np.mean(np.abs(gaps))), 4),
        "psnr_worst_error": round(float(np.max(np.abs(gaps))), 4),
        "psnr_mean_error": round(float(np.mean(gaps)), 4),
        "psnr_stated_error": round(float(np.sqrt(np.mean(np.square(stated)))), 4),
        "processor_seconds": round(time.process_time() - start, 1),
        "commit": running_commit(),
    }


def draw(rows: dict[str, Any]) -> None:
    """Covered against said, and 90 % intervals by contrast, of all rows that there are."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    whole, parts = figure.subplots(1, 2)
    for row, found in rows.items():
        whole.plot(list(SHOWN), [100 * part for part in found["coverage"].values()], marker="o", label=row)
        parts.plot([1, 2, 3], [100 * part for part in found["coverage_90_by_third"]], marker="o")
    whole.plot([50, 90], [50, 90], color="grey", linestyle=":")
    whole.set(xlabel="said, %", ylabel="covered, %", title="all pixels")
    whole.legend(fontsize=7)
    parts.axhspan(82, 96, color="grey", alpha=0.15)
    parts.set(title="90 % intervals, by contrast", xticks=[1, 2, 3], xticklabels=["low", "middle", "high"])
    save_figure(figure, PICTURE)


def _parted(row: str) -> tuple[str, str, str]:
    name, level, kind = row.rsplit(maxsplit=2)
    return name, level, kind


def of_bsd68(sigma: float, kind: str, data: Path | None) -> Iterator[Trial]:
    """Known noise; a map of it, from half to three halves of the level across; or nothing told."""
    for number, path in enumerate(bsds500.bsd68(data)):
        clean = read_grey(path) / np.float32(255)
        across = np.linspace(0.5, 1.5, clean.shape[1], dtype=np.float32) * np.ones_like(clean)
        noise = with_noise(np.zeros_like(clean), number, sigma)
        if kind == "map":
            yield Trial(clean, clean + across * noise, sigma * across)
        else:
            yield Trial(clean, clean + noise, None if kind == "blind" else sigma)


def of_cc15(data: Path | None) -> Iterator[Trial]:
    """A camera's pictures; the mean of many shots stands for the truth."""
    for path in sorted((bsds500.data_folder(data) / "cc15").glob("*_real.png")):
        noisy, clean = (
            np.asarray(read_image(file).pixels / np.float32(255), np.float32)
            for file in (path, path.with_name(path.name.replace("_real", "_mean")))
        )
        yield Trial(clean, noisy, None, -1)


def local_contrast(image: FloatArray, channel_axis: int | None = None) -> FloatArray:
    """The standard deviation around every pixel."""
    over = (WIDTH, WIDTH) if channel_axis is None else (WIDTH, WIDTH, 0.0)
    return np.sqrt(np.maximum(gaussian_filter(image**2, over) - gaussian_filter(image, over) ** 2, 0.0))


def third_of(contrast: FloatArray) -> IntArray:
    """0, 1 or 2: whether a pixel is among the third of least contrast, in the middle, or of most."""
    return np.asarray(np.digitize(contrast, np.quantile(contrast, [1 / 3, 2 / 3])), np.int64)


if __name__ == "__main__":
    main()
