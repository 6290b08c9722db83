"""The weights of the paper's priors by maximum likelihood, filters held: what that does to each claim of the paper.

    python -m paper.weights.refit_weights [--data DIR] [--ship] [PRIOR ...]

Weights are fitted to patches of the training images under noise of σ from 0 to 0.4, as in the paper's training. Before
and after: how far experts are from marginals (middle and outer 1 %), the normalised error of the density, distances of
responses and norms of samples, the mean log-density of noisy patches of validation images, and the mean PSNR on crops
of eight validation images in one step. Writes records/refit_weights.json, and with --ship the priors, as
PRIOR-density, into the package. What is recorded of other priors stays.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import denoise_once
from paper import EXHIBITS, RECORDS, bsds500
from paper.claims import potentials, samples
from paper.claims.bench import Bench
from paper.claims.published import SIGMAS
from paper.learning.weight_refit import refit_weights
from paper.records import write_record

SEED = 3
PRIORS = ["patch7"]
PATCHES = 400_000
FITTED = np.linspace(0.0, 0.4, 21)  # the paper's σ, uniformly
ROUNDS = 300
CROP, IMAGES = slice(80, 240), 8
HELD_OUT = 50_000  # patches of validation images
RESULT = RECORDS / "refit_weights.json"


def card_of(name: str, prior: PatchPrior) -> dict[str, Any]:
    """That of the prior, without what was calibrated with its weights."""
    kept = {key: prior.card[key] for key in ("hqs", "made", "trained on", "training") if key in prior.card}
    return {**kept, "name": f"{name}-density", "weights": f"by maximum likelihood over {len(FITTED)} noise levels"}


def log_densities(prior: PatchPrior, data: Path | None) -> list[float]:
    """The mean of log f over noisy patches of validation images, at each level above zero."""
    images = read_images(bsds500.validation(data), prior.filters.size).images
    rng = np.random.default_rng(SEED)
    patches = PatchSource(images, prior.filters.size).draw(HELD_OUT, rng).T
    noise = rng.standard_normal(patches.shape)
    return [float(prior.log_prob(patches + sigma * noise, sigma).mean()) for sigma in SIGMAS]


def one_step(prior: PatchPrior, crops: list[FloatArray]) -> list[float]:
    """Mean PSNR at the levels of the paper's table."""
    return [
        float(
            np.mean(
                [
                    psnr(denoise_once(prior, with_noise(crop, number, level / 255), level / 255), crop)
                    for number, crop in enumerate(crops)
                ]
            )
        )
        for level in LEVELS
    ]


def figures_of(name: str, path: Path, data: Path | None, crops: list[FloatArray]) -> dict[str, Any]:
    """What the claims are judged by."""
    bench = Bench(data, priors={name: path})
    prior = bench.prior(name)
    found = potentials.of_prior(name, bench, {"patches": PATCHES, "filters": 4}).figures
    kept = {key: found[key] for key in ("nmse", "log_error_body", "log_error_tail", "log_error_tail_worst_filter")}
    drawn = samples.of_prior(name, bench, {"patches": 20_000}).figures["samples"]
    return {
        **kept,
        "samples": drawn,
        "log_density": log_densities(prior, data),
        "one_step_psnr": one_step(prior, crops),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=PRIORS, metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true", help="put them into the package")
    arguments = parser.parse_args()
    files = bsds500.validation(arguments.data)[:IMAGES]
    crops = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in files]
    rows: dict[str, dict[str, Any]] = {}
    for name in tqdm(arguments.priors, leave=False, disable=None):
        bench = Bench(arguments.data)
        prior = bench.prior(name)
        patches = bench.clean_patches(prior.filters.size, PATCHES, SEED)
        after = refit_weights(prior, patches, list(FITTED), ROUNDS, card_of(name, prior))
        with tempfile.TemporaryDirectory() as folder:
            path = (EXHIBITS if arguments.ship else Path(folder)) / f"{name}-density.safetensors"
            after.save(path)
            both = {"before": bench.path(name), "after": path}
            rows[name] = {when: figures_of(name, file, arguments.data, crops) for when, file in both.items()}
        print(json.dumps(rows[name], indent=1))
    settings = {"seed": SEED, "patches": PATCHES, "sigmas": SIGMAS, "rounds": ROUNDS, "levels": LEVELS}
    before = json.loads(RESULT.read_text())["priors"] if RESULT.exists() else {}
    write_record(RESULT, {**settings, "priors": {**before, **rows}})


if __name__ == "__main__":
    main()
