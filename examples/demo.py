"""What `make demo` shows: a photograph with noise, denoised without being told how much there is, and the noise map.

    python examples/demo.py [FOLDER]

Writes noisy.png, denoised.png and demo.png into FOLDER, or into out. The photograph comes with matplotlib; the noise
has a standard deviation of 25 of 255 grey levels, and is rounded to 8 bits as in any file.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatprior import denoise, estimate_noise
from heatprior.data import trials
from heatprior.pictures.panels import Panel, draw_side_by_side

SIGMA = 25.0
SEED = 0
PART = (slice(384), slice(64, 448))  # of the photograph


def main() -> None:
    """Make the pictures and say what was found."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    folder.mkdir(parents=True, exist_ok=True)
    clean = np.asarray(Image.fromarray(trials.photograph()).convert("L"))[PART]
    noise = np.random.default_rng(SEED).standard_normal(clean.shape)
    noisy = np.clip(np.rint(clean + SIGMA * noise), 0, 255).astype(np.uint8)
    start = time.perf_counter()
    report = estimate_noise(noisy)
    denoised = denoise(noisy, report.sigma)
    seconds = time.perf_counter() - start
    levels = estimate_noise(noisy, "map").sigma
    Image.fromarray(noisy).save(folder / "noisy.png")
    Image.fromarray(denoised).save(folder / "denoised.png")
    images = {f"noisy, {psnr(noisy, clean):.1f} dB": noisy, f"denoised, {psnr(denoised, clean):.1f} dB": denoised}
    panels = [Panel(title, image, 0, 255) for title, image in {**images, "clean": clean}.items()]
    draw_side_by_side([*panels, Panel("noise level, 0 to 50", levels, 0, 2 * SIGMA)], folder / "demo.png")
    found = f"{255 * report.channels[0].level.sigma:.1f} ({report.models[0]}), in truth {SIGMA:g}"
    print(f"estimated noise level: {found}")
    print(f"{', '.join(images)}; {seconds:.1f} s, the first time with compiling")
    print(f"Look at {folder / 'demo.png'}; the images are {folder / 'noisy.png'} and {folder / 'denoised.png'}.")


def psnr(image: NDArray[np.uint8], clean: NDArray[np.uint8]) -> float:
    """Peak signal-to-noise ratio in dB."""
    return trials.psnr(image / 255.0, clean / 255.0)


if __name__ == "__main__":
    main()
