"""The row of Table 1 that the paper takes from others, Fields of Experts: one learnt here, beside the quoted one."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from heatprior.data.trials import FIRST_SEED, LEVELS
from heatprior.restoration.evaluation import evaluate, summarise
from paper.claims.bench import BSD68, Bench
from paper.claims.denoising_table import CLOSE, FEW
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import panels
from paper.claims.published import OTHERS, OTHERS_PARAMETERS
from paper.fields_of_experts import MODEL_FILE, SIZE, FieldOfExperts, denoise

NAME = "FoE"
LEARNT_OTHERWISE = (
    "Roth and Black learn by contrastive divergence and stop gradient descent after a fixed number of steps; this one "
    "is learnt by score matching at one noise level and descends to the minimum, with a weight for each noise level."
)
COLUMNS = 8  # of the picture of filters


def make(bench: Bench, settings: Settings) -> Finding:
    """Measure the row on BSD68."""
    model, found = FieldOfExperts.load(MODEL_FILE), bench.files(BSD68)
    files, done = found[: settings["images"]], 0

    def report(_: object) -> None:
        nonlocal done
        done += 1
        bench.progress(done / (len(files) * len(LEVELS)))

    lines = summarise(evaluate(files, lambda noisy, sigma: denoise(model, noisy, sigma), report=report))
    values, quoted = [line.psnr for line in lines], OTHERS[NAME]
    gains = np.round(np.round(values, 2) - np.array(quoted), 2)
    claim = f"{NAME}: every cell, to two decimals, within {CLOSE} dB of what the paper quotes, or better"
    if len(files) == len(found):
        told = ", ".join(f"{_signed(gain)} dB at {level}" for gain, level in zip(gains, LEVELS, strict=True))
        check = Check(claim, told, bool((gains >= -CLOSE).all()), LEARNT_OTHERWISE)
    else:
        check = Check(claim, ", ".join(f"{value:.2f} dB" for value in values), None, FEW)
    rows = [
        [f"{NAME}, learnt here", *(f"{value:.2f}" for value in values), f"{model.parameters:,}"],
        [f"{NAME}, as published", *(f"{value:.2f}" for value in quoted), f"{OTHERS_PARAMETERS[NAME]:,}"],
        ["— difference", *(_signed(gain) for gain in gains), ""],
    ]
    head = ["255σ", *(f"{level}" for level in LEVELS), "parameters"]
    caption = f"Mean PSNR in dB on {len(files)} images of BSD68; published figures are of all 68"
    figures = {
        "images": len(files),
        "levels": LEVELS,
        "first_seed": FIRST_SEED,
        "parameters": model.parameters,
        "psnr": values,
        "ssim": [line.ssim for line in lines],
        "published": quoted,
        "card": dict(model.card),
    }
    picture = Picture(_draw(model), "The filters, those with the largest exponents α first.")
    return Finding(figures, [check], [picture], [Table(caption, head, rows)])


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _draw(model: FieldOfExperts) -> Figure:
    order = np.argsort(-model.exponents)
    figure, places = panels(-(-len(order) // COLUMNS), COLUMNS, (8.0, 4.0))
    for axes, number in zip(places, order, strict=False):
        kernel = model.filters[number].reshape(SIZE, SIZE)
        limit = float(np.abs(kernel).max())
        axes.imshow(kernel, cmap="gray", vmin=-limit, vmax=limit)
        axes.set_title(f"α = {model.exponents[number]:.2g}", fontsize=8)
        axes.set_axis_off()
    return figure


FIELD = Item(
    "fields-of-experts",
    "Denoising with Fields of Experts",
    "Table 1, second column",
    "30.18, 27.77, 23.29 and 16.68 dB with 648 parameters: “Reference numbers are taken from” Zoran and Weiss.",
    make,
    {"images": 68},
    {"images": 2},
    (),
    (BSD68,),
)
