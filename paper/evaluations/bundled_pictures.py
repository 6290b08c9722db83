"""The pictures that come with scikit-image, grey, first 384×384 pixels: PSNR at 255 sigma = 25 and 50, by quality.

    python -m paper.evaluations.bundled_pictures [NAME ...]

Noise of picture i, in the order below, has seed 1000 + i. "before" is what the default was: `mixture` at two scales,
all patches. Prints a table and writes records/bundled_pictures.json; nothing is chosen by it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import skimage.data
from skimage.color import rgb2gray

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr, with_noise
from paper import RECORDS, bsds500, load
from paper.methods import split
from paper.records import write_record

NAMES = (
    *("camera", "coins", "moon", "clock", "retina", "cell", "page", "text", "brick", "grass", "gravel"),
    *("colorwheel", "hubble_deep_field", "immunohistochemistry", "astronaut", "coffee", "chelsea", "rocket"),
)
LEVELS = (25, 50)
SIDE = 384
ROWS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "before": lambda noisy, sigma: split(noisy, sigma, load("mixture"), scales=2),
    "fast": lambda noisy, sigma: denoise(noisy, sigma, quality="fast", white=1.0),
    "default": lambda noisy, sigma: denoise(noisy, sigma, white=1.0),
}


def picture(name: str) -> FloatArray:
    """Grey, grey levels being 0 to 1."""
    try:
        pixels = getattr(skimage.data, name)()
    except Exception as error:  # scikit-image fetches some, which may fail in many ways
        raise bsds500.DataMissingError(f"scikit-image has no picture {name} here: {error}") from error
    grey = rgb2gray(pixels[..., :3]) if pixels.ndim == 3 else pixels / np.iinfo(pixels.dtype).max
    return np.asarray(grey[:SIDE, :SIDE], np.float32)


def measured(clean: FloatArray, seed: int, denoiser: Callable[[FloatArray, float], FloatArray]) -> list[float]:
    """PSNR at each of LEVELS."""
    pairs = [(with_noise(clean, seed, level / 255), level / 255) for level in LEVELS]
    return [round(psnr(denoiser(noisy, sigma), clean), 3) for noisy, sigma in pairs]


def line(name: str, values: dict[str, list[float]]) -> str:
    """A line of the table."""
    return f"{name:24}" + "".join(f"{low:10.2f}{high:8.2f}" for low, high in values.values())


def main() -> None:
    wanted = tuple(sys.argv[1:]) or NAMES
    missing: list[str] = []
    rows: dict[str, dict[str, list[float]]] = {}
    print(f"{'255 sigma = 25, 50':24}" + "".join(f"{name:>18}" for name in ROWS))
    for name in wanted:
        try:
            clean = picture(name)
        except bsds500.DataMissingError:
            missing.append(name)
            continue
        rows[name] = {row: measured(clean, NAMES.index(name), denoiser) for row, denoiser in ROWS.items()}
        print(line(name, rows[name]), flush=True)
    means = {row: [round(float(x), 3) for x in np.mean([own[row] for own in rows.values()], axis=0)] for row in ROWS}
    print(line("mean", means))
    if missing:
        print(f"not here: {', '.join(missing)}")
    if wanted == NAMES:
        record = {"levels": LEVELS, "side": SIDE, "pictures": rows, "mean": means, "missing": missing}
        write_record(RECORDS / "bundled_pictures.json", record)


if __name__ == "__main__":
    main()
