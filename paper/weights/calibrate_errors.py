"""How far the errors of a denoiser are from what a probe of it says: tables for the cards of shipped priors.

    python -m paper.weights.calibrate_errors [PRIOR ...] [--correlated] [--side N] [--every N] [--only ENTRY] [--ship]

On the 32 validation images (noise of image i by seed 1000 + i), or the middle N×N pixels of each, or every N-th of
them, at five noise levels. With --only, one of the two entries is made and the other stays as it is. With --correlated
the noise has the power exp(−(f / w)²) at f cycles per pixel, w being 0.2 and 0.1 in turn, about as cameras leave it in
brightness and in colours, and the denoiser is told so; these tables have their own place on the card.

Error bars (`standard_errors` on the card): the scale is the one at which 90 % intervals cover 90 % of all pixels, and
the power the one at which the mean square of the standard errors is nearest to that of the errors, among those that
cover 83.5 to 94 % in each third of the pixels by local contrast of the clean image, or else come nearest to that.

Risk (`risk` on the card): the parts by which it is estimated, by least squares of the relative error; `spread` is how
far the risk of an image then is from that of a fit to all others; `stein` is the trace by the noise that is in the
images, n · (f − x), over the probed one, shrunk towards one as far as chance may explain the difference. What is done
is kept in out/calibrate_errors until a prior is whole, so that a run goes on where it was; the prior is then added to
records/calibrate_errors.json, and with --ship the tables go onto its card.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey
from heatprior.noise.profiles import NoiseProfile, StationaryNoise
from heatprior.noise_value import NoiseSpectrum
from heatprior.priors.protocol import StoredPrior
from heatprior.restoration import error_bars
from heatprior.restoration.denoising import Settings
from heatprior.restoration.error_bars import CORRELATED, Probed, probe_image
from heatprior.store import PriorFile, read_prior_file, write_prior_file
from paper import RECORDS, bsds500, load, prior_file
from paper.evaluations.error_coverage import SHOWN, local_contrast, third_of
from paper.records import write_record

RESULT = RECORDS / "calibrate_errors.json"
UNFINISHED = RECORDS.parent / "out" / "calibrate_errors"
EVERY = 3  # pixel counts for error bars
LEVELS = (5, 15, 25, 50, 100)  # 255 sigma
POWERS = np.arange(0.5, 8.01, 0.25)
LEAST_COVERED, MOST_COVERED = 0.835, 0.94  # of each third, by 90 % intervals
WIDTHS, SIDE_OF_SPECTRUM = (0.2, 0.1), 32  # of correlated noise
METHODS = {"patch7": "eb", "fast7": "hqs", "tuned": "hqs", "mixture": "hqs"}
STEPS = {"eb": 1, "hqs": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", metavar="PRIOR", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--correlated", action="store_true")
    parser.add_argument("--side", type=int, metavar="N")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", choices=(error_bars.CARD_ENTRY, error_bars.RISK_ENTRY))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true")
    arguments = parser.parse_args()
    whole = [read_grey(path) / np.float32(255) for path in bsds500.validation(arguments.data)]
    images = {
        number: image if arguments.side is None else middle(image, arguments.side)
        for number, image in enumerate(whole)
        if number % arguments.every == 0
    }
    kind = CORRELATED if arguments.correlated else ""
    for name in arguments.priors or METHODS:
        kept = UNFINISHED / f"{name}{kind}-{arguments.side}-{arguments.every}.jsonl"
        tables = fit_tables(images, load(name), METHODS[name], kind, kept)
        if arguments.only:
            tables = {arguments.only: tables[arguments.only]}
        print(f"{name}{kind}: {json.dumps(tables)}", flush=True)
        before = json.loads(RESULT.read_text())["priors"] if RESULT.exists() else {}
        made = {entry: {"side": arguments.side, "images": len(images), **table} for entry, table in tables.items()}
        record = {**before, name + kind: {**before.get(name + kind, {}), **made}}
        write_record(RESULT, {"first_seed": FIRST_SEED, "priors": record})
        if arguments.ship:
            path = prior_file(name)
            contents = read_prior_file(path)
            merged = {entry: {**contents.card.get(entry, {}), **table} for entry, table in tables.items()}
            write_prior_file(path, PriorFile(contents.kind, contents.tensors, {**contents.card, **merged}))
        kept.unlink()


def middle(image: FloatArray, side: int) -> FloatArray:
    """The middle side×side pixels."""
    top, left = ((length - side) // 2 for length in image.shape)
    return np.asarray(image[top : top + side, left : left + side])


def fit_tables(images: dict[int, FloatArray], prior: StoredPrior, method: str, kind: str, kept: Path) -> dict[str, Any]:
    """Return the two entries of a prior's card: for its method and a kind of noise, columns by noise level.

    Levels that are done are kept in the file `kept`, and not done again.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for level in LEVELS[len(done) :]:
        sigma, settings = level / 255, Settings(prior=prior, steps=STEPS[method], white=1.0)
        if kind:
            found = [in_correlated_noise(image, number, sigma, settings) for number, image in images.items()]
        else:
            found = [probe_image(with_noise(image, number, sigma), sigma, settings) for number, image in images.items()]
        clean = list(images.values())
        of_risk = risk(clean, found, sigma, with_structure=not kind)
        done.append([[sigma, *fit_error_bars(clean, found, sigma)], [sigma, *of_risk]])
        with kept.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    errors, risks = zip(*done, strict=True)
    return {
        error_bars.CARD_ENTRY: {method + kind: by_column(error_bars.COLUMNS, errors)},
        error_bars.RISK_ENTRY: {method + kind: by_column(error_bars.RISK_COLUMNS, risks)},
    }


def in_correlated_noise(clean: FloatArray, number: int, sigma: float, settings: Settings) -> Probed:
    """An image with noise of one of the two spectra, which is told."""
    power = np.exp(
        -np.square(np.hypot(*np.meshgrid(*[np.fft.fftfreq(SIDE_OF_SPECTRUM)] * 2)) / WIDTHS[number // 2 % len(WIDTHS)])
    )
    spectrum, variance = NoiseSpectrum(power), np.array([sigma**2])
    noise = spectrum.field(clean.shape, np.random.default_rng(FIRST_SEED + number))
    profile = NoiseProfile((StationaryNoise(spectrum, np.array([0.5]), variance),))
    return probe_image(np.asarray(clean + sigma * noise, np.float32), None, replace(settings, noise=profile))


def by_column(names: tuple[str, ...], rows: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Rows as a table of columns, rounded."""
    return {name: [round(float(row[k]), 6) for row in rows] for k, name in enumerate(names)}


def fit_error_bars(images: list[FloatArray], found: list[Probed], sigma: float) -> tuple[float, float, float]:
    """The typical probed variance, what the error then is, and the power."""
    error = together([np.abs(one.clean - clean) / sigma for one, clean in zip(found, images, strict=True)])
    part = np.maximum(together([one.variance / sigma**2 for one in found]), error_bars.LEAST_PART)
    usual = float(np.exp(np.mean(np.log(part))))
    thirds = third_of(together([local_contrast(clean) for clean in images]))
    wanted, most = SHOWN[90], error_bars.MOST_PART
    size = float(np.mean(np.square(error), dtype=np.float64))
    tried = []
    for power in POWERS:
        shape = (part / usual) ** power
        scale = float((np.quantile(error / np.sqrt(shape), 0.9) / wanted) ** 2)
        stated = np.minimum(scale * shape, most)
        inside = error < wanted * np.sqrt(stated)
        covered = [float(np.mean(inside[thirds == k])) for k in range(3)]
        beyond = max(LEAST_COVERED - min(covered), max(covered) - MOST_COVERED, 0.0)
        tried.append((beyond, abs(float(np.log(np.mean(stated, dtype=np.float64) / size))), scale, float(power)))
    _, _, scale, power = min(tried)
    return usual, scale, power


def risk(
    images: list[FloatArray], found: list[Probed], sigma: float, *, with_structure: bool = True
) -> tuple[float, ...]:
    """The factor of the trace in Stein's estimate; parts of constant, trace and structure; and their spread.

    What is blurred tells structure from white noise alone; without it, its part is zero.
    """
    parts = [one.ingredients() for one in found]
    errors = [one.clean - clean for one, clean in zip(found, images, strict=True)]
    noise = [one.noisy - clean for one, clean in zip(found, images, strict=True)]
    traces = np.array([np.mean(one.trace, dtype=np.float64) for one in parts])
    structure = np.array([np.mean(one.blurred - one.of_noise, dtype=np.float64) for one in parts])
    actual = np.array([np.mean(n * e, dtype=np.float64) for n, e in zip(noise, errors, strict=True)])
    true = np.array([np.mean(np.square(error), dtype=np.float64) for error in errors])
    design = np.stack([np.full(len(true), sigma**2), traces, structure], axis=1) / true[:, None]
    design = design if with_structure else design[:, :-1]
    weights = np.append(least_squares(design), [] if with_structure else [0.0])
    others = [design[k] @ least_squares(np.delete(design, k, axis=0)) - 1.0 for k in range(len(true))]
    return shrunk_ratio(actual, traces), *weights, float(np.sqrt(np.mean(np.square(others))))


def shrunk_ratio(actual: FloatArray, probed: FloatArray) -> float:
    """Σ actual / Σ probed, moved towards one by the part of the squared difference that its variance explains."""
    beyond = actual.sum() / probed.sum() - 1.0
    chance = np.sum(np.square(actual - (1.0 + beyond) * probed)) / probed.sum() ** 2
    return float(1.0 + beyond * max(1.0 - chance / beyond**2, 0.0))


def together(images: list[FloatArray]) -> FloatArray:
    """Every third pixel of all images."""
    return np.concatenate([image.ravel()[::EVERY] for image in images])


def least_squares(design: FloatArray) -> FloatArray:
    """The weights with which the rows sum to one."""
    return np.asarray(np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0])


if __name__ == "__main__":
    main()
