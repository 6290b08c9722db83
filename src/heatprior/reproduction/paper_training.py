"""The paper's training in full, 100,000 steps of iPALM from the paper's start: held to the same claims as `patch7`.

That was trained for a quarter of a minute, by Adam, with noise levels uniform in their logarithm, from
a start with heavy tails. Whether that matters is seen here.
"""

from __future__ import annotations

from heatprior.reproduction import discrepancy, potentials, samples
from heatprior.reproduction.bench import TRAINING, Bench
from heatprior.reproduction.item import Finding, Item, Settings

PRIOR = "patch7-paper"


def make(bench: Bench, settings: Settings) -> Finding:
    """Potentials, samples and discrepancy of the prior, one after the other."""
    parts = {
        "filters": potentials.of_prior(PRIOR, bench.part(0, 3), settings),
        "samples": samples.of_prior(PRIOR, bench.part(1, 3), {"patches": settings["samples"]}),
        "discrepancy": discrepancy.of_prior(PRIOR, bench.part(2, 3), settings),
    }
    return Finding(
        {name: part.figures for name, part in parts.items()},
        [check for part in parts.values() for check in part.checks],
        [
            picture._replace(suffix="" if name == "filters" and not picture.suffix else f"-{name}{picture.suffix}")
            for name, part in parts.items()
            for picture in part.pictures
        ],
        [table for part in parts.values() for table in part.tables],
    )


PAPER_TRAINING = Item(
    "paper-training",
    "Trained as in the paper",
    "section 4 (numerical results)",
    "100,000 steps of iPALM on batches of 3,200 patches, σ uniform from 0 to 0.4. Held to the same claims as the prior "
    "above: of Figures 1 and 2, and of the discrepancy.",
    make,
    {"patches": 1_000_000, "filters": 48, "samples": 50_000},
    {"patches": 200_000, "filters": 48, "samples": 10_000},
    (PRIOR, discrepancy.SINGLE),
    (TRAINING,),
)
