"""What patches of photographs give: quantiles of their log-density under noise, written on the card of `mixture`.

    python -m paper.weights.fit_surprise [--data DIR]

From at most 80 patches of every fourth of the training images of BSDS500, which the prior has seen. Nothing else
in its file changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from heatprior.data.trials import with_noise
from heatprior.images import read_grey
from heatprior.restoration.surprise import CARD_ENTRY, PARTS, log_densities
from heatprior.store import PriorFile, read_prior_file, write_prior_file
from paper import bsds500, load, prior_file

LEVELS = (1, 2, 5, 10, 15, 25, 50, 100)  # 255 sigma
EVERY = 4  # images
PATCHES = 80  # of each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    prior = load("mixture")
    files = bsds500.training(arguments.data)[::EVERY]
    found: list[list[float]] = [[] for _ in LEVELS]
    for number, path in enumerate(tqdm(files, leave=False, disable=None)):
        clean = read_grey(path) / np.float32(255)
        for values, level in zip(found, LEVELS, strict=True):
            noisy = with_noise(clean, number, level / 255)
            values.extend(log_densities(noisy, level / 255, prior, PATCHES).ravel().tolist())
    table = [[round(float(q), 2) for q in np.quantile(values, PARTS)] for values in found]
    path = prior_file("mixture")
    contents = read_prior_file(path)
    entry = {"sigmas": [round(level / 255, 6) for level in LEVELS], "quantiles": table}
    write_prior_file(path, PriorFile(contents.kind, contents.tensors, {**contents.card, CARD_ENTRY: entry}))
    for level, row in zip(LEVELS, table, strict=True):
        print(level, row)


if __name__ == "__main__":
    main()
