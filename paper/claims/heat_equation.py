"""How well priors solve the heat equation ∂_t f = Δf, Eq. (1): the residual of its logarithmic form, by differences.

r = ∂_t log f − Δ log f − |∇ log f|², t = sigma²/2, at noisy patches of images: its root mean square over that of
∂_t log f. The steps of the differences are in units of sigma: no density is narrower than the noise in it. The
convolutional prior is not normalised, and what its normaliser Z(t) would add to r is the same for all images: it is
judged by the deviation of r from its mean. On tiny grids, where it can be written out, the true diffusion of a model is
also compared with the model itself (true_diffusion.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from heatprior import zoo
from heatprior.arrays import FloatArray
from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from heatprior.store import read_prior_file
from paper.claims import true_diffusion
from paper.claims.bench import TRAINING, Bench
from paper.claims.heat_cases import heat_defects
from paper.claims.heat_residual import heat_terms
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import BLUE, GREEN, GREY, ORANGE, RED, panels
from paper.claims.true_diffusion import EXACT, NOT_ORTHOGONAL, WEIGHTS

SEED = 3
SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
WRONG = 1.1  # times sigma: the control answers for another noise level than it is asked
SIDE = 8  # pixels of the images for priors of whole images
LEVELS = 3  # of wavelets on them
WHOLE_IMAGES = ("wavelet", "conv")


class Density(Protocol):
    """What is asked of a prior."""

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f, up to a constant that may depend on sigma."""

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """Its gradient."""


class Subject(NamedTuple):
    """A prior to be tried on patches of side `size`, as vectors or, `flat` being false, as images."""

    name: str
    prior: Density
    size: int
    flat: bool = True
    normalised: bool = True
    must_hold: bool = True
    reason: str = NOT_ORTHOGONAL


@dataclass(frozen=True)
class Mistimed:
    """A control that must fail: a prior that diffuses at another pace than the heat equation."""

    prior: Density

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """At a noise level that is 1.1 times as large."""
        return self.prior.log_prob(y, WRONG * np.asarray(sigma))

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """Its gradient."""
        return self.prior.score(y, WRONG * np.asarray(sigma))


def residual(prior: Density, y: FloatArray, sigma: float, *, normalised: bool = True) -> float:
    """RMS over y (n, …) of r, less its mean if the prior is not normalised, over that of ∂_t log f."""
    points = y.reshape(len(y), -1)
    terms = heat_terms(
        lambda p, s: prior.log_prob(p.reshape(y.shape), s),
        lambda p, s: prior.score(p.reshape(y.shape), s).reshape(points.shape),
        points,
        np.eye(points.shape[1]),
        sigma,
    )
    r = terms.residual if normalised else terms.residual - terms.residual.mean()
    return float(np.sqrt(np.mean(r**2) / np.mean(terms.in_time**2)))


def subjects(bench: Bench) -> list[Subject]:
    """The priors to be tried, and the control."""
    patch = bench.prior("patch7")
    wavelet = WaveletPrior.from_file(read_prior_file(bench.path("wavelet")))
    return [
        Subject("patch7", patch, patch.filters.size),
        Subject("patch15", bench.prior("patch15"), 15),
        Subject("control: patch7 at 1.1 σ", Mistimed(patch), patch.filters.size, must_hold=False),
        Subject(f"wavelet, {LEVELS} finest levels", finest(wavelet), SIDE, flat=False),
        Subject(
            "conv, a response at every pixel",
            zoo.load(bench.path("conv")),
            SIDE,
            flat=False,
            normalised=False,
            reason=WEIGHTS,
        ),
    ]


def finest(prior: WaveletPrior) -> WaveletPrior:
    """The finest bands of a wavelet prior, for small images: bands come in this order whatever the number of levels."""
    basis = WaveletBasis(prior.bands.scaling, LEVELS, min(prior.bands.splits, LEVELS - 1))
    count = basis.count
    return WaveletPrior(basis, prior.norms[:count], Experts(prior.experts.logits[:count], prior.experts.reach))


def make(bench: Bench, settings: Settings) -> Finding:
    """The residual of each prior over the noise level."""
    found: dict[str, list[float]] = {}
    tried = subjects(bench)
    rng = np.random.default_rng(SEED)
    for number, subject in enumerate(tried):
        clean = bench.clean_patches(subject.size, settings["samples"], SEED).T
        noise = rng.standard_normal(clean.shape)
        shape = clean.shape if subject.flat else (len(clean), subject.size, subject.size)
        found[subject.name] = []
        for step, sigma in enumerate(SIGMAS):
            y = (clean + sigma * noise).reshape(shape)
            found[subject.name].append(residual(subject.prior, y, sigma, normalised=subject.normalised))
            bench.progress((number + (step + 1) / len(SIGMAS)) / (len(tried) + 1))
    written_out = heat_defects(settings["tiny"], SEED)
    figures: dict[str, Any] = {
        "sigmas": SIGMAS,
        "samples": settings["samples"],
        "seed": SEED,
        "residual": found,
        "written_out": {name: [defect._asdict() for defect in each] for name, each in written_out.items()},
    }
    rows = [[name, *(f"{value:.1e}" for value in values)] for name, values in found.items()]
    tables = [
        Table("Relative residual", ["σ", *(f"{sigma:g}" for sigma in SIGMAS)], rows),
        true_diffusion.table(written_out),
    ]
    pictures = [
        Picture(
            _drawn(found),
            "Relative residual of the heat equation at noisy patches of images. What lies below the dotted line is "
            "exact as far as differences tell.",
        ),
        true_diffusion.picture(written_out),
    ]
    return Finding(figures, [*_checks(tried, found), *true_diffusion.checks(written_out)], pictures, tables)


def _checks(tried: list[Subject], found: dict[str, list[float]]) -> list[Check]:
    checks = []
    for subject in tried:
        values = found[subject.name]
        if subject.must_hold:
            claim = f"{subject.name}: solves the heat equation exactly, residual at most {EXACT:.0e}"
            measured = f"{min(values):.1e} to {max(values):.1e}"
            checks.append(Check(claim, measured, max(values) <= EXACT, subject.reason))
        else:
            claim = "The measure tells: a prior that diffuses at another pace fails"
            checks.append(Check(claim, f"{min(values):.1e} and more", min(values) > EXACT))
    return checks


def _drawn(found: dict[str, list[float]]) -> Figure:
    figure, (axes,) = panels(1, 1, (8.0, 4.2))
    for (name, values), colour, marker in zip(
        found.items(), (BLUE, ORANGE, GREEN, RED, "0.2", GREY), "osD^v", strict=False
    ):
        axes.loglog(SIGMAS, values, color=colour, marker=marker, markersize=5, linewidth=1.2, label=name)
    axes.axhline(EXACT, color="0.3", linewidth=0.8, linestyle=":", label="exact, as far as differences tell")
    axes.set_xticks(SIGMAS, [f"{sigma:g}" for sigma in SIGMAS])
    axes.minorticks_off()
    axes.set_xlabel("noise level σ = √(2t)", fontsize=10)
    axes.set_ylabel("relative residual", fontsize=10)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    return figure


HEAT = Item(
    "heat-equation",
    "The heat equation",
    "Theorem 2; the theorem on convolutional models",
    "With orthogonal filters, and for convolutions with disjoint spectra, the diffused model is again one of the "
    "same kind: f(·, t) solves ∂_t f = Δf.",
    make,
    {"samples": 50, "tiny": 1000},
    {"samples": 8, "tiny": 50},
    ("patch7", "patch15", *WHOLE_IMAGES),
    (TRAINING,),
)
