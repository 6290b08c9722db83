"""How well the experts follow the marginals of noisy patches, at every noise level.

    python -m paper.evaluations.marginals [--data DIR] [PRIOR ...]

For each filter, the density h_j of the responses ⟨k_j, p + sigma n⟩ of a million patches of the training images (fewer
of 15×15) is compared with psi_j(·, t) in 201 bins between its quantiles κ and 1 − κ (κ = 0.005): the squared
difference, averaged over the bins, over the squared maximum of h_j, averaged over the filters. Writes
records/marginals.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from paper import RECORDS
from paper.claims.bench import Bench
from paper.claims.marginals import each_discrepancy
from paper.claims.published import KAPPAS, SIGMAS
from paper.records import write_record

SEED = 0
PRIORS = ["patch7", "patch7-single", "denoise7", "patch15", "denoise15"]
PATCHES, LARGE_PATCHES = 1_000_000, 200_000  # the second of 10×10 pixels and more
KAPPA = KAPPAS[0]
RESULT = RECORDS / "marginals.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=PRIORS, metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    bench = Bench(arguments.data, priors={name: Path(name) for name in arguments.priors if Path(name).suffix})
    rows: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for name in tqdm(arguments.priors, leave=False, disable=None):
        prior = bench.prior(name)
        size = prior.filters.size
        counts[name] = PATCHES if size < 10 else LARGE_PATCHES
        patches = bench.clean_patches(size, counts[name], SEED)
        each = np.array(each_discrepancy(prior, patches, SIGMAS, [KAPPA]))  # (J, sigmas, 1, 2)
        rows[name] = each[:, :, 0, 0].mean(axis=0).tolist()
    print("normalised squared error of the marginals, sigma =" + "".join(f"{sigma:>10}" for sigma in SIGMAS))
    for name, row in rows.items():
        print(f"{name:50}" + "".join(f"{value:10.2e}" for value in row))
    write_record(RESULT, {"seed": SEED, "patches": counts, "kappa": KAPPA, "sigmas": SIGMAS, "error": rows})


if __name__ == "__main__":
    main()
