"""Magnetic resonance imaging at 4-fold undersampling: one coil by `hp.operators.Fourier`, four by a stacked operator.

    python examples/undersampled_mri.py [--side 128] [-o mri.png]

The image is real, the data are complex. With several coils, y = (mask · F · coil_1 · x, …, mask · F · coil_4 · x) is
any `scipy.sparse.linalg.LinearOperator` of complex type; the real part of its adjoint is what counts. From one coil,
the prior of natural images is compared with a mixture trained here on the own kind of image, random ellipses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.sparse.linalg import LinearOperator
from skimage import data, transform

import heatprior as hp
from heatprior.data.trials import psnr

sys.path.insert(0, str(Path(__file__).parents[1]))
from paper.evaluations.ellipses import own_prior

SIGMA = 0.01


def columns_seen(side: int, rng: np.random.Generator) -> np.ndarray:
    """A quarter of the columns of frequencies: the lowest, and others at random."""
    seen = np.abs(np.fft.fftfreq(side)) < 0.04
    others = rng.permutation(np.flatnonzero(~seen))
    seen[others[: side // 4 - seen.sum()]] = True
    return np.broadcast_to(seen, (side, side))


def coil_maps(side: int) -> np.ndarray:
    """Four smooth complex sensitivities, strong in one corner each, of squares that add up to one: (4, H, W)."""
    rows, columns = (axis / side for axis in np.indices((side, side)))
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)]
    phases = [1j * (i * rows + j * columns) for i, j in corners]
    sizes = [-((rows - i) ** 2) - (columns - j) ** 2 for i, j in corners]
    maps = np.exp(np.stack(sizes) + np.stack(phases))
    return maps / np.sqrt(np.square(np.abs(maps)).sum(axis=0))


def coils(maps: np.ndarray, seen: np.ndarray) -> LinearOperator:
    """The stacked operator and its adjoint."""
    count, *shape = maps.shape
    pixels = int(np.prod(shape))

    def forward(x: np.ndarray) -> np.ndarray:
        return (seen * np.fft.fft2(maps * x.reshape(shape), norm="ortho")).reshape(-1)

    def adjoint(y: np.ndarray) -> np.ndarray:
        back = np.fft.ifft2(seen * y.reshape(count, *shape), norm="ortho")
        return (maps.conj() * back).sum(axis=0).reshape(-1)

    return LinearOperator((count * pixels, pixels), matvec=forward, rmatvec=adjoint, dtype=np.complex128)


def main() -> None:
    """Reconstruct the phantom from one coil and from four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    side, rng = arguments.side, np.random.default_rng(0)
    truth = transform.resize(data.shepp_logan_phantom(), (side, side), anti_aliasing=True)
    seen = columns_seen(side, rng)

    def noise(*shape: int) -> np.ndarray:
        return SIGMA * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))

    y = seen * (np.fft.fft2(truth, norm="ortho") + noise(side, side))
    zero_filled = np.fft.ifft2(y, norm="ortho").real
    single = hp.restore(y, hp.operators.Fourier(seen), SIGMA)
    own_kind = hp.restore(y, hp.operators.Fourier(seen), SIGMA, prior=own_prior(side))
    operator = coils(coil_maps(side), seen)
    stacked = operator.matvec(truth.reshape(-1)).reshape(4, side, side) + seen * noise(4, side, side)
    four = hp.restore(stacked, operator, SIGMA, shape=(side, side))
    panels = {"zero-filled": zero_filled, "one coil": single, "one coil, own kind": own_kind, "four coils": four}
    for name, image in panels.items():
        print(f"{name}: {psnr(image, truth):.2f} dB")
    if arguments.output is not None:
        page = np.clip(255 * np.concatenate([truth, *panels.values()], axis=1), 0, 255)
        Image.fromarray(page.astype(np.uint8)).save(arguments.output)


if __name__ == "__main__":
    main()
