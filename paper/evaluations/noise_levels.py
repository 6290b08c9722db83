"""How well one noise level is estimated: relative error on BSD68 by `patch7` and `mixture`, beside scikit-image.

    python -m paper.evaluations.noise_levels [--data DIR]
    python -m paper.evaluations.noise_levels --validation --limit 8      a trial, on other images; writes nothing

The noise is that of Table 1, neither clipped nor rounded. estimate_sigma of scikit-image needs PyWavelets (the extra
`bench`). In the JSON "heatprior" is the prior that --prior names, and "mixture" the mixture. Prints
the mean and the worst |estimate / sigma − 1| in per cent, and writes records/noise_levels.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from skimage import restoration
from tqdm import tqdm

from heatprior import estimate_sigma
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey
from paper import RECORDS, bsds500, load
from paper.records import write_record

LEVELS = (5, 10, 15, 25, 50, 75, 100)  # 255 sigma
NINETY = 1.645
RESULT = RECORDS / "noise_levels.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--prior", default="patch7")
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, help="on the first images only; writes nothing")
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    estimates = measured(files, arguments.prior)
    rows = [summary(level, estimates[:, number]) for number, level in enumerate(LEVELS)]
    print(f"mean (worst), bias, within 90 % by {arguments.prior}, the same by mixture; mean (worst) by scikit-image")
    for row in rows:
        ours = (
            f"{own['mean']:8.2f} ({own['worst']:5.2f}) {own['bias']:+6.2f} {own['within_90_percent']:5.0%}"
            for own in (row["heatprior"], row["mixture"])
        )
        other = row["scikit-image"]
        print(f"{row['level']:9} {'   '.join(ours)} {other['mean']:12.2f} ({other['worst']:5.2f})")
    if len(files) == len(found) and not arguments.validation:
        about = {"images": len(files), "first_seed": FIRST_SEED, "prior": arguments.prior}
        write_record(RESULT, {**about, "errors_in_percent": rows})
        print(f"wrote {RESULT}")


def measured(files: list[Path], prior: str) -> Any:
    """sigma and its error with that of the model, by each prior, and scikit-image's sigma: (images, levels, 5)."""
    models = [load(prior), load("mixture")]
    peer: Any = restoration.estimate_sigma
    results = []
    for number, path in enumerate(tqdm(files, leave=False, disable=None)):
        clean = read_grey(path) / np.float32(255)
        for level in LEVELS:
            noisy = with_noise(clean, number, level / 255)
            for model in models:
                own = estimate_sigma(noisy, prior=model, white=1.0)
                results += [own.sigma, np.hypot(own.stderr, own.model_error)]
            results.append(float(peer(noisy)))
    return np.array(results).reshape(len(files), len(LEVELS), 5)


def summary(level: int, estimates: Any) -> dict[str, Any]:
    return {
        "level": level,
        "heatprior": _with_coverage(estimates[:, :2], level / 255),
        "mixture": _with_coverage(estimates[:, 2:4], level / 255),
        "scikit-image": _percent(estimates[:, 4] * 255 / level - 1),
    }


def _with_coverage(estimates: Any, sigma: float) -> dict[str, float]:
    """Of sigma and its error, (images, 2): also how often the truth is within the interval of 90 %."""
    inside = np.abs(estimates[:, 0] - sigma) < NINETY * estimates[:, 1]
    return {**_percent(estimates[:, 0] / sigma - 1), "within_90_percent": float(inside.mean())}


def _percent(errors: Any) -> dict[str, float]:
    size = 100 * np.abs(errors)
    return {"mean": float(size.mean()), "worst": float(size.max()), "bias": float(100 * errors.mean())}


if __name__ == "__main__":
    main()
