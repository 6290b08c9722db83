"""What the numbers of a file mean: colours, gaps among integers, orientation; and files far larger than their image.

These files are sound, and what is to come of them is known, as it is not of mutated ones.
"""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from fuzz.seeds import HEIGHT, WIDTH, noisy

PADDED = 1 << 30  # bytes, of a sparse file
LEAST = -32768  # the number that stands for a gap
LEVELS, SIGMA = 1000, 30.0
TURNS = ("flipud", "fliplr", "transpose")
PRIOR = ["--prior", "dct3.safetensors"]  # which is symmetric


class Meaning(NamedTuple):
    """Files, a command over them, its outputs, and what is expected of them."""

    files: dict[str, bytes]
    arguments: list[str]
    outputs: tuple[str, ...]
    near: tuple[NDArray[Any], float] | None = None  # pixels that the output has, but for so much on average; NaN: any
    turned: str = ""  # how the second output is turned with respect to the first


def colours(random: Random) -> Meaning:
    """The same picture in colours of several kinds: as they are, inks, YCbCr, multiplied by transparency, inverted."""
    right = noisy((HEIGHT, WIDTH, 3)) // 2 + np.array([90, 40, 0], np.uint8)
    kind, suffix = random.choice(("RGB", "CMYK", "YCbCr", "multiplied", "inverted")), random.choice((".png", ".webp"))
    content = BytesIO()
    if kind == "multiplied":
        alpha = np.broadcast_to(np.linspace(120, 255, WIDTH).astype(np.uint8), (HEIGHT, WIDTH))[..., None]
        samples = np.concatenate([np.rint(right * (alpha / 255)).astype(np.uint8), alpha], axis=-1)
        tifffile.imwrite(content, samples, photometric="rgb", extrasamples=["assocalpha"], metadata=None)
    elif kind == "inverted":
        right = right[..., :1].repeat(3, axis=-1)
        tifffile.imwrite(content, 255 - right[..., 0], photometric="miniswhite", metadata=None)
    else:
        Image.fromarray(right).convert(kind).save(content, "TIFF")
    line = ["denoise", "image.tif", "-o", f"out{suffix}", "--sigma", "1", "--white", "255", *PRIOR]
    return Meaning({"image.tif": content.getvalue()}, line, (f"out{suffix}",), (right, 4.0))


def gaps(random: Random) -> Meaning:
    """Integers of a range far below that of their type, some of them gaps: noise goes as if there were none."""
    clean = LEVELS * (0.3 + 0.01 * np.add.outer(np.arange(HEIGHT), np.arange(WIDTH)))
    noise = SIGMA * np.random.default_rng(random.randrange(1 << 30)).standard_normal(clean.shape)
    pixels, expected = np.rint(clean + noise).astype(np.int16), clean.copy()
    for _ in range(random.choice((0, 1, 9))):
        place = random.randrange(HEIGHT), random.randrange(WIDTH)
        pixels[place], expected[place] = LEAST, np.nan
    content, suffix = BytesIO(), random.choice((".tif", ".fits")) if find_spec("astropy") else ".tif"
    if suffix == ".tif":
        tifffile.imwrite(content, pixels, metadata=None, extratags=[(42113, "s", 0, str(LEAST), True)])
    else:
        from astropy.io import fits  # noqa: PLC0415 (an extra)

        part = fits.PrimaryHDU(pixels)
        part.header["BLANK"] = LEAST
        part.writeto(content)
    line = ["denoise", f"image{suffix}", "-o", f"out{suffix}", "--sigma", str(SIGMA), *PRIOR]
    return Meaning({f"image{suffix}": content.getvalue()}, line, (f"out{suffix}",), (expected, 0.6 * SIGMA))


def turns(random: Random) -> Meaning:
    """An image with even sides, and the same turned: their results are the same, turned, to a rounding."""
    turn, pixels = random.choice(TURNS), noisy((HEIGHT, WIDTH))
    pixels = np.roll(pixels, random.randrange(WIDTH), axis=1)
    files = {}
    for name, each in (("image", pixels), ("turned", getattr(np, turn)(pixels))):
        content = BytesIO()
        Image.fromarray(np.ascontiguousarray(each)).save(content, "PNG")
        files[f"images/{name}.png"] = content.getvalue()
    line = ["denoise", "images", "-o", "out", "--sigma", str(random.choice((5, 20, 60))), "--white", "255", *PRIOR]
    return Meaning(files, line, ("out/image.png", "out/turned.png"), turned=turn)
