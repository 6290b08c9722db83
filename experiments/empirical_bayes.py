"""Table 1 of the paper, columns EB-PA: one empirical-Bayes step with patch averaging on BSD68.

    python experiments/empirical_bayes.py [--data DIR] [PRIOR ...]

Prints mean PSNR beside the paper's, and writes experiments/results/empirical_bayes.json. BSD68 is for reporting only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from heatprior import bsds500, load
from heatprior.datasets import scaled
from heatprior.images import read_grey
from heatprior.learning.validation import FIRST_SEED, LEVELS, psnr
from heatprior.priors.averaging import averaged_posterior_mean
from heatprior.records import write_record
from heatprior.zoo import names

PAPER = {"patch7": (30.00, 27.47, 24.61, 22.14), "patch15": (30.34, 27.81, 24.96, 22.74)}
RESULT = Path(__file__).parent / "results" / "empirical_bayes.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=[name for name in PAPER if name in names()], metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    images = [scaled(read_grey(path)) for path in bsds500.bsd68(arguments.data)]
    rows: dict[str, list[float]] = {}
    for name in arguments.priors:
        prior = load(name)
        results = np.empty((len(images), len(LEVELS)))
        for i, clean in enumerate(tqdm(images, name, leave=False)):
            noise = np.random.default_rng(FIRST_SEED + i).standard_normal(clean.shape)
            for k, level in enumerate(LEVELS):
                noisy = (clean + level / 255.0 * noise).astype(np.float32)
                results[i, k] = psnr(averaged_posterior_mean(prior, noisy, level / 255.0), clean)
        rows[name] = [round(float(value), 3) for value in results.mean(axis=0)]
    print(f"EB-PA on {len(images)} images, mean PSNR in dB" + "".join(f"{level:>9}" for level in LEVELS))
    for name, row in rows.items():
        print(f"{name:38}" + "".join(f"{value:9.2f}" for value in row))
        if name in PAPER:
            print(f"{'  paper':38}" + "".join(f"{value:9.2f}" for value in PAPER[name]))
            print(f"{'  difference':38}" + "".join(f"{a - b:+9.2f}" for a, b in zip(row, PAPER[name], strict=True)))
    write_record(
        RESULT, {"images": len(images), "first_seed": FIRST_SEED, "levels": LEVELS, "psnr": rows, "paper": PAPER}
    )


if __name__ == "__main__":
    main()
