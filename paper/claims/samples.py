"""Noisy patches of images beside exact samples of the prior, and two-sample tests of their responses and norms.

Kolmogorov and Smirnov's distance is the largest difference of two distribution functions. With enough patches any model
is told from images, so the distance says how good the match is, and the p-values, corrected for their number after
Holm, only whether a difference was seen at all. As a control, images are also tested against other patches of images.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import ks_2samp

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each
from heatprior.pictures.figures import plot_patches, symmetric_contrast
from heatprior.priors.patch import PatchPrior
from paper.claims.bench import TRAINING, Bench
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import BLUE, GREY, ORANGE, panels
from paper.claims.published import SIGMAS

PRIOR = "patch7"
SEED = 1
SHOWN = 64  # patches of each kind at each level
GOOD = 0.05  # distance up to which a match is called good: no probability of a half-line is off by more than 5 points
SIGNIFICANCE = 0.05  # of the tests, all together
LEAST_P = 1e-99  # smaller p-values are shown as this one
SLIGHTLY = 1.02  # times the standard deviation of the images, from which samples are noisier
INDEPENDENT = (
    "In the prior the responses are independent. In images they are not: flat patches are flat to all filters, and "
    "patches with an edge excite many at once. So norms of samples gather around their mean, where those of images are "
    "many small and a few large ones; noise covers the difference. It is the model of the paper, not the training."
)
WEAK = (
    "The worst filter has norm {worst:.2f}; all have {least:.2f} to {largest:.2f}. Noise hardly changes the responses "
    "of weak filters, so the loss of denoising says little about their experts."
)


class _Tests:
    """Distances and p-values, (sigmas, J) of the responses and (sigmas,) of the norms."""

    def __init__(self, prior: PatchPrior, first: list[FloatArray], second: list[FloatArray]) -> None:
        matrix = prior.filters.matrix
        self.responses, self.response_p = _tested(
            [(x @ matrix.T, y @ matrix.T) for x, y in zip(first, second, strict=True)]
        )
        norms = [tuple(np.linalg.norm(z, axis=1)[:, None] for z in pair) for pair in zip(first, second, strict=True)]
        norm_distance, norm_p = _tested([(x, y) for x, y in norms])
        self.norms, self.norm_p = norm_distance[:, 0], norm_p[:, 0]


def of_prior(name: str, bench: Bench, settings: Settings) -> Finding:
    """Draw, test and show."""
    prior = bench.prior(name)
    count = settings["patches"]
    true, control = (_noisy(bench, prior, count, SEED + number) for number in range(2))
    bench.progress(0.3)
    drawn = [prior.sample(count, sigma, rng=np.random.default_rng(SEED)) for sigma in SIGMAS]
    bench.progress(0.5)
    tests = _Tests(prior, true, drawn)
    bench.progress(0.8)
    controls = _Tests(prior, true, control)
    strongest = prior.filters.matrix[prior.filters.norms.argmax()]
    spread = [float((y @ strongest).std() / (x @ strongest).std()) for x, y in zip(true, drawn, strict=True)]
    figures: dict[str, Any] = {
        "sigmas": SIGMAS,
        "patches": count,
        "seed": SEED,
        "level": SIGNIFICANCE,
        "strongest_filter_spread": spread,
        "worst_filter_norm": float(prior.filters.norms[tests.responses[1:].max(axis=0).argmax()]),  # where σ > 0
        **{name: _summary(one) for name, one in (("samples", tests), ("other_patches_of_images", controls))},
    }
    size = prior.filters.size
    both = np.stack([x[:SHOWN] for x in (*true, *drawn)]).reshape(2 * len(SIGMAS), SHOWN, size, size)
    names = [f"{what}, σ = {sigma:g}" for what in ("images", "samples") for sigma in SIGMAS]
    pictures = [
        Picture(
            plot_patches(both, names, [symmetric_contrast(x) for x in true] * 2),
            "Noisy patches of the training images without their brightness (top) and exact samples of the prior "
            "(bottom), at each noise level in the same contrast.",
        ),
        Picture(
            _distances(prior, tests, controls),
            "Kolmogorov–Smirnov distances of the responses by filter, and of the norms of the patches, of samples "
            "and, as a control, of other patches of images.",
            "-distances",
        ),
    ]
    return Finding(figures, _checks(prior, tests, controls, figures), pictures, [_table(figures)])


def _noisy(bench: Bench, prior: PatchPrior, count: int, seed: int) -> list[FloatArray]:
    """Patches of images without brightness, with noise in the span of the filters: (count, b²) for each level."""
    patches = bench.clean_patches(prior.filters.size, count, seed).T
    noise = np.random.default_rng([seed, 1]).standard_normal(patches.shape)
    return [_seen(prior, patches + sigma * noise) for sigma in SIGMAS]


def _seen(prior: PatchPrior, patches: FloatArray) -> FloatArray:
    """The part of patches that the filters see; samples have no other."""
    return prior.filters.reconstruct(prior.filters.analyse(patches))


def _tested(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Distances and p-values of pairs of samples (n, m), column by column: (pairs, m) each."""
    columns = [(x[:, j], y[:, j]) for x, y in pairs for j in range(x.shape[1])]
    results = for_each(lambda column: ks_2samp(*column, method="asymp"), columns)
    shape = (len(pairs), -1)
    return (
        np.array([result.statistic for result in results]).reshape(shape),
        np.array([result.pvalue for result in results]).reshape(shape),
    )


def rejected(p_values: FloatArray, level: float = SIGNIFICANCE) -> FloatArray:
    """Which hypotheses are rejected after Holm, with at most `level` probability of any false rejection; same shape."""
    order = np.argsort(p_values, axis=None)
    passes = p_values.ravel()[order] <= level / np.arange(p_values.size, 0, -1)
    result = np.zeros(p_values.size, bool)
    result[order] = np.logical_and.accumulate(passes)
    return result.reshape(p_values.shape)


def _summary(tests: _Tests) -> dict[str, Any]:
    return {
        "response_distance_median": np.median(tests.responses, axis=1).tolist(),
        "response_distance_worst": tests.responses.max(axis=1).tolist(),
        "responses_rejected": rejected(tests.response_p).sum(axis=1).tolist(),
        "response_p_smallest": tests.response_p.min(axis=1).tolist(),
        "norm_distance": tests.norms.tolist(),
        "norm_p": tests.norm_p.tolist(),
        "norms_rejected": rejected(tests.norm_p).tolist(),
    }


def _checks(prior: PatchPrior, tests: _Tests, controls: _Tests, figures: dict[str, Any]) -> list[Check]:
    spread, count = figures["strongest_filter_spread"], figures["patches"]
    worst, of_control = tests.responses.max(axis=1), float(controls.responses.max())
    seen = rejected(tests.response_p)
    told = ", ".join(f"{value:.3f}" for value in worst)
    norms = ", ".join(f"{value:.3f}" for value in tests.norms)
    at = f"at σ = {', '.join(f'{sigma:g}' for sigma in SIGMAS)}"
    weak = WEAK.format(
        worst=figures["worst_filter_norm"], least=prior.filters.norms.min(), largest=prior.filters.norms.max()
    )
    return [
        Check(
            f"A good match over a wide range of t: Kolmogorov–Smirnov distance of the responses at most {GOOD} for "
            "every filter, at each σ > 0",
            f"worst filter {told} {at} (other patches of images: {of_control:.3f}); with {count:,} patches of each "
            f"kind {seen[1:].sum()} of {seen[1:].size} differences at σ > 0 are significant at {SIGNIFICANCE:.0%} "
            f"after Holm, and {seen[0].sum()} of {seen[0].size} at σ = 0",
            bool((worst[1:] <= GOOD).all()),
            weak,
        ),
        Check(
            f"Norms of the patches match: distance at most {GOOD} at each σ",
            f"{norms} {at}; {rejected(tests.norm_p).sum()} of {len(SIGMAS)} are significant",
            bool((tests.norms <= GOOD).all()),
            INDEPENDENT,
        ),
        Check(
            "“For small t the generated patches appear slightly noisy”: without noise the strongest filter's "
            f"responses spread at least {SLIGHTLY} times as wide as those of images, and less so at σ = 0.2",
            f"{spread[0]:.2f} times as wide at σ = 0, {spread[-1]:.2f} at 0.2",
            spread[0] >= SLIGHTLY and abs(spread[-1] - 1.0) < spread[0] - 1.0,
            "The responses of these samples spread no wider than those of images.",
        ),
    ]


def _table(figures: dict[str, Any]) -> Table:
    rows = []
    for kind, name in (("samples", "samples"), ("other_patches_of_images", "control: other patches of images")):
        one = figures[kind]
        rows += [
            [f"{name}: responses, median distance", *(f"{x:.3f}" for x in one["response_distance_median"])],
            [f"{name}: responses, worst filter", *(f"{x:.3f}" for x in one["response_distance_worst"])],
            [f"{name}: filters rejected, of all", *(str(x) for x in one["responses_rejected"])],
            [f"{name}: smallest p", *map(_probability, one["response_p_smallest"])],
            [f"{name}: norms, distance", *(f"{x:.3f}" for x in one["norm_distance"])],
            [f"{name}: norms, p", *map(_probability, one["norm_p"])],
        ]
    return Table(
        f"Two-sample tests, {figures['patches']:,} patches of each kind", ["σ", *(f"{s:g}" for s in SIGMAS)], rows
    )


def _probability(p: float) -> str:
    return f"{p:.1g}" if p > LEAST_P else f"< {LEAST_P:.0e}"


def _distances(prior: PatchPrior, tests: _Tests, controls: _Tests) -> Figure:
    figure, axes = panels(1, len(SIGMAS), (11.0, 3.2))
    for number, (axis, sigma) in enumerate(zip(axes, SIGMAS, strict=True)):
        axis.semilogy(prior.filters.norms, controls.responses[number], ".", color=GREY, label="control, responses")
        axis.semilogy(prior.filters.norms, tests.responses[number], ".", color=BLUE, label="samples, responses")
        axis.axhline(tests.norms[number], color=ORANGE, linestyle="--", label="samples, norms of patches")
        axis.axhline(GOOD, color="0.2", linewidth=0.8, linestyle=":", label=f"good: {GOOD}")
        axis.set_title(f"σ = {sigma:g}", fontsize=10)
        axis.set_xlabel("norm of the filter", fontsize=10)
        axis.set_ylim(0.001, 1.0)
        axis.label_outer()
    axes[0].set_ylabel("distance", fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    return figure


SAMPLES = Item(
    "samples",
    "Samples",
    "Figure 2 (patch generation results)",
    "Samples “indicate a good match over a wide range of t. However, for small t the generated patches appear slightly "
    "noisy, which is due to an over-smooth approximation of the sharply peaked marginals around 0.”",
    partial(of_prior, PRIOR),
    {"patches": 50_000},
    {"patches": 10_000},
    (PRIOR,),
    (TRAINING,),
)
