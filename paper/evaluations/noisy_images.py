"""Copies of the 400 training images of BSDS500 with Gaussian noise, as .npy, to learn a prior from noisy images alone.

python -m paper.evaluations.noisy_images FOLDER [--level 25]

The noise is drawn once for each image, is neither clipped nor rounded, and no clean pixel is left in the folder. Then

heatprior train FOLDER -o run --kind mixture --sigma 0.0980392 --steps 100 --batch 16000
python -m paper.evaluations.mixtures --noisy run/prior.safetensors
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior.data.trials import with_noise
from heatprior.images import read_grey
from paper import bsds500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", type=float, default=25.0, help="255 sigma")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(bsds500.training(None)):
        clean = (read_grey(path) / 255.0).astype(np.float32)
        np.save(options.folder / f"{path.stem}.npy", with_noise(clean, number, options.level / 255.0))
    print(f"wrote {number + 1} images with noise of standard deviation {options.level / 255.0:.6g} to {options.folder}")


if __name__ == "__main__":
    main()
