"""What bands of whole images could reach at best: any function of single responses, fitted by least squares.

    python -m paper.evaluations.best_shrinkage [--data DIR]

For each noise level and each band, an odd function of the response, straight between 12 knots, so that the image put
together again is nearest to the clean one: linear least squares on crops of training images, then the PSNR on crops of
validation images (all taken to be cyclic), beside one step of patch7. It is an upper bound, roughly, for all experts
on these bands, and says what the bands themselves cost. Writes records/best_shrinkage.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data.datasets import read_images, scale_by_type
from heatprior.data.trials import psnr, with_noise
from heatprior.priors.bands import Bands, image_of, to_spectrum
from heatprior.priors.convolutional import Tiling
from heatprior.priors.wavelet import WaveletBasis
from paper import RECORDS, bsds500
from paper.records import write_record
from paper.wavelets import daubechies

SIDE = 128
SHAPE = (SIDE, SIDE)
SEED = 0
LEVELS = (15, 25, 100)
KNOTS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0])  # over the noise of the response
RIDGE = 1e-6
BASES: dict[str, Bands] = {
    "Haar, 5 levels": WaveletBasis(daubechies(1), 5),
    "Daubechies 2, 5 levels": WaveletBasis(daubechies(2), 5),
    "tiling, 5 rings × 4 orientations": Tiling(5, 4),
}
RESULT = RECORDS / "best_shrinkage.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    training = crops(bsds500.training(data)[::25])
    checks = crops(bsds500.validation(data)[::3])
    found = {"patch7, one step": [of_patches(checks, level / 255) for level in LEVELS]}
    print("patch7, one step", np.round(found["patch7, one step"], 2), flush=True)
    for name, bands in BASES.items():
        found[name] = [best(bands, training, checks, level / 255) for level in LEVELS]
        print(name, np.round(found[name], 2), flush=True)
    write_record(
        RESULT, {"seed": SEED, "side": SIDE, "levels": LEVELS, "crops": [len(training), len(checks)], "psnr": found}
    )


def crops(files: Sequence[Path]) -> list[FloatArray]:
    """One from each image, at random."""
    rng, found = np.random.default_rng(SEED), []
    for image in read_images(files, SIDE).images:
        row, column = (int(rng.integers(length - SIDE + 1)) for length in image.shape)
        found.append(scale_by_type(image[row : row + SIDE, column : column + SIDE]))
    return found


def of_patches(clean: list[FloatArray], sigma: float) -> float:
    noisy = [with_noise(image, number, sigma) for number, image in enumerate(clean)]
    return mean_psnr([denoise(y, sigma, prior="patch7", steps=1) for y in noisy], clean)


def best(bands: Bands, training: list[FloatArray], checks: list[FloatArray], sigma: float) -> float:
    size = bands.count * KNOTS.size
    products, target = np.zeros((size, size)), np.zeros(size)
    for number, clean in enumerate(training):
        kept, features = parts(bands, with_noise(clean, 1000 + number, sigma), sigma)
        products += features @ features.T
        target += features @ (clean.ravel() - kept)
    weights = np.linalg.solve(products + RIDGE * np.trace(products) / size * np.eye(size), target)
    results = []
    for number, clean in enumerate(checks):
        kept, features = parts(bands, with_noise(clean, number, sigma), sigma)
        results.append((kept + weights @ features).reshape(SHAPE))
    return mean_psnr(results, checks)


def parts(bands: Bands, noisy: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """What no band sees (pixels,), and the image put together from each hat function of each band (J·knots, pixels)."""
    transform, kept, features = to_spectrum(noisy), np.array(noisy, np.float64), []
    knots = np.concatenate([[0.0], KNOTS])
    for j in range(bands.count):
        spectrum = bands.spectrum(j, SHAPE)
        back = bands.shares[j] * np.conj(spectrum)
        kept -= image_of(back * spectrum * transform, SHAPE)
        u = image_of(spectrum * transform, SHAPE)
        noise = sigma * float(np.linalg.norm(image_of(spectrum, SHAPE)))
        for k, hat in enumerate(np.eye(knots.size)[1:]):
            value = np.interp(np.abs(u) / noise, knots, hat) * np.sign(u) * noise
            if k == KNOTS.size - 1:
                value = np.where(np.abs(u) / noise > KNOTS[-1], u, value)
            features.append(image_of(back * to_spectrum(value), SHAPE).ravel())
    return kept.ravel(), np.array(features)


def mean_psnr(images: Sequence[FloatArray], clean: Sequence[FloatArray]) -> float:
    return float(np.mean([psnr(a, b) for a, b in zip(images, clean, strict=True)]))


if __name__ == "__main__":
    main()
