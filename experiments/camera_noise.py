"""Blind denoising of photographs with real noise: PSNR on CC15, against the mean of many shots.

    python experiments/camera_noise.py [--data DIR] [--images 15] [--crop 0] [--resume]

Pairs *_real.png and *_mean.png (Nam et al., CVPR 2016) in DIR/cc15; nothing is told to the method. PSNR is that of
8-bit RGB. `--crop 192` denoises the middle 192×192 pixels only; `--resume` keeps the pictures that the record has.
Writes experiments/results/camera_noise.json, picture by picture.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.images import read_image
from heatprior.noise.estimation import estimate_noise
from heatprior.records import write_record
from heatprior.restoration.denoising import denoise

RESULT = Path(__file__).parent / "results" / "camera_noise.json"


def psnr(image: NDArray[Any], truth: NDArray[Any]) -> float:
    """Of 8-bit images."""
    return float(10 * np.log10(255**2 / np.mean((image.astype(np.float64) - truth) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    parser.add_argument("--images", type=int, default=15)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--crop", type=int, default=0)
    parser.add_argument("--kind", default="auto")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--result", type=Path, default=RESULT)
    arguments = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if arguments.resume and arguments.result.exists():
        rows = json.loads(arguments.result.read_text())["rows"]
    for file in sorted((arguments.data / "cc15").glob("*_real.png"))[:: arguments.every][: arguments.images]:
        if file.name.removesuffix("_real.png") in rows:
            continue
        noisy, truth = (read_image(f).pixels for f in (file, file.with_name(file.name.replace("_real", "_mean"))))
        if arguments.crop:
            middle = tuple(slice((n - arguments.crop) // 2, (n + arguments.crop) // 2) for n in noisy.shape[:2])
            noisy, truth = noisy[middle], truth[middle]
        start = time.process_time()
        report = estimate_noise(noisy, arguments.kind, channel_axis=-1)  # as `denoise` without sigma does by itself
        estimating = time.process_time() - start
        known = {"sigma": report.sigma} if report.profile is None else {"noise": report.profile}
        clean = denoise(noisy, **known, channel_axis=-1)
        total = time.process_time() - start
        row = {
            "noisy": round(psnr(noisy, truth), 3),
            "denoised": round(psnr(clean, truth), 3),
            "model": report.models[0],
            "sigma": [round(255 * channel.level.sigma, 2) for channel in report.channels],
            "cpu_seconds_estimating": round(estimating, 2),
            "cpu_seconds_denoising": round(total - estimating, 2),
        }
        rows[file.name.removesuffix("_real.png")] = row
        print(file.name, row, flush=True)
        rows = dict(sorted(rows.items()))
        means = {key: round(float(np.mean([r[key] for r in rows.values()])), 3) for key in ("noisy", "denoised")}
        write_record(arguments.result, {"pictures": len(rows), "crop": arguments.crop, "mean": means, "rows": rows})
    print("pictures", len(rows), "worse:", [name for name, row in rows.items() if row["denoised"] < row["noisy"]])


if __name__ == "__main__":
    main()
