"""The paper's training in full, 100,000 steps of iPALM from its start, held to the same claims as the shorter ones.

`patch7` and `patch15` were trained in thousands of steps, by Adam, with noise levels uniform in their logarithm, from a
start with heavy tails. Whether that matters is seen here.
"""

from __future__ import annotations

from functools import partial

from paper.claims import discrepancy, potentials, samples
from paper.claims.bench import TRAINING, Bench
from paper.claims.item import Finding, Item, Settings


def of_size(size: int, bench: Bench, settings: Settings) -> Finding:
    """Potentials, samples and discrepancy of the prior of this size, one after the other."""
    prior, single = _priors(size)
    parts = {
        "filters": potentials.of_prior(prior, bench.part(0, 3), settings),
        "samples": samples.of_prior(prior, bench.part(1, 3), {"patches": settings["samples"]}),
        "discrepancy": discrepancy.of_priors(prior, single, bench.part(2, 3), settings),
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


def _priors(size: int) -> tuple[str, str]:
    """That of the paper's training, and one that was trained at a single noise level."""
    return f"patch{size}-paper", f"patch{size}-single"


def _item(size: int, filters: int, patches: int, drawn: int) -> Item:
    return Item(
        f"paper-training{size}",
        f"Trained as in the paper, {size}×{size}",
        "section 4 (numerical results)",
        "100,000 steps of iPALM on batches of 3,200 patches, σ uniform from 0 to 0.4. Held to the same claims as "
        f"patch{size}: of Figures 1 and 2, and of the discrepancy.",
        partial(of_size, size),
        {"patches": patches, "filters": filters, "samples": drawn},
        {"patches": patches // 5, "filters": filters, "samples": drawn // 5},
        _priors(size),
        (TRAINING,),
    )


PAPER_TRAINING7 = _item(7, 48, 1_000_000, 50_000)
PAPER_TRAINING15 = _item(15, 112, 250_000, 20_000)
