"""Make `tuned`, the default prior, from the training images alone: one command, which goes on where it was stopped.

    python -m paper.weights.tuned RUN [--data DIR] [--ship]

Each stage keeps what it has done in the folder RUN:

1. *Start*: a mixture of 128 shapes at six contrasts, by stepwise EM on patches of the 400 training images of BSDS500.
2. *Tuning*: Adam on its shapes, variances, contrasts and weights and, with them, on the window and the confidences by
   which patches are averaged, on the schedule of the steps and on the cross-overs between scales, for the error of
   denoised crops of the same images (`paper.tuning`, where the number of candidates and the likelihood of
   rivals are constants). Needs torch, of which it takes one thread; an hour of a core in all.
3. *Judgement*: crops of the 32 validation images, denoised as the library does, by this prior and the shipped one.
4. With --ship, *calibration* on the validation images, of the error bars and the risk (`calibrate_errors`), in white
   and in correlated noise; then the prior takes the place of the shipped one, and records/tuned.json is written.

Training sees no validation image, and no stage sees BSD68. Every batch is a function of the seed and of the number of
its step, so that a run that was interrupted ends with the same bits. What it makes is RUN/tuned.safetensors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import heatprior as hp
from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import FIRST_SEED, LEVELS, psnr, with_noise
from heatprior.files import replacing
from heatprior.images import read_grey
from heatprior.restoration.error_bars import CORRELATED
from heatprior.version import __version__
from heatprior.zoo import FOLDER
from paper import RECORDS, bsds500
from paper.records import write_record
from paper.tuning.run import Tuning, TuningConfig
from paper.weights.calibrate_errors import fit_tables

NAME = "tuned"
START = hp.MixtureConfig(shapes=128, contrasts=6, batch=20_000, steps=100, seed=0)
TUNING = TuningConfig(steps=6000, crops=6, side=64, scales=3, constant=0.4, averaged=100, seed=0)
CROP = slice(60, 260)  # of a validation image, both ways
SECONDS_BETWEEN_SAVES = 120.0
STEPS_BETWEEN_LOOKS = 500  # at a few validation crops, to follow a run; nothing is chosen by them


def main() -> None:
    """Go through the stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.run.mkdir(parents=True, exist_ok=True)
    images = read_images(bsds500.training(options.data), TUNING.side).images
    whole = [read_grey(file) / np.float32(255) for file in bsds500.validation(options.data)]
    crops = [image[CROP, CROP] for image in whole]
    made = options.run / f"{NAME}.safetensors"
    if not made.exists():
        start = learn_start(options.run / "start", images)
        tuning = tune(options.run, start, PatchSource(images, TUNING.side), crops)
        about = {
            "name": NAME,
            "made": f"by paper/weights/tuned.py, version {__version__}",
            "trained on": "BSDS500, train and test",
        }
        tuning.prior(about).save(made, dtype=np.float16)
    results = {"shipped": measure(load(NAME), crops), "made": measure(load(made), crops)}
    print(f"{len(crops)} validation crops: {results}", flush=True)
    if options.ship:
        prior = calibrate(load(made), whole, options.run)
        prior.save(FOLDER / f"{NAME}.safetensors", dtype=np.float16)
        settings = {"start": prior.card["training"], "tuning": prior.card["tuning"]}
        trial = {"crops": len(crops), "levels": LEVELS, "first_seed": FIRST_SEED, "psnr": results}
        write_record(RECORDS / f"{NAME}.json", {**settings, "validation": trial})


def load(prior: str | Path) -> hp.GaussianMixturePrior:
    """Return a mixture by name or path."""
    loaded = hp.load(prior)
    assert isinstance(loaded, hp.GaussianMixturePrior)
    return loaded


def learn_start(folder: Path, images: list[Any]) -> hp.GaussianMixturePrior:
    """Return the mixture of the first stage, learnt now or before."""
    finished = folder / "prior.safetensors"
    return load(finished) if finished.exists() else hp.train(images, START, run=folder, resume=folder.exists())


def tune(run: Path, start: hp.GaussianMixturePrior, source: PatchSource, crops: Sequence[FloatArray]) -> Tuning:
    """Do the second stage, from the last checkpoint on."""
    tuning, checkpoint = Tuning(TUNING, start, source), run / "checkpoint.safetensors"
    if checkpoint.exists():
        tuning.restore(load_file(checkpoint))
    saved, losses = time.monotonic(), []
    for report in tuning.run(TUNING.steps):
        losses.append(report.loss)
        last = report.step == TUNING.steps
        if last or time.monotonic() - saved > SECONDS_BETWEEN_SAVES:
            with replacing(checkpoint) as temporary:
                save_file({name: x.contiguous() for name, x in tuning.state().items()}, str(temporary))
            saved = time.monotonic()
        if last or report.step % 100 == 0:
            print(f"step {report.step}, {report.seconds:.0f} s: loss {np.mean(losses[-100:]):.3f} dB", flush=True)
        if report.step % STEPS_BETWEEN_LOOKS == 0:
            print(f"validation {measure(tuning.prior(), crops[::8])}", flush=True)
    return tuning


def measure(prior: hp.GaussianMixturePrior, crops: Sequence[FloatArray]) -> list[float]:
    """Return the mean PSNR of the crops in dB for each of LEVELS, as `hp.denoise` denoises them."""

    def trial(crop: FloatArray, number: int, sigma: float) -> float:
        return psnr(hp.denoise(with_noise(crop, number, sigma), sigma, prior=prior, white=1.0), crop)

    return [
        round(float(np.mean([trial(crop, number, level / 255) for number, crop in enumerate(crops)])), 3)
        for level in LEVELS
    ]


def calibrate(prior: hp.GaussianMixturePrior, images: Sequence[FloatArray], run: Path) -> hp.GaussianMixturePrior:
    """Return the prior with the tables of its errors on the card, fitted to the validation images."""
    card = dict(prior.card)
    for kind in ("", CORRELATED):
        tables = fit_tables(dict(enumerate(images)), prior, "hqs", kind, run / f"errors{kind}.jsonl")
        for entry, table in tables.items():
            card[entry] = {**card.get(entry, {}), **table}
    return replace(prior, card=card)


if __name__ == "__main__":
    main()
