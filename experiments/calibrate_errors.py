"""How far the errors of a denoiser are from what its derivative says: tables for the cards of shipped priors.

    python experiments/calibrate_errors.py [--ship]

On the middle 128×128 pixels of the 32 validation images (noise of image i by seed 1000 + i). For each noise level, the
power is the one at which 90 % intervals cover most evenly the three thirds of the pixels by local contrast of the clean
image, and the scale is then the one at which they cover 90 % of all. With --ship the tables go onto the cards.
"""

from __future__ import annotations

import argparse
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
from heatprior.restoration.denoising_errors import probed
from heatprior.restoration.options import Options
from heatprior.restoration.standard_errors import CARD_ENTRY, COLUMNS, LEAST_PART
from heatprior.store import PriorFile, read_prior_file, write_prior_file
from heatprior.zoo import FOLDER

RESULT = Path(__file__).parent / "results" / "calibrate_errors.json"
LEVELS = (5, 15, 25, 50)  # 255 sigma
POWERS = np.arange(0.5, 4.01, 0.25)
SIDE = 128
PRIORS = (("tuned", "hqs"), ("fast7", "hqs"), ("patch7", "eb"), ("mixture", "hqs"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true")
    arguments = parser.parse_args()
    images = [middle(read_grey(path)) / np.float32(255) for path in bsds500.validation(arguments.data)]
    tables: dict[str, dict[str, Any]] = {}
    for name, method in PRIORS:
        rows = [fitted(images, name, method, level / 255) for level in LEVELS]
        usual, actual, powers = ([round(row[k], 5) for row in rows] for k in range(3))
        table = dict(zip(COLUMNS, ([round(level / 255, 6) for level in LEVELS], usual, actual, powers), strict=True))
        tables.setdefault(name, {})[method] = table
        print(f"{name} {method}: {table}", flush=True)
    write_record(RESULT, {"images": len(images), "side": SIDE, "first_seed": FIRST_SEED, "tables": tables})
    for name, entry in tables.items() if arguments.ship else ():
        path = FOLDER / f"{name}.safetensors"
        contents = read_prior_file(path)
        write_prior_file(path, PriorFile(contents.kind, contents.tensors, {**contents.card, CARD_ENTRY: entry}))


def middle(image: FloatArray) -> FloatArray:
    """The middle SIDE×SIDE pixels."""
    top, left = ((length - SIDE) // 2 for length in image.shape)
    return np.asarray(image[top : top + SIDE, left : left + SIDE])


def fitted(images: list[FloatArray], name: str, method: str, sigma: float) -> tuple[float, float, float]:
    """The typical probed variance, what the error then is, and the power, for one prior, method and noise level."""
    prior, errors, parts, contrasts = load(name), [], [], []
    for number, clean in enumerate(images):
        found = probed(with_noise(clean, number, sigma), sigma, Options(prior=prior, method=method, white=1.0))
        errors.append(np.abs(found.clean - clean) / sigma)
        parts.append(np.maximum(found.variance[0] / sigma**2, LEAST_PART))
        contrasts.append(local_contrast(clean))
    error, part = np.array(errors), np.array(parts)
    usual = float(np.exp(np.mean(np.log(part))))
    thirds = third_of(np.array(contrasts))
    wanted = SHOWN[90]
    best = (np.inf, 1.0, 1.0)
    for power in POWERS:
        ratio = error / (part / usual) ** (power / 2.0)
        widened = ratio * wanted / np.quantile(ratio, 0.9)
        uneven = sum((float(np.mean(widened[thirds == k] < wanted)) - 0.9) ** 2 for k in range(3))
        best = min(best, (uneven, float((np.quantile(ratio, 0.9) / wanted) ** 2), float(power)))
    return usual, best[1], best[2]


if __name__ == "__main__":
    main()
