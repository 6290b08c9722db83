"""How fast Algorithm 1, the projection onto orthogonal filters, converges: B = 3 steps against many.

From random filters, as at the start of a training, and from a trained bank that a step of training has pushed off its
constraint.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import products_in_one_thread
from heatprior.learning.patch_training import orthogonal_iterates
from paper.claims.bench import Bench
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import BLUE, ORANGE, panels
from paper.claims.published import PROJECTION_STEPS

PRIORS = {7: "patch7", 15: "patch15"}
PUSHED = 0.1  # root mean square change of a pushed bank over that of the bank: ten times what a step of training does
SHOWN = 12  # steps in the picture
SATISFACTORY = 1e-3  # relative excess of the squared distance after B steps
ROUNDING = 1e-12  # relative rise of the objective that is none
LEAST = 1e-15  # excess that is shown; below it all is rounding


class ProjectionRun(NamedTuple):
    """The squared distance (steps,), and how far from the last bank, relative to its norm, each one is."""

    squared_distance: FloatArray
    to_limit: FloatArray

    def excess(self) -> FloatArray:
        """Over the last squared distance, relative to it."""
        return np.asarray(self.squared_distance / self.squared_distance[-1] - 1.0)


def run(filters: FloatArray, steps: int) -> ProjectionRun:
    """Algorithm 1 from these filters, for so many polar decompositions."""
    iterates = list(islice(orthogonal_iterates(filters), steps))
    limit = iterates[-1].filters
    return ProjectionRun(
        np.array([iterate.squared_distance for iterate in iterates]),
        np.array([np.linalg.norm(iterate.filters - limit) / np.linalg.norm(limit) for iterate in iterates]),
    )


def make(bench: Bench, settings: Settings) -> Finding:
    """Several random and pushed banks of both sizes."""
    runs: dict[str, list[ProjectionRun]] = {}
    cases = [(size, kind) for size in PRIORS for kind in ("random", "trained, pushed")]
    for number, (size, kind) in enumerate(cases):
        with products_in_one_thread():  # they are small: threads would wait for each other
            runs[f"{size}×{size}, {kind}"] = [
                run(_start(bench, size, kind, seed), settings["steps"]) for seed in range(settings["banks"])
            ]
        bench.progress((number + 1) / len(cases))
    after = PROJECTION_STEPS - 1
    figures: dict[str, Any] = {
        "banks": settings["banks"],
        "steps": settings["steps"],
        "cases": {
            name: {
                "excess": np.mean([one.excess() for one in each], axis=0)[:SHOWN].tolist(),
                "excess_after_B": [float(one.excess()[after]) for one in each],
                "to_limit_after_B": [float(one.to_limit[after]) for one in each],
                "largest_relative_rise": max(_rise(one) for one in each),
            }
            for name, each in runs.items()
        },
    }
    rows = [
        [
            name,
            *(f"{np.mean([one.excess()[step] for one in each]):.1e}" for step in (0, 1, 2, 4, 9)),
            f"{np.mean([one.to_limit[after] for one in each]):.1e}",
        ]
        for name, each in runs.items()
    ]
    head = ["steps", "1", "2", "3", "5", "10", "filters after 3, relative error"]
    table = Table("Excess of the squared distance over the converged one, relative, means over the banks", head, rows)
    caption = (
        f"Excess of ‖OD − K‖² over its value after {settings['steps']} steps, relative, over the steps (polar "
        f"decompositions) of Algorithm 1; {settings['banks']} banks of each kind."
    )
    return Finding(figures, _checks(figures), [Picture(_drawn(runs), caption)], [table])


def _start(bench: Bench, size: int, kind: str, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.normal(scale=1.0 / size, size=(size**2 - 1, size**2))
    filters = bench.prior(PRIORS[size]).filters.matrix
    return filters + PUSHED * float(np.sqrt(np.square(filters).mean())) * rng.standard_normal(filters.shape)


def _rise(one: ProjectionRun) -> float:
    return float(max(np.diff(one.squared_distance).max() / one.squared_distance[0], 0.0))


def _checks(figures: dict[str, Any]) -> list[Check]:
    cases = figures["cases"]
    rise = max(case["largest_relative_rise"] for case in cases.values())
    excess = {name: max(case["excess_after_B"]) for name, case in cases.items()}
    worst = max(excess, key=excess.__getitem__)
    return [
        Check(
            "The objective never rises, but for rounding",
            f"largest rise in a step {rise:.1e} of the objective",
            rise <= ROUNDING,
        ),
        Check(
            f"Fast convergence, B = {PROJECTION_STEPS} is satisfactory: the squared distance is then within "
            f"{SATISFACTORY:.1%} of the converged one",
            f"at worst {excess[worst]:.1e} above it ({worst}); filters off by "
            f"{max(max(case['to_limit_after_B']) for case in cases.values()):.1%} at most",
            excess[worst] <= SATISFACTORY,
            "Random filters are far from orthogonal; in a training the filters are pushed only a little in each step.",
        ),
    ]


def _drawn(runs: dict[str, list[ProjectionRun]]) -> Figure:
    figure, (axes,) = panels(1, 1, (8.0, 4.4))
    for name, each in runs.items():
        colour, style = BLUE if name.startswith("7") else ORANGE, "-" if "random" in name else "--"
        for number, one in enumerate(each):
            steps = np.arange(1, SHOWN + 1)
            excess = np.maximum(one.excess()[:SHOWN], LEAST)
            axes.semilogy(steps, excess, style, color=colour, marker=".", linewidth=1.2, label=None if number else name)
    axes.axvline(PROJECTION_STEPS, color="0.3", linewidth=0.8, linestyle=":", label=f"B = {PROJECTION_STEPS}")
    axes.set_xticks(range(1, SHOWN + 1))
    axes.set_xlabel("steps of Algorithm 1", fontsize=10)
    axes.set_ylabel("relative excess of the squared distance", fontsize=10)
    axes.legend(fontsize=9, frameon=False)
    return figure


PROJECTION = Item(
    "projection",
    "Projection onto orthogonal filters",
    "Algorithm 1",
    "“We have empirically observed fast convergence; B = 3 steps already yielded satisfactory results.” (As "
    "printed, B = 3 takes two polar decompositions; here a step is one.)",
    make,
    {"banks": 5, "steps": 100},
    {"banks": 2, "steps": 40},
    tuple(PRIORS.values()),
)
