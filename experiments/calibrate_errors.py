"""How far the errors of a denoiser are from what a probe of it says: tables for the cards of shipped priors.

    python experiments/calibrate_errors.py [PRIOR ...] [--side N] [--every N] [--only ENTRY] [--ship]

On the 32 validation images (noise of image i by seed 1000 + i), or the middle N×N pixels of each, or every N-th of
them, at five noise levels. With --only, one of the two entries is made and the other stays as it is.

Error bars (`standard_errors` on the card): the power is the one at which 90 % intervals cover most evenly the three
thirds of the pixels by local contrast of the clean image, and the scale the one at which they cover 90 % of all.

Risk (`risk` on the card): the parts by which it is estimated, by least squares of the relative error; `spread` is how
far the risk of an image then is from that of a fit to all others; `stein` is the trace by the noise that is in the
images, n · (f − x), over the probed one, shrunk towards one as far as chance may explain the difference. What is done
is kept in out/calibrate_errors until a prior is whole, so that a run goes on where it was; the prior is then added to
experiments/results/calibrate_errors.json, and with --ship the tables go onto its card.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from error_coverage import SHOWN, local_contrast, third_of

from heatprior import load
from heatprior.arrays import FloatArray
from heatprior.data import bsds500
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey
from heatprior.records import write_record
from heatprior.restoration import predicted_quality, standard_errors
from heatprior.restoration.denoising_errors import Probed, probed
from heatprior.restoration.options import Options
from heatprior.store import PriorFile, read_prior_file, write_prior_file
from heatprior.zoo import FOLDER

RESULT = Path(__file__).parent / "results" / "calibrate_errors.json"
UNFINISHED = Path(__file__).parent.parent / "out" / "calibrate_errors"
EVERY = 3  # pixel counts for error bars
LEVELS = (5, 15, 25, 50, 100)  # 255 sigma
POWERS = np.arange(0.5, 8.01, 0.25)
METHODS = {"patch7": "eb", "fast7": "hqs", "tuned": "hqs", "mixture": "hqs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", metavar="PRIOR", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--side", type=int, metavar="N")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", choices=(standard_errors.CARD_ENTRY, predicted_quality.CARD_ENTRY))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true")
    arguments = parser.parse_args()
    whole = [read_grey(path) / np.float32(255) for path in bsds500.validation(arguments.data)]
    images = {
        number: image if arguments.side is None else middle(image, arguments.side)
        for number, image in enumerate(whole)
        if number % arguments.every == 0
    }
    for name in arguments.priors or METHODS:
        kept = UNFINISHED / f"{name}-{arguments.side}-{arguments.every}.jsonl"
        tables = fitted(images, name, METHODS[name], kept)
        if arguments.only:
            tables = {arguments.only: tables[arguments.only]}
        print(f"{name}: {json.dumps(tables)}", flush=True)
        before = json.loads(RESULT.read_text())["priors"] if RESULT.exists() else {}
        made = {entry: {"side": arguments.side, "images": len(images), **table} for entry, table in tables.items()}
        write_record(RESULT, {"first_seed": FIRST_SEED, "priors": {**before, name: {**before.get(name, {}), **made}}})
        if arguments.ship:
            path = FOLDER / f"{name}.safetensors"
            contents = read_prior_file(path)
            write_prior_file(path, PriorFile(contents.kind, contents.tensors, {**contents.card, **tables}))
        kept.unlink()


def middle(image: FloatArray, side: int) -> FloatArray:
    """The middle side×side pixels."""
    top, left = ((length - side) // 2 for length in image.shape)
    return np.asarray(image[top : top + side, left : left + side])


def fitted(images: dict[int, FloatArray], name: str, method: str, kept: Path) -> dict[str, Any]:
    """The two entries of a prior's card: for its method, columns by noise level."""
    prior = load(name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for level in LEVELS[len(done) :]:
        sigma = level / 255
        noisy = [with_noise(clean, number, sigma) for number, clean in images.items()]
        found = [probed(image, sigma, Options(prior=prior, method=method, white=1.0)) for image in noisy]
        clean = list(images.values())
        done.append([[sigma, *error_bars(clean, found, sigma)], [sigma, *risk(clean, found, sigma)]])
        with kept.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    errors, risks = zip(*done, strict=True)
    return {
        standard_errors.CARD_ENTRY: {method: by_column(standard_errors.COLUMNS, errors)},
        predicted_quality.CARD_ENTRY: {method: by_column(predicted_quality.COLUMNS, risks)},
    }


def by_column(names: tuple[str, ...], rows: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Rows as a table of columns, rounded."""
    return {name: [round(float(row[k]), 6) for row in rows] for k, name in enumerate(names)}


def error_bars(images: list[FloatArray], found: list[Probed], sigma: float) -> tuple[float, float, float]:
    """The typical probed variance, what the error then is, and the power."""
    error = together([np.abs(one.clean - clean) / sigma for one, clean in zip(found, images, strict=True)])
    part = np.maximum(together([one.variance / sigma**2 for one in found]), standard_errors.LEAST_PART)
    usual = float(np.exp(np.mean(np.log(part))))
    thirds = third_of(together([local_contrast(clean) for clean in images]))
    wanted = SHOWN[90]
    best = (np.inf, 1.0, 1.0)
    for power in POWERS:
        ratio = error / (part / usual) ** (power / 2.0)
        widened = ratio * wanted / np.quantile(ratio, 0.9)
        uneven = sum((float(np.mean(widened[thirds == k] < wanted)) - 0.9) ** 2 for k in range(3))
        best = min(best, (uneven, float((np.quantile(ratio, 0.9) / wanted) ** 2), float(power)))
    return usual, best[1], best[2]


def risk(images: list[FloatArray], found: list[Probed], sigma: float) -> tuple[float, ...]:
    """The factor of the trace in Stein's estimate; parts of constant, trace and structure; and their spread."""
    parts = [one.ingredients() for one in found]
    errors = [one.clean - clean for one, clean in zip(found, images, strict=True)]
    noise = [one.noisy - clean for one, clean in zip(found, images, strict=True)]
    traces = np.array([np.mean(one.trace, dtype=np.float64) for one in parts])
    structure = np.array([np.mean(one.blurred - one.of_noise, dtype=np.float64) for one in parts])
    actual = np.array([np.mean(n * e, dtype=np.float64) for n, e in zip(noise, errors, strict=True)])
    true = np.array([np.mean(np.square(error), dtype=np.float64) for error in errors])
    design = np.stack([np.full(len(true), sigma**2), traces, structure], axis=1) / true[:, None]
    weights = least_squares(design)
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
