"""A dozen ordinary tasks on ordinary files, and every line that a person would see.

    python examples/ordinary_tasks.py [FOLDER] [--side PIXELS]

Files are made from pictures that matplotlib carries and from random numbers, in FOLDER or in a temporary one: a phone's
JPEG, photographs, a microscope's 16-bit stack, FITS with gaps, hot pixels and errors, a scan, a volume, a PNG with
transparency. The exit code is 1 if a task prints more than three lines.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from matplotlib import cbook, image
from numpy.typing import NDArray
from PIL import Image

from heatprior.cli import main

MOST_LINES = 3
TASKS = [
    ("denoise a phone's photograph", "denoise phone.jpg"),
    ("see how much noise it has", "noise phone.jpg"),
    ("keep more of its grain", "denoise phone.jpg -o grain.jpg --strength 0.5"),
    ("denoise a clean picture", "denoise clean.png"),
    ("smooth it all the same", "denoise clean.png -o smooth.png --strength 2"),
    ("denoise a folder of photographs", "denoise photos -o clean --quality fast"),
    ("denoise a microscope's stack", "denoise cells.tif"),
    ("denoise a picture with transparency", "denoise logo.png"),
    ("denoise a scan, told its noise", "denoise page.png --sigma 12 --compare"),
    ("denoise a FITS with gaps", "denoise field.fits"),
    ("denoise a FITS with errors", "denoise exposure.fits"),
    ("denoise a volume", "denoise head.nii.gz"),
    ("sharpen a photograph", "deblur phone.jpg --gaussian 1"),
    ("fill in a scratch", "inpaint logo.png -o whole.png --mask scratch.png"),
    ("enlarge a picture", "upscale page.png"),
    ("make a mistake", "denoise phone.jpg page.png -o one.png"),
]
NEEDS = {".fits": "astropy", ".nii.gz": "nibabel"}


def make_files(side: int) -> None:
    """Write what the tasks take into the current folder."""
    rng = np.random.default_rng(0)
    colour = image.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    colour = np.asarray(colour[40 : 40 + side, 140 : 140 + side])
    grey = np.asarray(colour[..., 1], np.float64)

    def noisy(clean: NDArray[np.floating] | NDArray[np.uint8], sigma: float) -> NDArray[np.uint8]:
        return np.clip(clean + sigma * rng.standard_normal(clean.shape), 0, 255).astype(np.uint8)

    Image.fromarray(noisy(colour, 12)).save("phone.jpg", quality=92)
    Image.fromarray(np.tile(np.linspace(40, 200, side).astype(np.uint8), (side, 1))).save("clean.png")
    Path("photos").mkdir()
    for number, sigma in enumerate((8, 16)):
        Image.fromarray(noisy(colour, sigma)).save(f"photos/{number}.png")
    alpha = np.where(np.arange(side) < side // 2, 255, 0).astype(np.uint8) * np.ones((side, 1), np.uint8)
    Image.fromarray(np.dstack([noisy(colour, 15), alpha])).save("logo.png")
    scratch = np.zeros((side, side), np.uint8)
    scratch[side // 2, 4:-4] = 255
    Image.fromarray(scratch).save("scratch.png")
    Image.fromarray(noisy(np.where(np.arange(side) % 12 < 3, 60, 230) * np.ones((side, 1)), 12)).save("page.png")
    import tifffile  # noqa: PLC0415 (slow to import)

    tifffile.imwrite("cells.tif", rng.poisson(grey / 4, (4, side, side)).astype(np.uint16), photometric="minisblack")
    sky = 100 + 4 * rng.standard_normal((side, side))
    sky[side // 2 : side // 2 + 3, side // 3 : side // 3 + 3] += 300
    if find_spec("astropy"):
        from astropy.io import fits  # noqa: PLC0415

        gaps = sky.astype(np.float32)
        gaps[:, 7] = np.nan
        gaps[11, 13] = 4000.0
        fits.PrimaryHDU(gaps).writeto("field.fits")
        parts = [fits.PrimaryHDU(), fits.ImageHDU(sky.astype(np.float32), name="SCI")]
        parts += [fits.ImageHDU(np.full(sky.shape, 4.0, np.float32), name="ERR")]
        fits.HDUList(parts).writeto("exposure.fits")
    if find_spec("nibabel"):
        import nibabel  # noqa: PLC0415

        slices = np.stack([grey + 10 * rng.standard_normal(grey.shape) for _ in range(3)], axis=-1)
        nibabel.Nifti1Image(slices.astype(np.int16), np.eye(4)).to_filename("head.nii.gz")


def run(command: str) -> list[str]:
    """Every line that the command prints, on either stream, in order."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        main(command.split())
    return printed.getvalue().splitlines()


def tell(say: Callable[[str], object] = print) -> int:
    """Run all tasks for which packages are installed in the current folder; how many printed too much."""
    too_many = 0
    for task, command in TASKS:
        if any(suffix in command and not find_spec(package) for suffix, package in NEEDS.items()):
            continue
        lines = run(command)
        too_many += len(lines) > MOST_LINES
        say(f"\n{task}\n  $ heatprior {command}")
        for line in lines:
            say(f"  {line}")
    return too_many


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--side", type=int, default=256)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(options.folder or temporary)
        place.mkdir(exist_ok=True)
        with chdir(place):
            make_files(options.side)
            os.environ.setdefault("COLUMNS", "200")
            sys.exit(min(1, tell()))
