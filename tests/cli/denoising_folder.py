"""What the folder holds in which `heatprior denoise` is tested."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from synthetic import landscape

from paper.weights.handmade import dct_prior

SIGMA = 20
QUICK = ("--prior", "mine.safetensors")


def fill_current_folder() -> None:
    """With noisy images of all sorts, none larger than needed, and with files that are none."""
    dct_prior(3).save("mine.safetensors")
    rng = np.random.default_rng(0)
    clean = 255 * landscape((20, 24), rng)
    noisy = np.clip(np.rint(clean + SIGMA * rng.standard_normal(clean.shape)), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save("noisy.png", dpi=(300, 300))
    Path("photos/trip/day").mkdir(parents=True)
    Image.fromarray(noisy).save("photos/a.png")
    Image.fromarray(np.dstack([noisy] * 3)).save("photos/trip/b.jpg")
    np.save("photos/trip/day/c.npy", (noisy / 255).astype(np.float32))
    tifffile.imwrite("stack.tif", np.stack([noisy, noisy[::-1]]).astype(np.uint16) * 257, imagej=True)
    np.save("map.npy", np.full(noisy.shape, float(SIGMA)))
    np.save("small-map.npy", np.full((5, 5), float(SIGMA)))
    np.save("degrees.npy", noisy.astype(np.float32))
    Image.fromarray(noisy[:1, :1]).save("dot.png")
    Path("cut.png").write_bytes(Path("noisy.png").read_bytes()[:300])
    Path("zero.tif").touch()
    Path("nothing").mkdir()
    Path("notes.txt").write_text("not an image\n")
    Path("old.png").write_text("precious")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
