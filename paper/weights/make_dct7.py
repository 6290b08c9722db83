"""Write the exhibit `dct7`, made by hand and without chance: the same numbers at every run."""

from __future__ import annotations

from paper import prior_file
from paper.weights.handmade import dct_prior


def main() -> None:
    dct_prior(7).save(prior_file("dct7"))


if __name__ == "__main__":
    main()
