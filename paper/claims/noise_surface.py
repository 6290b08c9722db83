"""The mean of −log f over the noise in the patches and the noise level asked for: it is lowest at the true noise level.

l(x, t) = −log f(x, t) + max_t log f(x, t), so that each patch's curve touches zero; E l(p + sigma n, t) over patches of
images is the surface, and sqrt(2t) at its minimum the estimate of sigma.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline

from heatprior.arrays import FloatArray
from heatprior.priors.patch import PatchPrior
from paper.claims.bench import TRAINING, Bench
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import BLACK, BLUE, ORANGE, panels
from paper.claims.published import SLICE

PRIOR = "patch7"
SEED = 2
ASKED = np.linspace(0.01, 0.4, 79)  # sqrt(2t), in steps of 0.005
TRUE = np.linspace(0.02, 0.36, 18)  # sigma, in steps of 0.02; SLICE among them
CLOSE = 0.05  # relative error of a "very good match"
WEAK = 0.05  # noise below it is weak beside the texture of images
SPLINE_POINTS = 20  # between two of ASKED
TEXTURE = (
    "At weak noise the fine texture of images counts, which the experts, no narrower than their components, "
    "describe as wider than it is at zero and narrower in the tails: the likelihood then prefers another level."
)
SPREAD = "Images are not quite what the prior says: it treats the responses as independent."


def make(bench: Bench, settings: Settings) -> Finding:
    """The surface, its lowest points and the slice."""
    prior = bench.prior(PRIOR)
    patches = bench.clean_patches(prior.filters.size, settings["patches"], SEED).T
    noise = np.random.default_rng([SEED, 1]).standard_normal(patches.shape)
    surface = np.empty((len(TRUE), len(ASKED)))
    for row, sigma in enumerate(TRUE):
        surface[row] = mean_surprise(prior, patches + sigma * noise)
        bench.progress((row + 1) / len(TRUE))
    estimates = lowest(surface)
    errors = estimates / TRUE - 1.0
    figures: dict[str, Any] = {
        "patches": settings["patches"],
        "seed": SEED,
        "sigma": TRUE.tolist(),
        "estimate": estimates.tolist(),
        "relative_error": errors.tolist(),
        "asked": ASKED.tolist(),
        "surface": np.round(surface, 4).tolist(),
    }
    caption = (
        "Left: the mean of −log f, each patch's least value taken off, over the noise level asked for and that of "
        f"the patches; its lowest points beside the diagonal. Right: the slice at σ = {SLICE}."
    )
    table = Table(
        "Noise level by the lowest point",
        ["σ", *(f"{sigma:.2f}" for sigma in TRUE[::2])],
        [
            ["estimate", *(f"{value:.3f}" for value in estimates[::2])],
            ["error", *(f"{100 * value:+.1f} %".replace("-", "−") for value in errors[::2])],
        ],
    )
    return Finding(figures, _checks(errors), [Picture(_drawn(surface, estimates), caption)], [table])


def mean_surprise(prior: PatchPrior, noisy: FloatArray) -> FloatArray:
    """E l over patches (n, b²), for each noise level asked for."""
    values = np.stack([-prior.log_prob(noisy, sigma) for sigma in ASKED])  # (asked, n)
    return np.asarray(values.mean(axis=1) - values.min(axis=0).mean())


def lowest(surface: FloatArray) -> FloatArray:
    """sqrt(2t) at the minimum of each row, between the grid's points by a cubic spline."""
    fine = np.linspace(ASKED[0], ASKED[-1], SPLINE_POINTS * (len(ASKED) - 1) + 1)
    return np.asarray(fine[CubicSpline(ASKED, surface, axis=1)(fine).argmin(axis=1)])


def _checks(errors: FloatArray) -> list[Check]:
    checks = []
    for part, words, reason in (
        (TRUE >= WEAK, f"σ ≥ {WEAK}", SPREAD),
        (TRUE < WEAK, f"σ < {WEAK}", TEXTURE),
    ):
        worst = np.abs(errors[part])
        checks.append(
            Check(
                f"The argmin is a very good match to σ: relative error at most {CLOSE:.0%} at every {words}",
                f"mean {worst.mean():.1%}, worst {worst.max():.1%} at σ = {TRUE[part][worst.argmax()]:.2f}",
                bool((worst <= CLOSE).all()),
                reason,
            )
        )
    return checks


def _drawn(surface: FloatArray, estimates: FloatArray) -> Figure:
    figure, (left, right) = panels(1, 2, (10.5, 4.4))
    left.grid(visible=False)
    image = left.pcolormesh(ASKED, TRUE, surface, norm=LogNorm(), cmap="cividis", shading="gouraud", rasterized=True)
    left.plot(estimates, TRUE, color=ORANGE, marker=".", linewidth=2.4, label="lowest point")
    left.plot(TRUE, TRUE, "--", color="white", linewidth=1.2, label="√(2t) = σ")
    left.set_xlabel("√(2t), noise level asked for", fontsize=10)
    left.set_ylabel("σ, noise in the patches", fontsize=10)
    left.legend(loc="lower right", fontsize=9, facecolor="0.35", labelcolor="white", framealpha=0.9)
    figure.colorbar(image, ax=left).ax.set_title("mean of l", fontsize=9)
    row = int(np.abs(TRUE - SLICE).argmin())
    right.plot(ASKED, surface[row], color=BLUE, linewidth=1.4)
    right.axvline(estimates[row], color=ORANGE, linewidth=2.4, label=f"lowest point, {estimates[row]:.4f}")
    right.axvline(SLICE, color=BLACK, linewidth=1.0, linestyle="--", label=f"σ = {SLICE}")
    right.set_ylim(0.0, 40.0)
    right.set_xlabel("√(2t), noise level asked for", fontsize=10)
    right.set_ylabel("mean of l", fontsize=10)
    right.legend(fontsize=9, frameon=False)
    return figure


NOISE = Item(
    "noise-estimation",
    "Noise estimation",
    "Figure 4 (noise estimation)",
    "The argmin over t of the expected negative log-density “is a very good match” to σ.",
    make,
    {"patches": 20_000},
    {"patches": 1_500},
    (PRIOR,),
    (TRAINING,),
)
