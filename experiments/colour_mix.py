"""Is a mix of the colours of each image better than the fixed one? White noise, sigma told, on validation images.

    python experiments/colour_mix.py [--data DIR] [--images 8] [--sigma 10 25 50]

Crops in colour, denoised channel by channel after one of three mixes: the fixed one (pixels/channels.py); the same with
the norm of its rows found by likelihood, as full scale is; and the principal axes of the image, those of the covariance
of differences between neighbouring means of 4×4 pixels less that of the noise, with norms found. PSNR is that of all
channels, less that of the fixed mix. Writes experiments/results/colour_mix.json.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data import bsds500
from heatprior.data.trials import psnr, with_noise
from heatprior.images import image_files, read_image
from heatprior.noise.grey_scale import likely_white, some_patches
from heatprior.noise_model import ConstantNoise
from heatprior.pixels.channels import COLOUR, mixed
from heatprior.records import write_record
from heatprior.restoration.recipes import EVERY_SCALE, Recipe
from heatprior.restoration.splitting import half_quadratic_splitting
from heatprior.zoo import shipped

CROP = slice(60, 220)
CELL = 4
RESULT = Path(__file__).parent / "results" / "colour_mix.json"


def denoised(noisy: FloatArray, mix: FloatArray, sigma: float) -> FloatArray:
    """Channels (3, H, W), mixed, denoised one by one and mixed back: (H, W, 3)."""
    denoise = partial(Recipe(half_quadratic_splitting, False, EVERY_SCALE).follow, prior=shipped("tuned"))
    parts = [denoise(mixed(noisy, row), ConstantNoise(sigma * float(np.linalg.norm(row)))) for row in mix]
    return np.stack([mixed(parts, row) for row in np.linalg.inv(mix)], axis=-1)


def principal_axes(noisy: FloatArray, sigma: float) -> FloatArray:
    """Rows of norm one, the strongest first."""
    height, width = (length // CELL * CELL for length in noisy.shape[1:])
    cells = noisy[:, :height, :width].reshape(3, height // CELL, CELL, width // CELL, CELL).mean(axis=(2, 4))
    steps = np.concatenate([np.diff(cells, axis=axis).reshape(3, -1) for axis in (1, 2)], axis=1)
    covariance = steps @ steps.T / steps.shape[1] - 2.0 * (sigma / CELL) ** 2 * np.eye(3)
    return np.linalg.eigh(covariance)[1].T[::-1]


def with_likely_norms(rows: FloatArray, noisy: FloatArray, sigma: float) -> FloatArray:
    """Each row over the full scale that is likeliest for what it gives."""
    prior = shipped("mixture")
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    patches = [some_patches([mixed(noisy, row)], [sigma], prior) for row in unit]
    return np.stack([row / likely_white(prior, *own, 1.0) for row, own in zip(unit, patches, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--sigma", type=int, nargs="+", default=[10, 25, 50], help="of 255")
    arguments = parser.parse_args()
    folder = bsds500.data_folder(arguments.data) / "bsds500" / "val"
    files = [path for path in image_files(folder) if path.stem in bsds500.VALIDATION_STEMS]
    files = files[:: len(files) // arguments.images][: arguments.images]
    gains: dict[str, dict[str, list[float]]] = {}
    for level in arguments.sigma:
        sigma, own = level / 255, gains.setdefault(str(level), {})
        for number, file in enumerate(files):
            clean = read_image(file).pixels[CROP, CROP] / np.float32(255)
            noisy = np.moveaxis(with_noise(clean, number, sigma), -1, 0)
            mixes = {
                "norms found": with_likely_norms(COLOUR, noisy, sigma),
                "principal axes": with_likely_norms(principal_axes(noisy, sigma), noisy, sigma),
            }
            fixed = psnr(denoised(noisy, COLOUR, sigma), clean)
            for name, mix in mixes.items():
                own.setdefault(name, []).append(round(psnr(denoised(noisy, mix, sigma), clean) - fixed, 3))
            print(level, file.stem, {name: values[-1] for name, values in own.items()}, flush=True)
        means = {k: {name: round(float(np.mean(v)), 3) for name, v in values.items()} for k, values in gains.items()}
        write_record(RESULT, {"images": len(files), "mean_gain": means, "gains": gains})


if __name__ == "__main__":
    main()
