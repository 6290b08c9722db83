"""How exactly each kind of prior solves the heat equation: residual and distance to the true diffusion, over the noise.

    python -m paper.evaluations.heat_equation

On grids so small that the true diffusion can be written out. Patch and wavelet priors are exact; the paper's
convolutional one is not. Writes records/heat_equation.json and docs/heat-equation.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from heatprior.pictures.figures import COLOURS
from heatprior.priors.bands import Shape
from paper import RECORDS
from paper.claims.heat_cases import convolutional_examples, heat_defects, two_pixels
from paper.claims.heat_defects import Defect
from paper.claims.multiplied_out import MultipliedOut
from paper.claims.plots import save_diagram
from paper.records import write_record

SEED = 0
SAMPLES = 1000
RESULT = RECORDS / "heat_equation.json"
PICTURE = RECORDS.parent / "docs" / "heat-equation.png"
SMALLEST = 1e-12  # that is drawn
TWO: Shape = (1, 2)


def main() -> None:
    found = heat_defects(SAMPLES, SEED)
    for name, defects in found.items():
        worst = max(defects, key=lambda defect: defect.residual)
        furthest = max(defect.total_variation for defect in defects)
        print(f"{name:36} residual up to {worst.residual:.2g}, total variation up to {furthest:.2g}")
    example = two_pixel_example()
    print(f"two pixels at 2t = 0.1: {example}")
    rows = {name: [defect._asdict() for defect in defects] for name, defects in found.items()}
    write_record(
        RESULT,
        {
            "seed": SEED,
            "samples": SAMPLES,
            "cases": rows,
            "two_pixels": example,
            "log_normaliser": {name: normalisers(name, defects) for name, defects in found.items() if "conv" in name},
        },
    )
    draw(found, PICTURE)
    print(f"wrote {RESULT} and {PICTURE}")


def normalisers(name: str, defects: list[Defect]) -> list[float]:
    """log Z at each noise level, which the paper takes to be constant."""
    truth = MultipliedOut(*convolutional_examples()[name])
    return [truth.log_normaliser(defect.sigma) for defect in defects]


def two_pixel_example(variance: float = 0.1) -> dict[str, float]:
    """The figures of docs/math.md: by how much the normalised model is off at 2t = 0.1, and Z."""
    prior, sigma = two_pixels(), float(np.sqrt(variance))
    truth = MultipliedOut(prior, TWO)
    images = (np.linspace(-6.0, 6.0, 2401)[:, None] * truth.axes[0]).reshape(-1, *TWO)
    model = np.exp(prior.log_prob(images, sigma) - truth.log_normaliser(sigma))
    true = np.exp(truth.log_prob(images, sigma))
    return {
        "largest_error_over_peak": float(np.abs(model - true).max() / true.max()),
        "z_without_noise": float(np.exp(truth.log_normaliser(0.0))),
        "z": float(np.exp(truth.log_normaliser(sigma))),
    }


def draw(found: dict[str, list[Defect]], path: Path) -> None:
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    colours = [*COLOURS, "#CC79A7"]
    for (name, defects), colour in zip(found.items(), colours, strict=True):
        style = "-" if "conv" in name else "--"
        sigmas = [defect.sigma for defect in defects]
        residuals = [max(defect.residual, SMALLEST) for defect in defects]
        left.loglog(sigmas, residuals, style, color=colour, label=name, linewidth=1.2)
        distances = [max(defect.total_variation, SMALLEST) for defect in defects]
        right.loglog(sigmas, distances, style, color=colour, linewidth=1.2)
    left.set(xlabel="noise level σ = √2t (reach of the experts: 1)", title="residual of the heat equation, relative")
    right.set(xlabel="noise level σ = √2t", title="total variation to the true diffusion")
    for panel in (left, right):
        panel.grid(visible=True, color="0.9", linewidth=0.5)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    save_diagram(figure, path)


if __name__ == "__main__":
    main()
