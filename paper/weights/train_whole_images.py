"""Learn the shipped priors of whole images, `conv`, `wavelet` and `wavelet-density`, from BSDS500.

    python -m paper.weights.train_whole_images [--data DIR] [--output DIR] [NAME ...]

`wavelet-density` matches the score of single coefficients; `wavelet` goes on from it with that of the mean over shifts.
Bands and steps were chosen by the PSNR of one step on validation images; the losses go to
records/whole_image_training.json.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from heatprior.data.datasets import PatchSource, read_images
from heatprior.learning.patch_training import Point
from heatprior.priors.convolutional import ConvolutionalPrior, Tiling
from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper import RECORDS, bsds500, prior_file
from paper.learning.band_training import BandConfig, learn_coefficients, learn_images, start
from paper.records import write_record
from paper.wavelets import daubechies

CROP = 64
TILING = Tiling(scales=5, orientations=4)
BASIS = WaveletBasis(daubechies(1), levels=6, splits=1)
COEFFICIENT_STEPS = 300
IMAGE_STEPS = 60
NAMES = ("wavelet-density", "wavelet", "conv")
RESULT = RECORDS / "whole_image_training.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, help="where the priors go (default: where they are)")
    arguments = parser.parse_args()
    source = PatchSource(read_images(bsds500.training(arguments.data), CROP).images, CROP)
    config = BandConfig()
    losses: dict[str, list[float]] = {}
    if "conv" in arguments.names:
        point, losses["conv"] = learnt("conv", TILING, source, start(TILING, source, config), config)
        card = about("conv", source, config, {"image_steps": IMAGE_STEPS})
        ConvolutionalPrior(TILING, point[0], experts(point, config), card).save(place("conv", arguments.output))
    if {"wavelet", "wavelet-density"} & set(arguments.names):
        point, losses["wavelet-density"] = of_coefficients(source, config)
        save_wavelet(
            "wavelet-density", point, source, config, {"coefficient_steps": COEFFICIENT_STEPS}, arguments.output
        )
    if "wavelet" in arguments.names:
        point, losses["wavelet"] = learnt("wavelet", BASIS, source, point, config)
        steps = {"coefficient_steps": COEFFICIENT_STEPS, "image_steps": IMAGE_STEPS}
        save_wavelet("wavelet", point, source, config, steps, arguments.output)
    write_record(RESULT, {"config": asdict(config), "crop": CROP, "images": source.images, "losses": losses})


def learnt(
    name: str, bands: Tiling | WaveletBasis, source: PatchSource, point: Point, config: BandConfig
) -> tuple[Point, list[float]]:
    losses: list[float] = []
    with tqdm(total=IMAGE_STEPS, desc=name, disable=None) as bar:

        def report(_: int, loss: float) -> None:
            losses.append(round(loss, 5))
            bar.update()

        return learn_images(bands, source, point, config, IMAGE_STEPS, report), losses


def of_coefficients(source: PatchSource, config: BandConfig) -> tuple[Point, list[float]]:
    losses: list[float] = []
    first = start(BASIS, source, config)
    point = learn_coefficients(
        BASIS, source, first, config, COEFFICIENT_STEPS, lambda _, loss: losses.append(round(loss, 5))
    )
    return point, losses


def place(name: str, folder: Path | None) -> Path:
    return prior_file(name) if folder is None else folder / f"{name}.safetensors"


def save_wavelet(
    name: str, point: Point, source: PatchSource, config: BandConfig, steps: dict[str, int], folder: Path | None
) -> None:
    prior = WaveletPrior(BASIS, point[0], experts(point, config), about(name, source, config, steps))
    prior.save(place(name, folder))


def experts(point: Point, config: BandConfig) -> Experts:
    return Experts(np.asarray(point[1]), config.reach)


def about(name: str, source: PatchSource, config: BandConfig, steps: dict[str, int]) -> dict[str, Any]:
    losses = {
        "conv": "the score of whole images",
        "wavelet-density": "the score of single coefficients",
        "wavelet": "the score of single coefficients, then that of the mean over all shifts",
    }
    training = {**asdict(config), **steps, "crop": CROP, "images": source.images}
    made = f"by matching {losses[name]}"
    return {"name": name, "made": made, "trained on": "BSDS500, train and test", "training": training}


if __name__ == "__main__":
    main()
