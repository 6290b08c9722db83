"""How well the experts follow the marginals of noisy patches, at every noise level.

    python experiments/marginals.py [--data DIR] [PRIOR ...]

For each filter, the responses ⟨k_j, p + sigma n⟩ of a million patches of the training images are counted in 201 bins
between their quantiles κ and 1 − κ (κ = 0.005), and compared with psi_j(·, t): the squared difference averaged over the
bins, over the squared maximum of the histogram, averaged over the filters. Writes experiments/results/marginals.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from heatprior import bsds500, load
from heatprior.arrays import FloatArray
from heatprior.datasets import PatchSource, read_images
from heatprior.priors.patch import PatchPrior
from heatprior.records import write_record

SEED = 0
PATCHES = 1_000_000
BINS = 201
KAPPA = 0.005
SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)
RESULT = Path(__file__).parent / "results" / "marginals.json"


def histogram_error(prior: PatchPrior, responses: FloatArray, sigma: float) -> float:
    """Normalised squared error between psi_j and the histogram of the responses (n, J), averaged over the filters."""
    errors = []
    for j in range(prior.filters.count):
        low, high = np.quantile(responses[:, j], (KAPPA, 1.0 - KAPPA))
        counts, edges = np.histogram(responses[:, j], BINS, (low, high))
        density = counts / counts.sum() * (1.0 - 2.0 * KAPPA) / np.diff(edges)
        # psi_j averaged over each bin, as the histogram is: Simpson's rule
        points = np.stack([edges[:-1], 0.5 * (edges[:-1] + edges[1:]), edges[1:]])  # (3, bins)
        u = np.repeat(points.reshape(-1, 1), prior.filters.count, axis=1)
        psi = np.exp(prior.experts.log_density(u, sigma * prior.filters.norms)[:, j]).reshape(points.shape)
        smooth = np.array([1.0, 4.0, 1.0]) / 6.0 @ psi
        errors.append(np.mean((smooth - density) ** 2) / density.max() ** 2)
    return float(np.mean(errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=["patch7", "patch7-single"], metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    files = bsds500.training(arguments.data)
    rows: dict[str, list[float]] = {}
    for name in arguments.priors:
        prior = load(name)
        size = prior.filters.size
        source = PatchSource(read_images(files, size).images, size)
        rng = np.random.default_rng(SEED)
        patches = source.draw(PATCHES // (1 if size < 10 else 5), rng).T
        clean = prior.filters.analyse(patches)
        noise = rng.standard_normal(clean.shape) * prior.filters.norms  # responses of white noise are independent
        rows[name] = [histogram_error(prior, clean + sigma * noise, sigma) for sigma in tqdm(SIGMAS, name, leave=False)]
    print("normalised squared error of the marginals, sigma =" + "".join(f"{sigma:>10}" for sigma in SIGMAS))
    for name, row in rows.items():
        print(f"{name:50}" + "".join(f"{value:10.2e}" for value in row))
    write_record(RESULT, {"seed": SEED, "patches": PATCHES, "kappa": KAPPA, "sigmas": SIGMAS, "error": rows})


if __name__ == "__main__":
    main()
