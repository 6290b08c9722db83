"""White noise on colour images: PSNR on the colour originals of BSD68 (CBSD68), sigma told.

    python -m paper.evaluations.colour_bsd68 [--data DIR] [--images 15] [--resume]

The images of BSDS500 val that are not for validation, in order of name, as BSD68 has them in grey. Noise of image i is
drawn from seed 1000 + i on all channels, neither clipped nor rounded; PSNR is that of all channels together, of the
result clipped to [0, 1]. Writes records/colour_bsd68.json after every image;
`--resume` keeps those that it has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from heatprior.data.trials import psnr, with_noise
from heatprior.images import image_files, read_image
from heatprior.records import write_record
from heatprior.restoration.denoising import denoise
from paper import RECORDS, bsds500

SIGMAS = (15, 25, 50)  # of 255
RESULT = RECORDS / "colour_bsd68.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=15)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    others = image_files(bsds500.data_folder(arguments.data) / "bsds500" / "val")
    files = [path for path in others if path.stem not in bsds500.VALIDATION_STEMS][: arguments.images]
    rows: dict[str, list[float]] = {}
    if arguments.resume and RESULT.exists():
        rows = json.loads(RESULT.read_text())["psnr"]
    for number, file in enumerate(files):
        if file.name in rows:
            continue
        clean = read_image(file).pixels / np.float32(255)
        noisy = [with_noise(clean, number, sigma / 255) for sigma in SIGMAS]
        rows[file.name] = [
            round(psnr(denoise(y, sigma / 255, channel_axis=-1, white=1.0), clean), 3)
            for y, sigma in zip(noisy, SIGMAS, strict=True)
        ]
        means = [round(float(value), 3) for value in np.mean(list(rows.values()), axis=0)]
        print(file.name, *rows[file.name], "mean", *means, flush=True)
        write_record(RESULT, {"images": len(rows), "sigmas": SIGMAS, "mean": means, "psnr": rows})


if __name__ == "__main__":
    main()
