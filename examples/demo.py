"""What `make demo` shows: a photograph with noise as a phone leaves it, denoised without being told anything.

    python examples/demo.py [FOLDER]

Writes noisy.jpg, denoised.png and demo.png into FOLDER, or into out. The photograph comes with matplotlib. Its noise is
drawn: twice as strong in red and blue, smoothed as by demosaicing, and saved as JPEG.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from heatprior import denoise, estimate_noise
from heatprior.data.trials import photograph, psnr
from heatprior.pictures.figures import Panel, draw_side_by_side

SIGMA = (22.0, 11.0, 22.0)  # grey levels
SMOOTHED = 0.7  # pixels
SEED = 0
PART = (slice(36, 306), slice(112, 364))  # of the photograph


def main() -> None:
    """Make the pictures and say what was found."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    folder.mkdir(parents=True, exist_ok=True)
    clean = photograph()[PART]
    noise = gaussian_filter(np.random.default_rng(SEED).standard_normal(clean.shape), (SMOOTHED, SMOOTHED, 0))
    noisy = np.clip(np.rint(clean + SIGMA * noise / noise.std()), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(folder / "noisy.jpg", quality=92)
    noisy = np.asarray(Image.open(folder / "noisy.jpg"))
    start = time.perf_counter()
    denoised = denoise(noisy, channel_axis=-1)
    seconds = time.perf_counter() - start
    Image.fromarray(denoised).save(folder / "denoised.png")
    images = {
        f"{name}, {psnr(image / 255.0, clean / 255.0):.1f} dB": image
        for name, image in (("noisy", noisy), ("denoised", denoised))
    }
    panels = [Panel(title, image, 0, 255) for title, image in {**images, "without the noise": clean}.items()]
    draw_side_by_side(panels, folder / "demo.png")
    print(f"found: {estimate_noise(noisy, channel_axis=-1)}")
    print(f"{', '.join(images)}; {seconds:.1f} s, the first time with compiling")
    print(f"Look at {folder / 'demo.png'}; the images are {folder / 'noisy.jpg'} and {folder / 'denoised.png'}.")


if __name__ == "__main__":
    main()
