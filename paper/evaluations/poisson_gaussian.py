"""Noise of photons and of reading them out, variance = a x + b: a, b and the blind PSNR on BSD68, for three cameras.

    python -m paper.evaluations.poisson_gaussian [--data DIR]
    python -m paper.evaluations.poisson_gaussian --validation --limit 4      a trial, on other images; writes nothing

Photons are drawn from the Poisson distribution: y = a Poisson(x / a) + sqrt(b) n, neither clipped nor rounded. The
oracle is the same method given sqrt(a x + b). Writes records/poisson_gaussian.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from heatprior import denoise, estimate_noise, load
from heatprior.data.trials import FIRST_SEED, psnr
from heatprior.images import read_grey
from paper import RECORDS, bsds500
from paper.records import write_record

# Gain a, read noise b. The last two, in which one part hides the other, are hard: kept to show it.
CAMERAS = (
    (0.01, (10 / 255) ** 2),
    (0.02, (20 / 255) ** 2),
    (0.04, (25 / 255) ** 2),
    (0.005, (15 / 255) ** 2),
    (0.02, 0.001),
)
METHOD = "hqs"
RESULT = RECORDS / "poisson_gaussian.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, help="on the first images only; writes nothing")
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    rows = []
    for gain, offset in CAMERAS:
        trials = [measured(i, path, gain, offset) for i, path in enumerate(tqdm(files, leave=False, disable=None))]
        rows.append(summary(gain, offset, trials))
        show(rows[-1])
    if len(files) == len(found) and not arguments.validation:
        write_record(RESULT, {"images": len(files), "first_seed": FIRST_SEED, "method": METHOD, "cameras": rows})
        print(f"wrote {RESULT}")


def measured(number: int, path: Path, gain: float, offset: float) -> dict[str, Any]:
    clean = read_grey(path).astype(np.float64) / 255
    rng = np.random.default_rng(FIRST_SEED + number)
    noisy = (gain * rng.poisson(clean / gain) + np.sqrt(offset) * rng.standard_normal(clean.shape)).astype(np.float32)
    prior = load("patch7")
    line = estimate_noise(noisy, "affine", prior=prior, white=1.0).channels[0].affine
    report = estimate_noise(noisy, prior=prior, white=1.0)
    oracle, blind = (
        psnr(denoise(noisy, sigma, prior=prior, white=1.0), clean.astype(np.float32))
        for sigma in (np.sqrt(gain * clean + offset), report.sigma)
    )
    errors = (np.nan, np.nan) if line is None else (line.gain / gain - 1, line.offset / offset - 1)
    return {"model": report.models[0], "gain": errors[0], "offset": errors[1], "oracle": oracle, "blind": blind}


def summary(gain: float, offset: float, trials: list[dict[str, Any]]) -> dict[str, Any]:
    models = [trial["model"] for trial in trials]
    row: dict[str, Any] = {"a": gain, "b": offset, "models": {name: models.count(name) for name in sorted(set(models))}}
    for name, key in (("a", "gain"), ("b", "offset")):
        errors = np.array([trial[key] for trial in trials])
        row[f"mean_error_{name}"] = float(np.nanmean(errors))
        row[f"median_size_of_error_{name}"] = float(np.nanmedian(np.abs(errors)))
    for name in ("oracle", "blind"):
        row[name] = float(np.mean([trial[name] for trial in trials]))
    return row


def show(row: dict[str, Any]) -> None:
    print(f"a {row['a']:g}, b {row['b']:.3g}; models {row['models']}")
    for name in "ab":
        mean, median = row[f"mean_error_{name}"], row[f"median_size_of_error_{name}"]
        print(f"  {name}: mean error {mean:+.1%}, median size of error {median:.1%}")
    print(f"  {METHOD}: blind {row['blind']:.2f} dB, oracle {row['oracle']:.2f} dB")


if __name__ == "__main__":
    main()
