"""Train a prior that `hp.train` can learn from the 400 training images of BSDS500, and put it in its place.

    python -m paper.weights.train NAME RUN [--resume] [--data DIR]

NAME is a shipped prior or an exhibit of TRAININGS; RUN is the run folder, as that of `heatprior train`. Patch priors
get their schedules of splitting afterwards (`paper.weights.tune_schedules`). A mixture is stored in float16 and gets
its schedule here. One contrast: that of EPLL, β sigma² = 1, 4, 8, 16, 32, with a first level of 1.1 sigma and slower
for strong noise: 0.04 to 0.13 dB better on crops of eight validation images. Several: two steps, which come within
0.05 dB of five.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import heatprior as hp
from heatprior.data.datasets import read_images
from heatprior.kinds import KINDS
from heatprior.learning.training import MOST_IMAGES, LogEntry, StepReport
from paper import bsds500, prior_file
from paper.learning.ipalm import PaperConfig

ONE_LEVEL: dict[str, Any] = {"sigma_min": 0.02, "sigma_max": 0.02}
TRAININGS: dict[str, hp.TrainingConfig | hp.MixtureConfig] = {
    "patch7": hp.TrainingConfig(),
    "patch15": hp.TrainingConfig(size=15, steps=5000),
    "mixture": hp.MixtureConfig(),
    "epll": hp.MixtureConfig(shapes=200, contrasts=1),
    "patch7-single": hp.TrainingConfig(**ONE_LEVEL),
    "patch15-single": hp.TrainingConfig(size=15, steps=5000, **ONE_LEVEL),
    "patch7-paper": PaperConfig(),
    "patch15-paper": PaperConfig(size=15),
}
EPLL: dict[str, Any] = {
    "hqs": {
        "sigmas": [0.2, 0.4],
        "levels": [[1.1, 0.5, 0.354, 0.25, 0.177], [1.1, 0.6, 0.42, 0.3, 0.2]],
        "weights": [[0.5, 0.2, 0.111, 0.0588, 0.0303], [0.5, 0.25, 0.13, 0.07, 0.03]],
    }
}
TWO_STEPS: dict[str, Any] = {"hqs": {"sigmas": [0.1], "levels": [[1.0, 0.4]], "weights": [[0.3, 0.0]]}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=TRAININGS)
    parser.add_argument("run", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    # what a run folder names, so that it can be resumed
    KINDS[PaperConfig.kind] = replace(KINDS["patch"], training="paper.learning.ipalm:PaperConfig")
    config = TRAININGS[options.name]
    images = read_images(bsds500.training(options.data), config.size).images
    checks = read_images(bsds500.validation(options.data)[:MOST_IMAGES], config.size).images
    with tqdm(total=config.steps, disable=None) as bar:

        def report(event: StepReport | LogEntry) -> None:
            bar.update(event.step - bar.n)

        trained: Any = hp.train(
            images, config, validation=checks, report=report, run=options.run, resume=options.resume
        )
    save(trained, options.name)


def save(trained: Any, name: str) -> None:
    """Put a prior among the shipped ones or the exhibits, with its name and where it comes from on its card."""
    card = {**trained.card, "name": name, "trained on": "BSDS500, train and test"}
    if isinstance(trained, hp.GaussianMixturePrior):
        schedule = EPLL if len(trained.contrasts) == 1 else TWO_STEPS
        replace(trained, card={**card, **schedule}).save(prior_file(name), dtype=np.float16)
    else:
        replace(trained, card=card).save(prior_file(name))


if __name__ == "__main__":
    main()
