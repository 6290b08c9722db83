"""Do error bars cover what they say, and is the PSNR the one foretold? On BSD68, and on real noise (CC15).

    python -m paper.evaluations.error_coverage [ROW ...] [--every N] [--data DIR]

Coverage of nominal 50, 68 and 90 % intervals (denoised ± k standard errors) over all pixels, and of 90 % ones in each
third of the pixels by local contrast of the clean image (its standard deviation under a Gaussian of two pixels); true
PSNR against the one foretold, and how far off Stein's estimate is by the chance of the noise alone. Every N-th image,
with noise by the usual protocol (seed 1000 + i). Images that are done are kept in out/error_coverage until their row is
whole, so that a run goes on where it was; the row is then added to records/error_coverage.json. Nothing is
chosen by it, but for one range: see docs/errors.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from heatprior import denoise
from heatprior.arrays import FloatArray, IntArray
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey, read_image
from heatprior.noise.profiles import NoiseProfile, StationaryNoise
from heatprior.noise_value import NoiseSpectrum
from paper import RECORDS, bsds500
from paper.claims.plots import save_diagram
from paper.records import running_commit, write_record

RESULT = RECORDS / "error_coverage.json"
UNFINISHED = RECORDS.parent / "out" / "error_coverage"
PICTURE = RECORDS.parent / "docs" / "errors-coverage.png"
SHOWN = {50: 0.67449, 68: 0.99446, 90: 1.64485}  # per cent: standard errors to either side
LEVELS = (15, 25, 50)  # 255 sigma
KINDS = ("told", "map", "blind", "correlated")
CUT_OFF = 0.15  # cycles per pixel, of correlated noise
WIDTH = 2.0  # pixels, of the Gaussian for local contrast
OPTIONS: dict[str, dict[str, Any]] = {
    "fast": {"quality": "fast"},
    "patch7 eb": {"prior": "patch7", "steps": 1},
    "default": {},
}


class Trial(NamedTuple):
    """A clean image with its noise, what the denoiser is told of it, and the axis of its channels."""

    clean: FloatArray
    noisy: FloatArray
    sigma: float | FloatArray | None
    channel_axis: int | None = None
    noise: str | NoiseProfile = "auto"


class Row(NamedTuple):
    """How images are denoised, and the trials, each made when it is its turn."""

    options: dict[str, Any]
    trials: list[Callable[[], Trial]]


def main() -> None:
    names = [f"{name} {level} {kind}" for kind in KINDS for name in OPTIONS for level in LEVELS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join([*names, 'cc15'])}")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    for name in arguments.rows or [*names, "cc15"]:
        found = measured(name, row_of(name, arguments.data), arguments.every)
        print(as_line(name, found), flush=True)
        before = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else {}
        write_record(RESULT, {"first_seed": FIRST_SEED, "rows": {**before, name: found}})
    draw(json.loads(RESULT.read_text())["rows"])


def row_of(name: str, data: Path | None) -> Row:
    """By its name: a denoiser, a level, and what is told of the noise; or CC15."""
    if name == "cc15":
        paths = sorted((bsds500.data_folder(data) / "cc15").glob("*_real.png"))
        return Row({}, [partial(of_cc15, path) for path in paths])
    denoiser, level, kind = name.rsplit(maxsplit=2)
    sigma = int(level) / 255
    return Row(
        OPTIONS[denoiser], [partial(of_bsd68, path, i, sigma, kind) for i, path in enumerate(bsds500.bsd68(data))]
    )


def measured(name: str, row: Row, every: int) -> dict[str, Any]:
    """One row of the record, from one line for each image."""
    trials = row.trials[::every]
    thirds = np.quantile(np.concatenate([symmetric_contrast(trial()).ravel()[::4] for trial in trials]), [1 / 3, 2 / 3])
    path = UNFINISHED / f"{name.replace(' ', '-')}-{every}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for trial in trials[len(done) :]:
        done.append(of_one(trial(), row.options, thirds))
        with path.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    inside, pixels, inside_third, pixels_third = (
        np.sum([one[key] for one in done], axis=0) for key in ("inside", "pixels", "inside_third", "pixels_third")
    )
    foretold = [one for one in done if np.isfinite(one["foretold"])]
    gaps = np.array([one["foretold"] - one["true"] for one in foretold])
    covered = [one["inside"][-1] / one["pixels"] for one in done]
    chance = [abs(one["by_chance"]) for one in done if one["by_chance"] is not None]
    path.unlink()
    return {
        "images": len(done),
        "coverage": {str(part): round(float(hits / pixels), 4) for part, hits in zip(SHOWN, inside, strict=True)},
        "coverage_90_by_third": [round(float(part), 4) for part in inside_third / pixels_third],
        "coverage_90_by_image": [round(min(covered), 4), round(max(covered), 4)],
        "stated_square_over_true": round(
            sum(one["stated_square"] for one in done) / sum(one["square"] for one in done), 3
        ),
        "psnr_withheld": len(done) - len(foretold),
        "psnr_mean_absolute_error": round(float(np.mean(np.abs(gaps))), 4),
        "psnr_worst_error": round(float(np.max(np.abs(gaps))), 4),
        "psnr_mean_error": round(float(np.mean(gaps)), 4),
        "psnr_error_by_chance": round(float(np.mean(chance)), 4) if chance else None,
        "psnr_stated_error": round(float(np.sqrt(np.mean([one["stated"] ** 2 for one in foretold]))), 4),
        "psnr_errors": [round(float(gap), 3) for gap in gaps],
        "processor_seconds": round(float(np.sum([one["seconds"] for one in done])), 1),
        "commit": running_commit(),
    }


def of_one(trial: Trial, options: dict[str, Any], thirds: FloatArray) -> dict[str, Any]:
    """How many pixels of an image are inside their intervals, and its PSNR."""
    start = time.process_time()
    told: dict[str, Any] = {"noise": trial.noise, "channel_axis": trial.channel_axis}
    found = denoise(trial.noisy, trial.sigma, white=1.0, return_error=True, **told, **options)
    error = np.abs(found.pixels - trial.clean)
    ratio = error / np.maximum(found.error, 1e-9)
    third = np.digitize(symmetric_contrast(trial), thirds)
    narrow = [ratio[third == k] for k in range(3)]
    return {
        "inside": [int(np.count_nonzero(ratio < wide)) for wide in SHOWN.values()],
        "pixels": ratio.size,
        "inside_third": [int(np.count_nonzero(part < SHOWN[90])) for part in narrow],
        "pixels_third": [part.size for part in narrow],
        "stated_square": float(np.sum(np.square(found.error), dtype=np.float64)),
        "square": float(np.sum(np.square(error), dtype=np.float64)),
        "true": -10.0 * float(np.log10(np.mean(np.square(error), dtype=np.float64))),
        "by_chance": by_chance(trial, error),
        "foretold": found.predicted.psnr,
        "stated": found.predicted.stderr,
        "seconds": time.process_time() - start,
    }


def by_chance(trial: Trial, error: FloatArray) -> float | None:
    """How far off, in dB, the PSNR by Stein's estimate is because the pixels happen to hold more or less noise.

    None where the strength of the noise was not told.
    """
    if trial.sigma is None:
        return None
    surplus = np.square(trial.noisy - trial.clean) - np.square(trial.sigma)
    part = float(np.mean(surplus, dtype=np.float64) / np.mean(np.square(error), dtype=np.float64))
    return 10.0 * float(np.log10(max(1.0 + part, 1e-3)))


def as_line(name: str, found: dict[str, Any]) -> str:
    """A row as one of the table in docs/errors.md."""
    covered = " | ".join(f"{100 * part:.1f}" for part in found["coverage"].values())
    thirds = ", ".join(f"{100 * part:.1f}" for part in found["coverage_90_by_third"])
    errors = (found[f"psnr_{key}"] for key in ("mean_absolute_error", "worst_error", "stated_error", "error_by_chance"))
    psnr = " | ".join("" if value is None else f"{value:.2f}" for value in errors)
    size = f"{found['stated_square_over_true']:.2f}"
    return f"| {name} | {found['images']} | {covered} | {thirds} | {size} | {psnr} | {found['psnr_withheld']} |"


def draw(rows: dict[str, Any]) -> None:
    """Covered against said, and 90 % intervals by contrast, of all rows that there are."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    whole, parts = figure.subplots(1, 2)
    colours = {"default": "C0", "fast": "C1", "patch7 eb": "C2", "cc15": "C3"}
    named: set[str] = set()
    for row, found in rows.items():
        name = row if row == "cc15" else row.rsplit(maxsplit=2)[0]
        style = {"color": colours[name], "marker": "o", "alpha": 0.7, "label": None if name in named else name}
        named.add(name)
        whole.plot(list(SHOWN), [100 * part for part in found["coverage"].values()], **style)
        parts.plot([1, 2, 3], [100 * part for part in found["coverage_90_by_third"]], **style)
    whole.plot([50, 90], [50, 90], color="grey", linestyle=":")
    whole.set(xlabel="said, %", ylabel="covered, %", title="all pixels; a line for each level and kind of noise")
    whole.legend()
    parts.axhspan(82, 96, color="grey", alpha=0.15)
    parts.set(title="90 % intervals, by contrast", xticks=[1, 2, 3], xticklabels=["low", "middle", "high"])
    save_diagram(figure, PICTURE)


def of_bsd68(path: Path, number: int, sigma: float, kind: str) -> Trial:
    """Known noise; a map of it, from half to three halves of the level across; correlated noise; or nothing told."""
    clean = read_grey(path) / np.float32(255)
    if kind == "correlated":
        spectrum = NoiseSpectrum(np.exp(-np.square(np.hypot(*np.meshgrid(*[np.fft.fftfreq(32)] * 2)) / CUT_OFF)))
        field = spectrum.field(clean.shape, np.random.default_rng(FIRST_SEED + number))
        variance = np.array([sigma**2])
        profile = NoiseProfile((StationaryNoise(spectrum, np.array([0.5]), variance),))
        return Trial(clean, np.asarray(clean + sigma * field, np.float32), None, noise=profile)
    noise = with_noise(np.zeros_like(clean), number, sigma)
    if kind == "map":
        across = np.linspace(0.5, 1.5, clean.shape[1], dtype=np.float32) * np.ones_like(clean)
        return Trial(clean, clean + across * noise, sigma * across)
    return Trial(clean, clean + noise, None if kind == "blind" else sigma)


def of_cc15(path: Path) -> Trial:
    """A camera's picture; the mean of many shots stands for the truth."""
    noisy, clean = (
        np.asarray(read_image(file).pixels / np.float32(255), np.float32)
        for file in (path, path.with_name(path.name.replace("_real", "_mean")))
    )
    return Trial(clean, noisy, None, -1)


def symmetric_contrast(trial: Trial) -> FloatArray:
    """Local contrast of the clean image."""
    return local_contrast(trial.clean, trial.channel_axis)


def local_contrast(image: FloatArray, channel_axis: int | None = None) -> FloatArray:
    """The standard deviation around every pixel."""
    over = (WIDTH, WIDTH) if channel_axis is None else (WIDTH, WIDTH, 0.0)
    return np.sqrt(np.maximum(gaussian_filter(image**2, over) - gaussian_filter(image, over) ** 2, 0.0))


def third_of(contrast: FloatArray) -> IntArray:
    """0, 1 or 2: whether a pixel is among the third of least contrast, in the middle, or of most."""
    return np.asarray(np.digitize(contrast, np.quantile(contrast, [1 / 3, 2 / 3])), np.int64)


if __name__ == "__main__":
    main()
