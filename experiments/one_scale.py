"""What large images lose by being denoised at one scale, or at three by short filters: PSNR beside that at all scales.

    python experiments/one_scale.py [--images 8]

The first validation images, grey, middle 256×256 pixels, by the protocol of `heatprior evaluate`; "three scales" are
those of blocks, by the filters of `restoration/local_scales.py`, with the same bits in any blocks. Prints a table and
writes experiments/results/one_scale.json; nothing is chosen by it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data import bsds500
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.noise_model import ConstantNoise
from heatprior.records import write_record
from heatprior.restoration.multiscale_pieces import way_of
from heatprior.restoration.qualities import prior_name
from heatprior.zoo import load

SIDE = 256
QUALITIES = ("fast", "default")
Denoiser = Callable[..., FloatArray]  # noisy image, its sigma, quality → the image denoised
RESULT = Path(__file__).parent / "results" / "one_scale.json"


def middle(path: Path) -> FloatArray:
    """SIDE×SIDE pixels, grey levels being 0 to 1."""
    grey = read_grey(path) / 255.0
    top, left = ((length - SIDE) // 2 for length in grey.shape)
    return np.asarray(grey[top : top + SIDE, left : left + SIDE], np.float32)


def at_scales(scales: int | None) -> Denoiser:
    """As in memory."""
    return lambda noisy, sigma, quality: denoise(noisy, sigma, quality=quality, scales=scales, white=1.0)


def in_blocks(noisy: FloatArray, sigma: float, quality: str) -> FloatArray:
    """At three scales, as blocks are."""
    way = way_of(load(prior_name(quality)), "hqs", (noisy.shape[0], noisy.shape[1]), scales=3)
    return way.denoise(noisy, ConstantNoise(sigma), (slice(0, noisy.shape[0]), slice(0, noisy.shape[1])))


ROWS = {"one scale": at_scales(1), "three scales": in_blocks, "all scales": at_scales(None)}


def mean_psnr(images: list[FloatArray], level: int, quality: str, denoiser: Denoiser) -> float:
    """Over all images, at 255 sigma = level."""
    sigma = level / 255.0
    noisy = [with_noise(clean, i, sigma) for i, clean in enumerate(images)]
    found = [psnr(denoiser(y, sigma, quality), clean) for y, clean in zip(noisy, images, strict=True)]
    return round(float(np.mean(found)), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8)
    count = parser.parse_args().images
    images = [middle(path) for path in bsds500.validation(None)[:count]]
    rows = {}
    for quality in QUALITIES:
        for name, denoiser in ROWS.items():
            row = {str(level): mean_psnr(images, level, quality, denoiser) for level in LEVELS}
            rows[f"{quality}, {name}"] = row
            print(f"{quality + ', ' + name:23}", *(f"{value:8.2f}" for value in row.values()))
    write_record(RESULT, {"images": count, "side": SIDE, "first_seed": 1000, "psnr": rows})


if __name__ == "__main__":
    main()
