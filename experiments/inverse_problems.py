"""Inverse problems: `hp.restore` against total variation and a Wiener filter, each of these with its best weight.

    python experiments/inverse_problems.py [--images 8] [--problems deblur inpaint-50 …] [--prior tuned]
    python experiments/inverse_problems.py --bsd68 [--first 0 --every 1]

HEATPRIOR_DATA is the folder that holds bsds500, val32.txt, kernels/levin09.npz and, for --bsd68, bsd68.

Grey images, crop [30:286, 30:286] of the first validation images in file order, noise 2.55/255 by
default_rng(1000 + n). Deblurring and enlarging are cyclic, deblurring with kernels 1, 4 and 6 of Levin et al.; CT is of
crops of 128×128, for the sake of total variation, which has no closed form there. "deblur-edges" saw the valid part
only; "inside" is the PSNR of the pixels at least 16 away from the edge. The weights of total variation and Wiener are
the best for the mean PSNR: they are chosen by the truth, and nothing of `hp.restore` is. Times are medians over
images, in processor time; those of total variation are of one weight. BSD68 is the same crop of every image, with all
eight kernels. The schedule was chosen on crops of the ninth, twelfth and fourteenth validation image, which are not
reported here.
Every case is kept in the JSON as soon as it is done, and is not done again; several processes may share the work.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tomography import projection_matrix
from total_variation import total_variation

import heatprior as hp
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from heatprior.images import read_grey
from heatprior.records import write_record
from heatprior.restoration.operators.linear import Linear
from heatprior.restoration.operators.measurement import Data, Measurement
from heatprior.restoration.operators.point_spreads import gaussian_kernel
from heatprior.restoration.operators.tikhonov import undetermined_part
from heatprior.restoration.plug_and_play import START, TRUST

SIGMA = 2.55 / 255
CROP, SIDE, MARGIN = 30, 256, 16
FIRST_WEIGHT = 12.0  # of total variation, over sigma²
ROUGH, FINE = 2.0, 1.25  # factors between the weights tried, on the first two cases and on all
FLAT = 0.003  # dB, less than which is no improvement: interpolation has no best weight above zero
ROUNDS = 100
WIENER = np.geomspace(1e-3, 1e-1, 9)
VIEWS, CT_SIDE = 60, 128
RESULT = Path(__file__).parent / "results" / "inverse_problems.json"
WORDS = "the quick brown fox jumps over the lazy dog "


class Trial(NamedTuple):
    """One image of one problem."""

    truth: FloatArray  # what is compared
    operator: Any
    options: dict[str, Any]
    measurement: Measurement
    data: Data
    sigma: float


def folder() -> Path:
    return Path(os.environ["HEATPRIOR_DATA"])


def validation_images(count: int) -> Iterator[FloatArray]:
    """Whole, grey levels 0 to 1."""
    for name in (folder() / "val32.txt").read_text().split()[:count]:
        yield read_grey(folder() / "bsds500" / "val" / name) / 255.0


def measured(number: int, image: FloatArray, operator: Any, data_shape: tuple[int, ...], **about: Any) -> Trial:
    """Data of the crop, or of as much more as the operator sees; noise as the protocol says."""
    sigma, options = about.get("sigma", SIGMA), about.get("options", {})
    measurement = operator.on(data_shape) if hasattr(operator, "on") else Linear(operator, **options).on(data_shape)
    top = left = CROP
    inside = measurement.inside or (slice(0, measurement.image_shape[0]), slice(0, measurement.image_shape[1]))
    top, left = top - inside[0].start, left - inside[1].start
    seen = image[top : top + measurement.image_shape[0], left : left + measurement.image_shape[1]]
    rng = np.random.default_rng(1000 + number)
    data = measurement.forward(seen)
    noise = rng.standard_normal(data.shape)
    if measurement.is_complex:
        noise = noise + 1j * rng.standard_normal(data.shape)
    data = data + sigma * noise
    if measurement.blind is not None:
        data = np.where(measurement.blind, 0.0, data)
    return Trial(seen[inside], operator, options, measurement, data, sigma)


def text_mask(side: int) -> NDArray[np.bool_]:
    """True where no letter covers the image."""
    page = Image.new("L", (side, side), 255)
    for line in range(0, side, 20):
        ImageDraw.Draw(page).text((2 - line, line), WORDS * 4, fill=0, font_size=16)
    return np.asarray(page) > 127


def lines_seen(side: int, part: float, number: int) -> NDArray[np.bool_]:
    """Columns of frequencies: the lowest eight in a hundred, and others at random."""
    frequencies = np.abs(np.fft.fftfreq(side))
    seen = frequencies < 0.04
    for column in np.random.default_rng(3000 + number).permutation(side):
        if seen.sum() >= part * side:
            break
        seen[column] = True
    return np.broadcast_to(seen, (side, side))


def deblurring(edges: str) -> Callable[[int, FloatArray], list[Trial]]:
    kernels = np.load(folder() / "kernels" / "levin09.npz")

    def trials(number: int, image: FloatArray) -> list[Trial]:
        return [measured(number, image, hp.Blur(kernels[k], edges), (SIDE, SIDE)) for k in ("k1", "k4", "k6")]

    return trials


def inpainting(missing: float) -> Callable[[int, FloatArray], list[Trial]]:
    def trials(number: int, image: FloatArray) -> list[Trial]:
        seen = np.random.default_rng(2000 + number).random((SIDE, SIDE)) >= missing
        return [measured(number, image, hp.Mask(seen), (SIDE, SIDE))]

    return trials


def enlarging(factor: int, kernel: Any) -> Callable[[int, FloatArray], list[Trial]]:
    def trials(number: int, image: FloatArray) -> list[Trial]:
        return [measured(number, image, hp.Downsample(factor, kernel, "cyclic"), (SIDE // factor, SIDE // factor))]

    return trials


def tomography(number: int, image: FloatArray) -> list[Trial]:
    """Noise of half a per cent of the largest sum along a ray."""
    matrix = projection_matrix(CT_SIDE, np.arange(VIEWS) * 180.0 / VIEWS)
    sigma = 0.005 * float((matrix @ image[CROP : CROP + CT_SIDE, CROP : CROP + CT_SIDE].reshape(-1)).max())
    return [measured(number, image, matrix, (matrix.shape[0],), sigma=sigma, options={"shape": (CT_SIDE, CT_SIDE)})]


PROBLEMS: dict[str, Callable[[], Callable[[int, FloatArray], list[Trial]]]] = {
    "deblur": lambda: deblurring("cyclic"),
    "deblur-edges": lambda: deblurring("unknown"),
    "inpaint-50": lambda: inpainting(0.5),
    "inpaint-80": lambda: inpainting(0.8),
    "inpaint-text": lambda: lambda n, image: [measured(n, image, hp.Mask(text_mask(SIDE)), (SIDE, SIDE))],
    "upscale-2-bicubic": lambda: enlarging(2, "bicubic"),
    "upscale-3-bicubic": lambda: enlarging(3, "bicubic"),
    "upscale-2-gaussian": lambda: enlarging(2, gaussian_kernel(1.2)),
    "upscale-3-gaussian": lambda: enlarging(3, gaussian_kernel(1.6)),
    "ct-60-views": lambda: tomography,
    "mri-4-fold": lambda: lambda n, image: [measured(n, image, hp.Fourier(lines_seen(SIDE, 0.25, n)), (SIDE, SIDE))],
}


def first(trial: Trial) -> FloatArray:
    """The data as an image, or A transposed of them, scaled: what is there before anything is restored."""
    if trial.measurement.first_guess is not None:
        return np.asarray(trial.measurement.first_guess(trial.data), np.float64)
    back = trial.measurement.adjoint(trial.data)
    again = trial.measurement.forward(back)
    return np.asarray(back * (np.vdot(again, trial.data).real / np.vdot(again, again).real))


def compared(trial: Trial, image: FloatArray) -> float:
    inside = trial.measurement.inside
    whole = image if image.shape == trial.truth.shape or inside is None else image[inside]
    return float(psnr(whole, trial.truth))


def best_total_variation(trials: list[Trial]) -> dict[str, Any]:
    """The weight that gives the highest mean PSNR: roughly by the first two cases, then finely by all."""
    seconds: list[float] = []

    def of(trial: Trial, weight: float, rounds: int = ROUNDS) -> float:
        start = time.process_time()
        image = total_variation(trial.data, trial.measurement, weight * trial.sigma**2, first(trial), rounds)
        seconds.append(time.process_time() - start)
        return compared(trial, image)

    def best(begin: float, factor: float, cases: list[Trial]) -> tuple[float, float]:
        tried = {begin: float(np.mean([of(trial, begin) for trial in cases]))}
        for ratio in (factor, 1.0 / factor):
            weight, improves = begin, True
            while improves:
                weight *= ratio
                before = max(tried.values())
                tried[weight] = float(np.mean([of(trial, weight) for trial in cases]))
                improves = tried[weight] > before + FLAT
        found = max(tried, key=lambda weight: tried[weight])
        return found, tried[found]

    weight, psnr_of_all = best(best(FIRST_WEIGHT, ROUGH, trials[:2])[0], FINE, trials)
    typical = float(np.median(seconds))
    return {
        "psnr": round(psnr_of_all, 3),
        "weight over sigma²": round(weight, 3),
        "seconds": round(typical, 2),
        "first case": round(of(trials[0], weight), 3),
        "first case, three times the rounds": round(of(trials[0], weight, 3 * ROUNDS), 3),
    }


def best_wiener(trials: list[Trial]) -> float:
    def filtered(trial: Trial, ratio: float) -> FloatArray:
        inverse = trial.measurement.inverse
        assert inverse is not None
        return inverse(trial.measurement.adjoint(trial.data), ratio)

    return max(float(np.mean([compared(t, filtered(t, ratio)) for t in trials])) for ratio in WIENER)


def restored(trial: Trial, prior: str) -> dict[str, float]:
    """One case by `hp.restore`."""
    start = time.process_time()
    image = hp.restore(trial.data, trial.operator, trial.sigma, prior=prior, **trial.options)
    seconds = time.process_time() - start
    cut = slice(MARGIN, -MARGIN)
    return {
        "restore": round(float(psnr(image, trial.truth)), 3),
        "inside": round(float(psnr(image[cut, cut], trial.truth[cut, cut])), 3),
        "seconds": round(seconds, 2),
        "data": round(compared(trial, first(trial)), 3),
    }


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """Means of PSNR, and the median time."""
    means = {key: round(float(np.mean([row[key] for row in rows])), 3) for key in ("restore", "inside", "data")}
    return means | {"seconds": float(np.median([row["seconds"] for row in rows]))}


def course(trial: Trial, prior: str) -> dict[str, float]:
    """How much the data leave undetermined, and the last of the steps."""
    steps: list[hp.RestoringStep] = []
    hp.restore(trial.data, trial.operator, trial.sigma, prior=prior, report=steps.append, **trial.options)
    return {
        "undetermined": round(undetermined_part(trial.measurement, TRUST * (trial.sigma / START) ** 2), 3),
        "steps": steps[-1].steps,
        "applications": steps[-1].applications,
    }


def run(name: str, count: int, prior: str) -> None:
    """What has not been done of a problem."""
    make = PROBLEMS[name]()
    trials = [trial for number, image in enumerate(validation_images(count)) for trial in make(number, image)]
    done = kept().get("problems", {}).get(name, {})
    rows = done.get("rows", [])
    for trial in trials[len(rows) :]:
        rows.append(restored(trial, prior))
        keep("problems", name, {"prior": prior, "cases": len(rows), **summary(rows), "rows": rows})
    if "undetermined" not in done:
        keep("problems", name, course(trials[0], prior))
    if name != "deblur-edges" and done.get("cases of total variation") != len(trials):
        wiener = {"wiener": round(best_wiener(trials), 3)} if name == "deblur" else {}
        found = {"cases of total variation": len(trials), "total variation": best_total_variation(trials)}
        keep("problems", name, found | wiener)
    print(name, {key: value for key, value in kept()["problems"][name].items() if key != "rows"}, flush=True)


def run_bsd68(prior: str, first_image: int, every: int) -> None:
    """All eight kernels, cyclic; once, for the report."""
    kernels = np.load(folder() / "kernels" / "levin09.npz")
    for number, path in list(enumerate(sorted((folder() / "bsd68").glob("*.png"))))[first_image::every]:
        if path.stem in kept().get("bsd68", {}):
            continue
        image = read_grey(path)[CROP : CROP + SIDE, CROP : CROP + SIDE] / 255.0
        noise = SIGMA * np.random.default_rng(1000 + number).standard_normal(image.shape)
        row = {}
        for name in kernels:
            operator = hp.Blur(kernels[name], "cyclic")
            data = operator.on(image.shape).forward(image) + noise
            row[name] = round(float(psnr(hp.restore(data, operator, SIGMA, prior=prior), image)), 3)
        keep("bsd68", path.stem, row)
    rows = list(kept()["bsd68"].values())
    means = {name: round(float(np.mean([row[name] for row in rows])), 3) for name in kernels}
    mean = round(float(np.mean(list(means.values()))), 3)
    keep("bsd68 means", "cyclic", {"prior": prior, "images": len(rows), "mean": mean, **means})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--prior", default="tuned")
    parser.add_argument("--bsd68", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="image of BSD68 to begin with")
    parser.add_argument("--every", type=int, default=1, help="every so many-th image of BSD68")
    arguments = parser.parse_args()
    if arguments.bsd68:
        run_bsd68(arguments.prior, arguments.first, arguments.every)
        return
    for name in arguments.problems:
        run(name, arguments.images, arguments.prior)


def kept() -> dict[str, Any]:
    """What all runs have written."""
    return json.loads(RESULT.read_text()) if RESULT.exists() else {}


def keep(part: str, name: str, result: dict[str, Any]) -> None:
    """Beside what other runs have written, or are writing."""
    with RESULT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = kept()
        parts = {other: record.get(other, {}) for other in ("problems", "bsd68", "bsd68 means")}
        parts[part][name] = parts[part].get(name, {}) | result
        write_record(RESULT, {"sigma": SIGMA, **parts})


if __name__ == "__main__":
    main()
