"""How well one noise level is estimated: relative error on BSD68, beside scikit-image's estimate_sigma.

    python experiments/noise_levels.py [--data DIR]
    python experiments/noise_levels.py --validation --limit 8      a trial, on other images; writes nothing

The noise is that of Table 1, neither clipped nor rounded. scikit-image needs PyWavelets (the extra `bench`). Prints
the mean and the worst |estimate / sigma − 1| in per cent, and writes experiments/results/noise_levels.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from skimage import restoration
from tqdm import tqdm

from heatprior import bsds500, estimate_sigma, load
from heatprior.images import read_grey
from heatprior.records import write_record
from heatprior.trials import FIRST_SEED, with_noise

LEVELS = (5, 10, 15, 25, 50, 75, 100)  # 255 sigma
NINETY = 1.645
RESULT = Path(__file__).parent / "results" / "noise_levels.json"


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
    print("255 sigma      heatprior: mean (worst), bias, within 90 %       scikit-image: mean (worst)")
    for row in rows:
        own, other = row["heatprior"], row["scikit-image"]
        print(
            f"{row['level']:9} {own['mean']:19.2f} ({own['worst']:5.2f}) {own['bias']:+6.2f} "
            f"{own['within_90_percent']:10.0%} {other['mean']:21.2f} ({other['worst']:5.2f})"
        )
    if len(files) == len(found) and not arguments.validation:
        about = {"images": len(files), "first_seed": FIRST_SEED, "prior": arguments.prior}
        write_record(RESULT, {**about, "errors_in_percent": rows})
        print(f"wrote {RESULT}")


def measured(files: list[Path], prior: str) -> Any:
    """sigma, its error with that of the model, and scikit-image's sigma: (images, levels, 3)."""
    model = load(prior)
    peer: Any = restoration.estimate_sigma
    results = []
    for number, path in enumerate(tqdm(files, leave=False, disable=None)):
        clean = read_grey(path) / np.float32(255)
        for level in LEVELS:
            noisy = with_noise(clean, number, level / 255)
            own = estimate_sigma(noisy, prior=model, white=1.0)
            results.append((own.sigma, np.hypot(own.stderr, own.model_error), float(peer(noisy))))
    return np.array(results).reshape(len(files), len(LEVELS), 3)


def summary(level: int, estimates: Any) -> dict[str, Any]:
    own, peer = (estimates[:, column] * 255 / level - 1 for column in (0, 2))
    inside = np.abs(estimates[:, 0] - level / 255) < NINETY * estimates[:, 1]
    return {
        "level": level,
        "heatprior": {**_percent(own), "within_90_percent": float(inside.mean())},
        "scikit-image": _percent(peer),
    }


def _percent(errors: Any) -> dict[str, float]:
    size = 100 * np.abs(errors)
    return {"mean": float(size.mean()), "worst": float(size.max()), "bias": float(100 * errors.mean())}


if __name__ == "__main__":
    main()
