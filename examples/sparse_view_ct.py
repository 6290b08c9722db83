"""Computed tomography from few views: the Shepp–Logan phantom, and a natural picture, with `hp.restore`.

    python examples/sparse_view_ct.py [--views 60] [--side 128] [-o ct.png]

The operator is a sparse matrix, whose transpose is its exact adjoint (paper/evaluations/tomography.py). Three priors
are compared: `tuned`, of natural images; a mixture trained here on images of the user's own kind, here random ellipses
of constant grey, none of which is the phantom; and that one adapted to the image which it reconstructed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data, transform

import heatprior as hp
from heatprior.data.trials import psnr

sys.path.insert(0, str(Path(__file__).parents[1]))
from paper.evaluations.ellipses import own_prior
from paper.evaluations.tomography import projection_matrix

NOISE = 0.005  # over the largest sum along a ray
REMAINING = 0.01  # of noise in a reconstruction, about, to which a prior is adapted


def main() -> None:
    """Reconstruct both pictures with every prior."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=60)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    side = arguments.side
    matrix = projection_matrix(side, np.arange(arguments.views) * 180.0 / arguments.views)
    pictures = {"phantom": data.shepp_logan_phantom(), "camera": data.camera() / 255.0}
    own = own_prior(side)
    priors = {"natural images": hp.load("tuned"), "the own kind": own, "the own kind, adapted": None}
    panels = []
    for name, picture in pictures.items():
        truth = transform.resize(picture, (side, side), anti_aliasing=True)
        sinogram = matrix @ truth.reshape(-1)
        sigma = NOISE * float(sinogram.max())
        y = sinogram + sigma * np.random.default_rng(0).standard_normal(sinogram.shape)
        panels += [truth]
        for kind, prior in priors.items():
            used = prior or hp.adapt(own, panels[-1], REMAINING)
            panels += [hp.restore(y, matrix, sigma, prior=used, shape=(side, side))]
            print(f"{name}, {arguments.views} views, prior of {kind}: {psnr(panels[-1], truth):.2f} dB")
    if arguments.output is not None:
        rows = [np.concatenate(panels[k : k + 4], axis=1) for k in (0, 4)]
        page = np.clip(255 * np.concatenate(rows), 0, 255)
        Image.fromarray(page.astype(np.uint8)).save(arguments.output)


if __name__ == "__main__":
    main()
