"""Filters, potentials and marginals: how well the experts follow the responses of images, at every noise level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from heatprior.arrays import FloatArray
from heatprior.pictures.figures import COLOURS
from heatprior.pictures.priors import filters_by_norm, plot_filters
from heatprior.priors.patch import PatchPrior
from paper.claims.bench import TRAINING, Bench
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.marginals import Marginal, each_discrepancy, each_marginal
from paper.claims.plots import DPI, panels
from paper.claims.published import KAPPAS, SIGMAS

SEED = 0
CLOSE = 0.3  # of −log: 3 % of the height of the panels, the width of a line or two; densities right to a third
MONOTONE = 0.9  # rank correlation from which one thing goes with another
ENLARGED = 4  # filters that are shown large, both curves in one panel
OVERSMOOTH = (
    "At σ = 0 the experts cannot be narrower than their components, σ₀ = {base:.3f}, while the responses of images "
    "peak sharply at zero. The paper says the same: an over-smooth approximation of the peaks."
)
RARE = (
    "Of the tails hardly any patch tells anything: the loss is that of denoising, to which a response in a thousand "
    "adds little, so weights far from zero stay near the heavy-tailed start of the training and the experts' tails are "
    "heavier than those of images: far out the dots of the enlarged picture leave the lines upwards."
)
RARE_FROM_FLAT = (
    "Of the tails hardly any patch tells anything: the loss is that of denoising, to which a response in a thousand "
    "adds little, so even after 100,000 steps weights far from zero are near the start of the paper, which is flat "
    "beyond a peak."
)
UNTRAINED = (
    "This prior was trained at one noise level only; the paper shows it for contrast, and claims that training at many "
    "levels follows the marginals better."
)


def of_prior(name: str, bench: Bench, settings: Settings) -> Finding:
    """The finding for one prior."""
    prior = bench.prior(name)
    patches = bench.clean_patches(prior.filters.size, settings["patches"], SEED)
    bench.progress(0.2)
    shown = filters_by_norm(prior, settings["filters"])
    marginals = each_marginal(prior, patches, SIGMAS)
    bench.progress(0.7)
    nmse = np.mean(each_discrepancy(prior, patches, SIGMAS, KAPPAS[:1]), axis=0)[:, 0, 0]
    bench.progress(0.8)
    body, tail = (_over_filters(marginals, part) for part in ("body", "tail"))
    changes = _changes(prior, marginals)
    figures = {
        "sigmas": SIGMAS,
        "patches": settings["patches"],
        "seed": SEED,
        "filters": prior.filters.count,
        "parameters": prior.parameters,
        "nmse": nmse.tolist(),
        "log_error_body": body["mean"],
        "log_error_tail": tail["mean"],
        "log_error_tail_worst_filter": tail["worst"],
        "depth": _over_filters(marginals, "depth")["mean"],
        "norms": prior.filters.norms.tolist(),
        "total_variation": changes.tolist(),
    }
    caption = (
        f"{len(shown)} of {prior.filters.count} filters"
        if len(shown) < prior.filters.count
        else f"All {len(shown)} filters"
    )
    sheet = plot_filters(prior, shown, [_minus_log([marginals[j][i] for j in shown]) for i in range(len(SIGMAS))])
    sheet.set_dpi(DPI)
    return Finding(
        figures,
        _checks(prior, figures, single="single" in name),
        [
            Picture(
                _enlarged(prior, marginals),
                "Potentials of the experts (lines) over those of images (dots), four filters from the weakest to the "
                "strongest.",
                "-enlarged",
            ),
            Picture(
                sheet,
                f"{caption} by rising norm, with the values of black and white; below each its potentials −log ψ at "
                "five noise levels, and below these −log of the marginals of the noisy patches of the training images, "
                "as far as they are known to a tenth.",
            ),
        ],
        [_table(figures)],
    )


def _checks(prior: PatchPrior, figures: dict[str, Any], *, single: bool) -> list[Check]:
    checks = []
    rare = RARE_FROM_FLAT if prior.card.get("training", {}).get("start") == "paper" else RARE
    for part, where, reason in (
        ("body", "the middle 99 % of the responses", OVERSMOOTH.format(base=prior.experts.base_sigma)),
        ("tail", "the outer 1 %, the low-density tails", rare),
    ):
        errors = figures[f"log_error_{part}"]
        measured = ", ".join(_told(error, "{:.2f}") for error in errors)
        checks.append(
            Check(
                f"Experts and marginals agree in {where}: −log differs by at most {CLOSE} in the mean, at each σ",
                f"{measured} at σ = {', '.join(f'{sigma:g}' for sigma in SIGMAS)}, as far as {figures['patches']:,} "
                "patches tell",
                all(error <= CLOSE for error in errors if error is not None),
                f"{reason} {UNTRAINED}" if single else reason,
            )
        )
    rank = float(spearmanr(figures["norms"], figures["total_variation"]).statistic)
    ends = np.array(figures["total_variation"])[np.argsort(figures["norms"])[[0, -1]]]
    checks.append(
        Check(
            "Potentials barely change with σ where ‖k‖ is small, and drastically where it is large: rank "
            f"correlation of the norm with the total variation between σ = 0 and 0.2 at least {MONOTONE}",
            f"rank correlation {rank:.2f}; total variation {ends[0]:.2f} for the weakest and {ends[1]:.2f} for the "
            "strongest",
            rank >= MONOTONE,
            "The change also depends on how peaked the expert itself is.",
        )
    )
    return checks


def _table(figures: dict[str, Any]) -> Table:
    rows = [
        ("normalised squared error of the density, κ = 0.005", "nmse", "{:.1e}"),
        ("mean |difference of −log|, middle 99 %", "log_error_body", "{:.3f}"),
        ("mean |difference of −log|, outer 1 %", "log_error_tail", "{:.3f}"),
        ("the same, worst filter", "log_error_tail_worst_filter", "{:.3f}"),
        ("how deep the tails are known: peak over least density, log", "depth", "{:.1f}"),
    ]
    return Table(
        "Experts against marginals, means over the filters",
        ["σ", *(f"{sigma:g}" for sigma in SIGMAS)],
        [[name, *(_told(value, form) for value in figures[key])] for name, key, form in rows],
    )


def _over_filters(marginals: Sequence[Sequence[Marginal]], part: str) -> dict[str, list[float | None]]:
    """Mean and largest error at each noise level, over the filters where it is known; None if it is for no filter."""
    columns = [[getattr(m, part) for m in column] for column in zip(*marginals, strict=True)]
    known = [[error for error in column if not np.isnan(error)] for column in columns]
    return {
        "mean": [float(np.mean(errors)) if errors else None for errors in known],
        "worst": [float(np.max(errors)) if errors else None for errors in known],
    }


def _told(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _changes(prior: PatchPrior, marginals: Sequence[Sequence[Marginal]]) -> FloatArray:
    """Total variation between psi_j(·, 0) and psi_j(·, 0.2), (J,): half the integral of their difference."""
    width = 2.0 * prior.experts.reach / len(marginals[0][0].expert)
    return np.array([0.5 * width * np.abs(row[-1].expert - row[0].expert).sum() for row in marginals])


def _minus_log(marginals: Sequence[Marginal]) -> FloatArray:
    """−log h, (filters, bins), NaN where it is not known well."""
    known = [np.where(m.empirical.sure(), m.empirical.density, np.nan) for m in marginals]
    return np.asarray(-np.log(known))


def _enlarged(prior: PatchPrior, marginals: Sequence[Sequence[Marginal]]) -> Figure:
    figure, axes = panels(1, ENLARGED, (11.0, 3.4))
    for axis, j in zip(axes, filters_by_norm(prior, ENLARGED), strict=True):
        for sigma, marginal, colour in zip(SIGMAS, marginals[j], COLOURS, strict=True):
            edges = marginal.empirical.edges
            middles = 0.5 * (edges[:-1] + edges[1:])
            axis.plot(middles, -np.log(marginal.expert), color=colour, linewidth=1.2, label=f"σ = {sigma:g}")
            axis.plot(middles[::4], _minus_log([marginal])[0][::4], ".", color=colour, markersize=4)
        axis.set_title(f"‖k‖ = {prior.filters.norms[j]:.2f}", fontsize=10)
        axis.set_xlabel("response", fontsize=10)
        axis.set_ylim(-4.5, 9.0)
    axes[0].set_ylabel("−log density", fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    return figure


def _item(name: str, prior: str, title: str, place: str, claim: str, patches: int, filters: int) -> Item:
    return Item(
        name,
        title,
        place,
        claim,
        partial(of_prior, prior),
        {"patches": patches, "filters": filters},
        {"patches": patches // 5, "filters": filters},
        (prior,),
        (TRAINING,),
    )


AGREE = "The potentials match the empirical marginal responses “almost perfectly even at the low-density tails”."
FILTERS7 = _item("filters7", "patch7", "Filters and potentials, 7×7", "Figure 1 (patch results)", AGREE, 1_000_000, 48)
FILTERS15 = _item(
    "filters15",
    "patch15",
    "Filters and potentials, 15×15",
    "appendix (patch results 15)",
    "“The results and discussion from the main paper also apply to much larger filter sizes.”",
    250_000,
    112,
)
SINGLE = _item(
    "single",
    "patch7-single",
    "One noise level only",
    "appendix (patch results 5)",
    "A model trained on σ = 0.02 alone, to show the importance of the diffusion for learning. Here it is held to the "
    "same as the model trained on all levels.",
    1_000_000,
    48,
)
