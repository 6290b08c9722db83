"""Models beside what diffusion really makes of them, on grids so small that this can be written out.

`priors/heat_cases.py` measures it; here the figures become checks, a table and a picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paper.claims.heat_defects import Defect
from paper.claims.item import Check, Picture, Table
from paper.claims.plots import BLUE, GREEN, GREY, ORANGE, RED, panels

Cases = Mapping[str, Sequence[Defect]]  # over the noise levels, by the name of the model

EXACT = 1e-6  # residual or distance that differences cannot tell from zero
SMALLEST = 1e-16  # total variation that is shown: rounding
WEIGHTS = (
    "With a response at every pixel a band has more responses than dimensions. Written out as one mixture of "
    "Gaussians, diffusion widens its components and leaves their weights alone; in the model the weights change with "
    "t, too (docs/math.md). On the coefficients of an orthonormal wavelet basis, as many as dimensions, the same model "
    "is exact."
)
NOT_ORTHOGONAL = "The filters are not orthogonal, or the prior does not widen its experts as the theorem says."
MODEL_KINDS = (
    ("patch", "patch models", NOT_ORTHOGONAL),
    ("wavelet", "convolutional models on orthonormal coefficients", NOT_ORTHOGONAL),
    ("convolutional", "convolutional models with a response at every pixel", WEIGHTS),
)


def checks(cases: Cases) -> list[Check]:
    """Each kind of model against its true diffusion."""
    found = []
    for kind, words, reason in MODEL_KINDS:
        worst = max(_distance(each) for name, each in cases.items() if name.startswith(kind))
        claim = f"On tiny grids {words} are their own true diffusion: total variation at most {EXACT:.0e}"
        found.append(Check(claim, f"up to {worst:.1e}", worst <= EXACT, reason))
    return found


def table(cases: Cases) -> Table:
    """The largest defects of each model."""
    rows = [[name, f"{_residual(each):.1e}", f"{_distance(each):.1e}"] for name, each in cases.items()]
    sigmas = [defect.sigma for each in cases.values() for defect in each]
    return Table(
        f"On tiny grids, experts reaching to 1, σ from {min(sigmas):g} to {max(sigmas):g}",
        ["model", "largest residual", "largest total variation to the true diffusion"],
        rows,
    )


def picture(cases: Cases) -> Picture:
    """The distances over the noise level."""
    figure, (axes,) = panels(1, 1, (8.0, 4.2))
    colours, markers = (BLUE, ORANGE, GREEN, RED, "0.2", GREY), "osD^vP"
    for (name, defects), colour, marker in zip(cases.items(), colours, markers, strict=False):
        distances = [max(defect.total_variation, SMALLEST) for defect in defects]
        sigmas = [defect.sigma for defect in defects]
        axes.loglog(sigmas, distances, color=colour, marker=marker, markersize=4, linewidth=1.2, label=name)
    axes.set_xlabel("noise level σ = √(2t)", fontsize=10)
    axes.set_ylabel("total variation", fontsize=10)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    caption = "Total variation between model and true diffusion, on grids so small that this can be written out."
    return Picture(figure, caption, "-diffusion")


def _residual(defects: Sequence[Defect]) -> float:
    return max(defect.residual for defect in defects)


def _distance(defects: Sequence[Defect]) -> float:
    return max(defect.total_variation for defect in defects)
