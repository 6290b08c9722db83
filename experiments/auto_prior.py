"""What `prior="auto"` gains over the default, and what it loses at worst.

    python experiments/auto_prior.py {val32, bsd68, pictures} [--level L] [--every N] [--data DIR]

PSNR of both on the middle of every N-th image, at most 256×256 pixels, with noise by the usual protocol (seed
1000 + i); `pictures` are some of those that come with scikit-image. What is measured is added to
experiments/results/auto_prior.json; choices were made on val32 alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data

from heatprior import denoise
from heatprior.arrays import FloatArray
from heatprior.data import bsds500
from heatprior.data.trials import FIRST_SEED, psnr, with_noise
from heatprior.images import read_grey
from heatprior.images.grey import to_grey
from heatprior.records import running_commit, write_record

RESULT = Path(__file__).parent / "results" / "auto_prior.json"
SIDE = 256
PICTURES = (
    "astronaut",
    "brick",
    "camera",
    "cat",
    "clock",
    "coffee",
    "coins",
    "grass",
    "gravel",
    "moon",
    "page",
    "text",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("val32", "bsd68", "pictures"))
    parser.add_argument("--level", type=int, default=25, help="255 sigma")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    images = images_of(arguments.set, arguments.data)[:: arguments.every]
    sigma, gains, seconds = arguments.level / 255, {}, np.zeros(2)
    for number, (name, clean) in enumerate(images):
        noisy = with_noise(clean, number * arguments.every, sigma)
        found = []
        for which, prior in enumerate((None, "auto")):
            start = time.process_time()
            found.append(psnr(denoise(noisy, sigma, prior=prior, white=1.0), clean))
            seconds[which] += time.process_time() - start
        gains[name] = round(found[1] - found[0], 4)
        print(f"{name}: {found[0]:.2f} dB, auto {gains[name]:+.3f}", flush=True)
    row: dict[str, Any] = {
        "images": len(gains),
        "mean_gain": round(float(np.mean(list(gains.values()))), 4),
        "worst": min(gains.values()),
        "best": max(gains.values()),
        "gains": gains,
        "times_slower": round(float(seconds[1] / seconds[0]), 2),
        "commit": running_commit(),
    }
    before = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else {}
    write_record(RESULT, {"first_seed": FIRST_SEED, "rows": {**before, f"{arguments.set} {arguments.level}": row}})
    print({key: value for key, value in row.items() if key != "gains"})


def images_of(name: str, data: Path | None) -> list[tuple[str, FloatArray]]:
    """Grey images, 0 to 1, with their names."""
    if name == "pictures":
        found = [(one, to_grey(getattr(skimage.data, one)())) for one in PICTURES]
    else:
        paths = bsds500.bsd68(data) if name == "bsd68" else bsds500.validation(data)
        found = [(path.stem, read_grey(path)) for path in paths]
    return [(one, middle(image) / np.float32(255)) for one, image in found]


def middle(image: FloatArray) -> FloatArray:
    """The middle of an image, at most SIDE×SIDE pixels."""
    top, left = (max(length - SIDE, 0) // 2 for length in image.shape)
    return image[top : top + SIDE, left : left + SIDE]


if __name__ == "__main__":
    main()
