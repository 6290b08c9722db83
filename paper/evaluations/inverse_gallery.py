"""The pictures of docs/inverse.md: before, after and truth, of images that scikit-image carries.

    python -m paper.evaluations.inverse_gallery [--only deblur inpaint upscale ct mri]

Writes docs/inverse/*.png, and PSNR before and after to records/inverse_gallery.json.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data as skimage_data
from skimage import transform as skimage_transform

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.pictures.figures import Panel, draw_side_by_side
from heatprior.restoration.operators.convolution import motion_kernel
from paper import RECORDS
from paper.evaluations.inverse_trials import lines_seen, text_mask
from paper.evaluations.tomography import projection_matrix
from paper.records import write_record

FOLDER = RECORDS.parent / "docs" / "inverse"
RESULT = RECORDS / "inverse_gallery.json"
SIGMA = 2.55 / 255
SIDE = 192
Image = NDArray[Any]
data: Any = skimage_data  # which has no types
transform: Any = skimage_transform


def noise(shape: tuple[int, ...]) -> Image:
    return SIGMA * np.random.default_rng(0).standard_normal(shape)


def deblur() -> tuple[Image, Image, Image]:
    """The photographer, moved over 15 pixels; edges unknown."""
    operator = hp.operators.Blur(motion_kernel(15, 30))
    measurement = operator.on((SIDE, SIDE))
    assert measurement.inside is not None
    whole = data.camera()[20 : 20 + measurement.image_shape[0], 130 : 130 + measurement.image_shape[1]] / 255.0
    y = measurement.forward(whole) + noise((SIDE, SIDE))
    return y, hp.restore(y, operator, SIGMA), whole[measurement.inside]


def inpaint() -> tuple[Image, Image, Image]:
    """The cat under writing, in colour."""
    truth = data.chelsea()[20 : 20 + SIDE, 120 : 120 + SIDE] / 255.0
    seen = text_mask(SIDE)
    y = np.where(seen[..., None], truth + noise(truth.shape), 1.0)
    return y, hp.restore(y, hp.operators.Mask(seen), SIGMA, channel_axis=-1), truth


def upscale() -> tuple[Image, Image, Image]:
    """The astronaut at a third of the size, edges unknown; shown with each pixel repeated."""
    operator = hp.operators.Downsample(3)
    measurement = operator.on((SIDE // 3, SIDE // 3))
    assert measurement.inside is not None
    whole = data.astronaut()[14 : 14 + measurement.image_shape[0], 124 : 124 + measurement.image_shape[1]] / 255.0
    small = np.stack([measurement.forward(whole[..., c]) for c in range(3)], axis=-1)
    y = small + noise(small.shape) / 2.0
    restored = hp.restore(y, operator, SIGMA / 2.0, channel_axis=-1)
    return y.repeat(3, axis=0).repeat(3, axis=1), restored, whole[measurement.inside]


def ct() -> tuple[Image, Image, Image]:
    """The Shepp–Logan phantom from 60 views; before: plain back-projection, scaled."""
    truth = transform.resize(data.shepp_logan_phantom(), (SIDE, SIDE), anti_aliasing=True)
    matrix = projection_matrix(SIDE, np.arange(60) * 3.0)
    clean = matrix @ truth.reshape(-1)
    sigma = 0.005 * float(clean.max())
    y = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)
    back = (matrix.T @ y).reshape(SIDE, SIDE)
    return back / back.max(), hp.restore(y, matrix, sigma, shape=(SIDE, SIDE)), truth


def mri() -> tuple[Image, Image, Image]:
    """The Shepp–Logan phantom from a quarter of its frequencies; before: the others set to zero."""
    truth = transform.resize(data.shepp_logan_phantom(), (SIDE, SIDE), anti_aliasing=True)
    seen = lines_seen(SIDE, 0.25, 0)
    rng = np.random.default_rng(0)
    spread = SIGMA * (rng.standard_normal(truth.shape) + 1j * rng.standard_normal(truth.shape))
    y = seen * (np.fft.fft2(truth, norm="ortho") + spread)
    return np.fft.ifft2(y, norm="ortho").real, hp.restore(y, hp.operators.Fourier(seen), SIGMA), truth


CASES = {"deblur": deblur, "inpaint": inpaint, "upscale": upscale, "ct": ct, "mri": mri}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    figures = json.loads(RESULT.read_text())["psnr"] if RESULT.exists() else {}
    FOLDER.mkdir(exist_ok=True)
    for name in parser.parse_args().only:
        before, after, truth = CASES[name]()
        figures[name] = {"before": round(float(psnr(before, truth)), 2), "after": round(float(psnr(after, truth)), 2)}
        titles = [f"before, {figures[name]['before']:.1f} dB", f"after, {figures[name]['after']:.1f} dB", "truth"]
        panels = [Panel(title, image, 0.0, 1.0) for title, image in zip(titles, (before, after, truth), strict=True)]
        draw_side_by_side(panels, FOLDER / f"{name}.png")
        print(name, figures[name], flush=True)
        write_record(RESULT, {"psnr": figures})


if __name__ == "__main__":
    main()
