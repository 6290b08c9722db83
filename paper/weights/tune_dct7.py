"""The two numbers of the prior made by hand, CONTRAST and DECAY, from a coarse grid by likelihood on training images.

    python -m paper.weights.tune_dct7 [--data DIR]

Prints the mean log-density of noisy 7×7 patches (255 sigma = 2, so that 8-bit steps do not count) for each pair, and
writes records/tune_dct7.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior.data.datasets import PatchSource, read_images
from paper import RECORDS, bsds500
from paper.records import write_record
from paper.weights.handmade import dct_prior

SEED = 0
PATCHES = 20_000
SIGMA = 2.0 / 255.0
CONTRASTS = (0.012, 0.014, 0.016, 0.018, 0.02)
DECAYS = (1 / 64, 1 / 100, 1 / 128, 1 / 160, 1 / 200)
RESULT = RECORDS / "tune_dct7.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    source = PatchSource(read_images(bsds500.training(parser.parse_args().data), 7).images, 7)
    rng = np.random.default_rng(SEED)
    patches = source.draw(PATCHES, rng).T
    patches = patches + SIGMA * rng.standard_normal(patches.shape)
    grid = [
        [float(dct_prior(7, contrast, decay).log_prob(patches, SIGMA).mean()) for decay in DECAYS]
        for contrast in CONTRASTS
    ]
    print("mean log-density; decay" + "".join(f"{decay:10.4f}" for decay in DECAYS))
    for contrast, row in zip(CONTRASTS, grid, strict=True):
        print(f"contrast {contrast:14.3f}" + "".join(f"{value:10.2f}" for value in row))
    best = np.unravel_index(np.argmax(grid), (len(CONTRASTS), len(DECAYS)))
    print(f"best: contrast {CONTRASTS[best[0]]}, decay {DECAYS[best[1]]:.5f}")
    write_record(
        RESULT,
        {
            "seed": SEED,
            "patches": PATCHES,
            "sigma": SIGMA,
            "contrasts": CONTRASTS,
            "decays": DECAYS,
            "log_density": grid,
        },
    )


if __name__ == "__main__":
    main()
