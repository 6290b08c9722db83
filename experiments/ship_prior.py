"""Put the prior of a training run into the package, under a name.

    python experiments/ship_prior.py RUN NAME

A mixture is stored in float16 and gets its schedule: EPLL's if it has one contrast, else two steps at two scales, which
come within 0.05 dB of EPLL's five.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatprior import GaussianMixturePrior, load
from heatprior.zoo import FOLDER

BETAS = np.array([1.0, 4.0, 8.0, 16.0, 32.0])  # of EPLL, times sigma²
EPLL: dict[str, Any] = {
    "hqs": {"sigmas": [0.1], "levels": [(BETAS**-0.5).tolist()], "weights": [(1.0 / (1.0 + BETAS)).tolist()]}
}
TWO_STEPS: dict[str, Any] = {"hqs": {"sigmas": [0.1], "levels": [[1.0, 0.4]], "weights": [[0.3, 0.0]]}, "scales": 2}


def main() -> None:
    run, name = sys.argv[1:]
    prior = load(Path(run) / "prior.safetensors")
    path = FOLDER / f"{name}.safetensors"
    if isinstance(prior, GaussianMixturePrior):
        schedule = EPLL if len(prior.contrasts) == 1 else TWO_STEPS
        replace(prior, card={**prior.card, **schedule, "name": name}).save(path, dtype=np.float16)
    else:
        replace(prior, card={**prior.card, "name": name}).save(path)


if __name__ == "__main__":
    main()
