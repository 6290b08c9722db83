"""Put the prior of a training run into the package, under a name.

python experiments/ship_prior.py RUN NAME
"""

from __future__ import annotations

import sys
from pathlib import Path

from heatprior import PatchPrior, load
from heatprior.zoo import FOLDER


def main() -> None:
    run, name = sys.argv[1:]
    prior = load(Path(run) / "prior.safetensors")
    PatchPrior(prior.filters, prior.experts, {**prior.card, "name": name}).save(FOLDER / f"{name}.safetensors")


if __name__ == "__main__":
    main()
