"""Write the shipped prior `dct7`, made by hand and without chance: the same numbers at every run."""

from __future__ import annotations

from heatprior.priors.handmade import dct_prior
from heatprior.zoo import FOLDER


def main() -> None:
    dct_prior(7).save(FOLDER / "dct7.safetensors")


if __name__ == "__main__":
    main()
