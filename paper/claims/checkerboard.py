"""Blind denoising: noise of 0.1 and 0.2 in the squares of a checkerboard, estimated and removed blindly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, psnr
from heatprior.images import read_grey
from heatprior.noise.estimation import estimate_noise
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.denoising import denoise
from paper.claims.bench import BSD68, Bench
from paper.claims.item import Check, Finding, Item, Picture, Settings, Table
from paper.claims.plots import DPI
from paper.claims.published import CHECKERBOARD

PRIOR = "patch7"
SQUARE = 64  # pixels
EDGE = 8  # pixels at the edges of the squares that the error of the map leaves out
SINGLE = (0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17)
METHODS = ("eb", "hqs")
STEPS = {"eb": 1, "hqs": None}
LOST = 0.3  # dB that blind denoising may lose
SHOWN = (0.08, 0.22)  # noise levels, from blue to yellow
AMPLIFIED = 3  # times that the difference is shown
BLURRED = (
    "The map is smooth over some patches, so at the edges of the squares it lies between the two levels, which no real "
    "noise does."
)


class Board(NamedTuple):
    """An image (H, W), the noise levels of its squares, and the image with noise."""

    clean: FloatArray
    true: FloatArray
    noisy: FloatArray


def board(number: int, path: Path) -> Board:
    """Image `number` of a trial with the noise of the checkerboard."""
    clean = read_grey(path) / np.float32(255)
    noise = np.random.default_rng(FIRST_SEED + number).standard_normal(clean.shape)
    rows, columns = np.indices(clean.shape)
    true = np.where((rows // SQUARE + columns // SQUARE) % 2, CHECKERBOARD[1], CHECKERBOARD[0])
    return Board(clean, true, (clean + true * noise).astype(np.float32))


def measured(given: Board, prior: DiffusedPrior) -> dict[str, Any]:
    """The estimate, PSNR with the true map, blind, and with the best single sigma; the error of the map."""
    clean, true, noisy = given
    report = estimate_noise(noisy, prior=prior, white=1.0)

    def quality(sigma: float | FloatArray, method: str) -> float:
        return psnr(denoise(noisy, sigma, prior=prior, steps=STEPS[method], white=1.0), clean)

    places = np.indices(clean.shape) % SQUARE
    inside = np.all((places >= EDGE) & (places < SQUARE - EDGE), axis=0)
    error = (report.sigma / true - 1)[inside]
    result: dict[str, Any] = {
        "model": report.models[0],
        "map_error": float(np.sqrt(np.square(error).mean())),
        "map_bias": float(error.mean()),
    }
    for method in METHODS:
        single = max(quality(sigma, method) for sigma in SINGLE)
        told, blind = quality(true, method), quality(report.sigma, method)
        result[method] = {"told": told, "blind": blind, "single": single}
    return result


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the images, and the most that one of them lost."""
    result: dict[str, Any] = {"models": [row["model"] for row in rows]}
    for method in METHODS:
        told, blind, single = (
            float(np.mean([row[method][key] for row in rows])) for key in ("told", "blind", "single")
        )
        lost = max(row[method]["told"] - row[method]["blind"] for row in rows)
        result[method] = {"blind": blind, "true_map": told, "best_single": single, "most_lost": lost}
    for name in ("map_error", "map_bias"):
        result[name] = float(np.mean([row[name] for row in rows]))
    return result


def make(bench: Bench, settings: Settings) -> Finding:
    """The first images of BSD68; the picture is of the first."""
    prior = bench.prior(PRIOR)
    files = bench.files(BSD68)[: settings["images"]]
    boards = [board(number, path) for number, path in enumerate(files)]
    rows = []
    for number, given in enumerate(boards):
        rows.append(measured(given, prior))
        bench.progress((number + 1) / len(boards))
    result = summary(rows)
    about = {"images": len(files), "first_seed": FIRST_SEED, "sigmas": CHECKERBOARD, "square": SQUARE}
    caption = (
        f"{files[0].stem}: noise of {CHECKERBOARD[0]} and {CHECKERBOARD[1]} in squares; the estimated map; one step of "
        f"empirical Bayes with it (EB-PA); and its difference to the clean image, {AMPLIFIED} times, mid-grey being "
        "zero."
    )
    head = ["PSNR in dB", "blind", "with the true map", "with the best single σ", "most lost on one image"]
    table = Table(
        f"Means, images of BSD68: {len(files)}",
        head,
        [
            [name, *(f"{result[method][key]:.2f}" for key in ("blind", "true_map", "best_single", "most_lost"))]
            for method, name in zip(METHODS, ("EB-PA", "HQS"), strict=True)
        ],
    )
    return Finding({**about, **result}, _checks(result), [Picture(_drawn(boards[0], prior), caption)], [table])


def _checks(result: dict[str, Any]) -> list[Check]:
    one = result["eb"]
    return [
        Check(
            f"Heteroscedastic blind denoising works: EB-PA with the estimated map is at most {LOST} dB below the "
            "same with the true one",
            f"{one['blind']:.2f} dB against {one['true_map']:.2f}, {one['true_map'] - one['blind']:.2f} dB less",
            one["true_map"] - one["blind"] <= LOST,
            BLURRED,
        ),
        Check(
            "and better than with the best single noise level",
            f"{one['blind'] - one['best_single']:+.2f} dB; the map inside the squares is right to "
            f"{result['map_error']:.1%} (root mean square), bias {result['map_bias']:+.1%}",
            one["blind"] > one["best_single"],
            BLURRED,
        ),
    ]


def _drawn(given: Board, prior: DiffusedPrior) -> Figure:
    sigma = estimate_noise(given.noisy, prior=prior, white=1.0).sigma
    denoised = denoise(given.noisy, sigma, prior=prior, steps=1, white=1.0)
    difference = 0.5 + AMPLIFIED * (denoised - given.clean)
    height, width = given.clean.shape
    rows = 1 if height > width else 2  # upright images stand side by side
    columns = 4 // rows
    size = (12.0, 12.0 / columns * rows * height / width + 0.4 * rows)
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    axes = figure.subplots(rows, columns)
    titles = (
        f"noisy, {psnr(given.noisy, given.clean):.2f} dB",
        f"estimated σ: blue {SHOWN[0]}, yellow {SHOWN[1]}",
        f"denoised by EB-PA, {psnr(denoised, given.clean):.2f} dB",
        f"difference to the clean image × {AMPLIFIED}",
    )
    for axis, title, pixels in zip(axes.flat, titles, (given.noisy, sigma, denoised, difference), strict=True):
        low, high = SHOWN if pixels is sigma else (0.0, 1.0)
        axis.imshow(pixels, cmap="cividis" if pixels is sigma else "gray", vmin=low, vmax=high)
        axis.set(xticks=[], yticks=[])
        axis.set_title(title, fontsize=11)
    return figure


BLIND = Item(
    "blind-denoising",
    "Blind denoising",
    "Figure 3 (blind denoising)",
    "“We can utilize our model for heteroscedastic blind denoising, by estimating pixel-wise noise and using EB-PA.”",
    make,
    {"images": 10},
    {"images": 1},
    (PRIOR,),
    (BSD68,),
)
