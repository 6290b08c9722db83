"""Other denoisers on the first images of BSD68, by the same trials as Table 1: mean PSNR in dB.

    python -m paper.evaluations.peers [--data DIR] [--limit 15]

Needs the extra `bench`. The one parameter of total variation and of non-local means is chosen for each noise level on
crops of four validation images. Times are in benchmarks/bench_denoising.py. Writes records/peers.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from skimage import restoration
from tqdm import tqdm

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, LEVELS, psnr, with_noise
from heatprior.images import read_grey
from paper import RECORDS, bsds500
from paper.records import write_record

CROP = slice(80, 240)
CHOSEN_ON = 4
RESULT = RECORDS / "peers.json"
Denoiser = Callable[[FloatArray, float, float], Any]
skimage: Any = restoration


def opencv_nlm(noisy: FloatArray, sigma: float, strength: float) -> Any:
    grey = np.clip(np.rint(noisy * 255), 0, 255).astype(np.uint8)
    return import_module("cv2").fastNlMeansDenoising(grey, None, 255 * sigma * strength, 7, 21) / np.float32(255)


def nlm(noisy: FloatArray, sigma: float, strength: float) -> Any:
    return skimage.denoise_nl_means(
        noisy, patch_size=5, patch_distance=6, h=strength * sigma, sigma=sigma, fast_mode=True
    )


def wavelet(noisy: FloatArray, sigma: float, _: float) -> Any:
    options = {"sigma": sigma, "wavelet": "sym4", "method": "BayesShrink", "rescale_sigma": False}
    return skimage.cycle_spin(noisy, func=skimage.denoise_wavelet, max_shifts=3, func_kw=options, workers=1)


# Each with the values from which its parameter is chosen, over sigma.
METHODS: dict[str, tuple[Denoiser, Sequence[float]]] = {
    "heatprior patch7 EB": (lambda y, s, _: denoise(y, s, prior="patch7", steps=1, white=1.0), (1.0,)),
    "heatprior patch7 HQS": (lambda y, s, _: denoise(y, s, prior="patch7", white=1.0), (1.0,)),
    "bm3d": (lambda y, s, _: import_module("bm3d").bm3d(y, s, profile="np"), (1.0,)),
    "scikit-image NLM": (nlm, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    "scikit-image TV": (lambda y, s, w: skimage.denoise_tv_chambolle(y, weight=w * s), (0.6, 0.8, 1.0, 1.2, 1.4, 1.7)),
    "scikit-image wavelet, cycle-spun": (wavelet, (1.0,)),
    "OpenCV NLM": (opencv_nlm, (0.7, 0.85, 1.0, 1.15, 1.3)),
}


def mean_psnr(denoiser: Denoiser, images: list[FloatArray], level: int, parameter: float) -> float:
    sigma = level / 255
    values = [psnr(denoiser(with_noise(x, i, sigma), sigma, parameter), x) for i, x in enumerate(images)]
    return float(np.mean(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=15)
    arguments = parser.parse_args()
    crops = [
        (read_grey(f)[CROP, CROP] / 255).astype(np.float32) for f in bsds500.validation(arguments.data)[:CHOSEN_ON]
    ]
    images = [(read_grey(f) / 255).astype(np.float32) for f in bsds500.bsd68(arguments.data)[: arguments.limit]]
    rows = {}
    for name, (denoiser, choices) in tqdm(METHODS.items(), disable=None):
        row: dict[str, list[float]] = {"psnr": [], "parameter": []}
        for level in LEVELS:
            best = max(choices, key=lambda value: mean_psnr(denoiser, crops, level, value)) if choices[1:] else 1.0
            row["parameter"].append(best)
            row["psnr"].append(round(mean_psnr(denoiser, images, level, best), 3))
        rows[name] = row
        print(f"{name:36}" + "".join(f"{value:9.2f}" for value in row["psnr"]), flush=True)
    write_record(RESULT, {"images": len(images), "first_seed": FIRST_SEED, "levels": LEVELS, "methods": rows})


if __name__ == "__main__":
    main()
