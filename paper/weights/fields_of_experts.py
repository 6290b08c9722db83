"""Learn the field of experts of Table 1 and choose its weights of regularisation, from nothing, in some minutes.

    python -m paper.weights.fields_of_experts [--data DIR] [--output FILE]

It is learnt by score matching on the 400 training images of BSDS500, at each of three noise levels in turn; which of
the three to take, and the weight of the prior for each noise level of the protocol, are chosen by the PSNR of crops of
the 32 validation images. BSD68 plays no role. All of it is a function of the seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.kernels.threads import products_in_one_thread
from heatprior.version import __version__
from paper import bsds500
from paper.fields_of_experts import MODEL_FILE, FieldConfig, FieldOfExperts, FieldTraining, denoise

TRAINING_LEVELS = (6, 8, 10)  # 255 sigma of score matching
CROP = slice(80, 240)  # of a validation image, both ways
FEW = 4  # every fourth validation image serves to choose among the models
BOUNDS = (0.05, 2.0)  # of the weights
ACCURACY = 0.03  # of their logarithms


def main() -> None:
    """Learn, choose, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, default=MODEL_FILE)
    options = parser.parse_args()
    images = read_images(bsds500.training(options.data), FieldConfig.side).images
    crops = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in bsds500.validation(options.data)]
    source, tried = PatchSource(images, FieldConfig.side), []
    with products_in_one_thread():
        for level in TRAINING_LEVELS:
            training = FieldTraining(FieldConfig(sigma=level / 255), source)
            losses = [report.loss for report in training.run(training.config.steps)]
            weights, results = choose_weights(training.model(), crops[::FEW])
            tried.append((float(np.mean(results)), training.model()))
            loss = np.mean(losses[-1000:])
            print(f"learnt at {level}: loss {loss:.4f}; weights {weights}, PSNR {results}", flush=True)
        model = max(tried, key=lambda pair: pair[0])[1]
        weights, results = choose_weights(model, crops)
    card = {
        **model.card,
        "made": f"by paper/weights/fields_of_experts.py, version {__version__}",
        "trained on": "BSDS500, train and test",
        "validation": dict(zip((f"psnr{level}" for level in LEVELS), results, strict=True)),
        "weights": {"sigmas": [level / 255 for level in LEVELS], "values": weights},
    }
    replace(model, card=card).save(options.output)
    print(f"weights {weights}, PSNR {results} on {len(crops)} crops; wrote {options.output}")


def choose_weights(model: FieldOfExperts, crops: Sequence[FloatArray]) -> tuple[list[float], list[float]]:
    """Return the weight with the best mean PSNR of the crops for each of LEVELS, and that PSNR in dB."""
    weights, results = [], []
    for level in LEVELS:
        sigma = level / 255
        noisy = [with_noise(crop, number, sigma) for number, crop in enumerate(crops)]
        trials = list(zip(noisy, crops, strict=True))
        loss = partial(_loss, model, trials, sigma)
        best = minimize_scalar(loss, bounds=tuple(np.log(BOUNDS)), method="bounded", options={"xatol": ACCURACY})
        weights.append(round(float(np.exp(best.x)), 4))
        results.append(round(-float(best.fun), 3))
    return weights, results


def _loss(
    model: FieldOfExperts, trials: Sequence[tuple[FloatArray, FloatArray]], sigma: float, log_weight: float
) -> float:
    """Return minus the mean PSNR over pairs of a noisy and a clean crop."""
    weight = float(np.exp(log_weight))
    return -float(np.mean([psnr(denoise(model, noisy, sigma, weight), clean) for noisy, clean in trials]))


if __name__ == "__main__":
    main()
