"""TIFF files: every bit and every tag, in every layout."""

from __future__ import annotations

import struct
from importlib.util import find_spec
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from round_trip import DTYPES, PROFILE, assert_upside_down, noise, rewritten

from heatprior import OutputFileError
from heatprior.errors import ImageFileError
from heatprior.images import check_writable, read_image, write_image

COMMON = ["uint8", "float32"]


@pytest.mark.parametrize(
    ("dtype", "shape", "options"),
    [
        *((dtype, (9, 8), {}) for dtype in DTYPES),
        *((dtype, (9, 8, 3), {"photometric": "rgb"}) for dtype in COMMON),
        *((dtype, (3, 9, 8), {"photometric": "rgb", "planarconfig": "separate"}) for dtype in COMMON),
        *((dtype, (5, 9, 8), {"photometric": "minisblack"}) for dtype in COMMON),
        ("uint8", (4, 9, 8, 3), {"photometric": "rgb"}),
        ("uint16", (4, 3, 9, 8), {"photometric": "rgb", "planarconfig": "separate"}),
        ("uint8", (9, 8, 4), {"photometric": "rgb", "extrasamples": ["unassalpha"]}),
        ("uint8", (9, 8, 2), {"photometric": "minisblack", "planarconfig": "contig", "extrasamples": ["assocalpha"]}),
        ("uint16", (9, 8, 5), {"photometric": "minisblack", "planarconfig": "contig"}),
        ("uint8", (9, 8), {"photometric": "miniswhite"}),
        ("uint16", (40, 50), {"compression": "deflate"}),
        ("uint16", (40, 50), {"compression": "deflate", "predictor": 2, "rowsperstrip": 7}),
        ("uint8", (2, 40, 50, 3), {"compression": "deflate", "predictor": 2, "tile": (16, 32), "photometric": "rgb"}),
        ("float32", (3, 40, 50), {"compression": "lzma", "rowsperstrip": 16, "photometric": "minisblack"}),
        ("float32", (3, 40, 50), {"tile": (32, 16), "photometric": "minisblack"}),
        ("uint8", (40, 50), {"rowsperstrip": 7}),
    ],
)
@pytest.mark.parametrize("file", [{"byteorder": "<"}, {"byteorder": ">"}, {"bigtiff": True}])
def test_tiff_of_every_type_and_layout(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], options: dict[str, Any], file: dict[str, Any]
):
    samples = noise(shape, dtype)
    tags = {"description": "what it is", "datetime": "2024:01:02 03:04:05", "software": "microscope"}
    extra = [(65000, "s", None, "private", True), (34675, 7, len(PROFILE), PROFILE, True)]
    tifffile.imwrite(
        tmp_path / "image.tif", samples, resolution=(400.5, 200), resolutionunit="CENTIMETER", metadata=None,
        extratags=extra, **tags, **options, **file,
    )  # fmt: skip
    image, new = rewritten(tmp_path / "image.tif")
    assert image.colour == (options.get("photometric") == "rgb")
    assert image.metadata.dpi == pytest.approx((400.5 * 2.54, 200 * 2.54))
    assert_upside_down(new, image)
    assert_same_tags(tmp_path / "image.tif", new)
    rows = samples.shape.index(9 if 9 in shape else 40)
    if image.others is None:
        np.testing.assert_array_equal(tifffile.imread(new), np.flip(samples, rows))


def in_full(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


PLACES = {"StripOffsets", "StripByteCounts", "TileOffsets", "TileByteCounts", "Predictor"}


def assert_same_tags(old: Path, new: Path, but: frozenset[str] = frozenset({"Compression"})) -> None:
    with tifffile.TiffFile(old) as before, tifffile.TiffFile(new) as after:
        assert after.byteorder == before.byteorder
        assert after.is_bigtiff == before.is_bigtiff
        assert len(after.pages) == len(before.pages)
        for page, other in zip(after.pages, before.pages, strict=True):
            tags, others = (
                {tag.name: in_full(tag.value) for tag in p.aspage().tags if tag.name not in PLACES | but}
                for p in (page, other)
            )
            assert tags == others
            if other.compression in (1, 8):
                assert page.compression == other.compression


def test_tiff_of_imagej_keeps_hyperstack_ranges_labels_and_overlays(tmp_path: Path):
    metadata = {
        "axes": "TZCYX", "unit": "um", "spacing": 0.5, "finterval": 0.1, "fps": 10.0, "mode": "composite",
        "Ranges": (0.0, 100.0, 5.0, 2000.0), "Labels": [f"slice {n}" for n in range(12)], "Info": "µm, said ImageJ",
        "LUTs": [np.arange(768, dtype=np.uint8).reshape(3, 256)] * 2, "Overlays": [b"overlay"],
    }  # fmt: skip
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((2, 3, 2, 9, 8), "uint16"), imagej=True, resolution=(10.5, 10.5), metadata=metadata)
    image, new = rewritten(path)
    assert image.pixels.shape == (2, 3, 2, 9, 8)
    assert_upside_down(new, image)
    with tifffile.TiffFile(path) as before, tifffile.TiffFile(new) as after:
        assert after.is_imagej
        assert after.series[0].axes == "TZCYX"
        assert str(after.imagej_metadata) == str(before.imagej_metadata)
        assert {"Labels", "Ranges", "LUTs", "Overlays", "Info", "unit"} <= set(after.imagej_metadata or {})
    assert_same_tags(path, new)


def test_tiff_of_ome_keeps_its_description(tmp_path: Path):
    metadata = {
        "axes": "TCYX", "Channel": {"Name": ["DAPI", "GFP"]}, "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm",
    }  # fmt: skip
    path = tmp_path / "image.ome.tif"
    tifffile.imwrite(path, noise((3, 2, 9, 8), "float32"), ome=True, metadata=metadata, compression="deflate")
    image, new = rewritten(path, tmp_path / "new.ome.tif")
    assert image.pixels.shape == (3, 2, 9, 8)
    assert_upside_down(new, image)
    with tifffile.TiffFile(path) as before, tifffile.TiffFile(new) as after:
        assert after.is_ome
        assert after.series[0].axes == "TCYX"
        assert "GFP" in (after.ome_metadata or "")
        assert after.ome_metadata == before.ome_metadata
    assert_same_tags(path, new)


@pytest.mark.parametrize(
    ("compression", "mode"),
    [*product(["tiff_lzw", "packbits", "tiff_adobe_deflate"], ["L", "RGB", "I;16"]), ("jpeg", "L"), ("jpeg", "RGB")],
)
def test_tiff_as_others_compress_it(tmp_path: Path, compression: str, mode: str):
    pixels = noise((40, 50), "uint16") if mode == "I;16" else noise((40, 50, 3), "uint8")
    picture = Image.fromarray(pixels) if mode == "I;16" else Image.fromarray(pixels).convert(mode)
    path = tmp_path / "image.tif"
    picture.save(path, compression=compression, dpi=(300, 300), tiffinfo={270: "what it is"})
    image, new = rewritten(path)
    if compression != "jpeg":
        np.testing.assert_array_equal(image.pixels, np.asarray(picture))
    assert_upside_down(new, image)
    with Image.open(new) as after:  # and what they make of ours
        assert after.mode == mode
        np.testing.assert_array_equal(np.asarray(after), np.flip(image.pixels, 0))
        assert after.info["dpi"] == (300, 300)
        assert after.tag_v2[270] == "what it is"


def test_a_colour_table_of_imagej_stays_beside_grey_values(tmp_path: Path):
    path = tmp_path / "fire.tif"
    table = noise((3, 256), "uint16")
    tifffile.imwrite(path, noise((9, 8), "uint8"), photometric="palette", colormap=table, description="ImageJ=1.53t\n")
    image, new = rewritten(path)
    assert not image.colour
    assert_upside_down(new, image)
    assert_same_tags(path, new)


def test_pages_in_one_piece_behind_a_single_directory(tmp_path: Path):
    """How stacks of more than 4 GB are written."""
    path = tmp_path / "image.tif"
    tifffile.imwrite(
        path, noise((5, 9, 8), "uint16"), photometric="minisblack", metadata={"axes": "ZYX"}, truncate=True
    )
    image, new = rewritten(path)
    assert image.pixels.shape == (5, 9, 8)
    assert_upside_down(new, image)
    assert_same_tags(path, new)


def test_pages_that_others_compress(tmp_path: Path):
    path = tmp_path / "image.tif"
    pages = [Image.fromarray(noise((40, 50), "uint16")) for _ in range(3)]
    pages[0].save(path, save_all=True, append_images=pages[1:], compression="tiff_lzw")
    image, new = rewritten(path)
    np.testing.assert_array_equal(image.pixels, np.stack([np.asarray(page) for page in pages]))
    assert_upside_down(new, image)


def test_exif_and_what_else_is_pointed_to_stays(tmp_path: Path):
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((9, 8), "uint8"), byteorder="<", extratags=[(34664, "I", 1, 0, True)])
    content = path.read_bytes()
    # tifffile does not write such a tag: turn the one before it into it, and put what it points to at the end
    before = struct.pack("<HHII", 34664, 4, 1, 0)
    assert content.count(before) == 1
    exposure = struct.pack("<HHHIIIII", 1, 0x829A, 5, 1, len(content) + 18, 0, 1, 100)  # a hundredth of a second
    path.write_bytes(content.replace(before, struct.pack("<HHII", 34665, 4, 1, len(content))) + exposure)
    _, new = rewritten(path)
    for name in (path, new):
        with tifffile.TiffFile(name) as file:
            assert file.pages[0].tags[34665].value["ExposureTime"] == (1, 100)


@pytest.mark.parametrize("compression", [5, 7, 50000])  # LZW, JPEG, Zstandard
@pytest.mark.skipif(find_spec("imagecodecs") is not None, reason="imagecodecs knows them all")
def test_a_compression_beyond_what_is_installed_is_refused(tmp_path: Path, compression: int):
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((9, 8, 3), "uint16"), photometric="rgb")
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages[0].tags["Compression"].overwrite(compression)
    with pytest.raises(ImageFileError, match="save it without compression"):
        read_image(path)


@pytest.mark.parametrize(
    ("shape", "options"),
    [((9, 8), {}), ((9, 8, 3), {"photometric": "rgb"}), ((40, 50), {"compression": "deflate", "predictor": 2})],
)
def test_stacks_that_were_written_picture_by_picture(tmp_path: Path, shape: tuple[int, ...], options: dict[str, Any]):
    frames = noise((5, *shape), "uint16")
    path = tmp_path / "image.tif"
    with tifffile.TiffWriter(path) as writer:
        for frame in frames:
            writer.write(frame, **options)
    with tifffile.TiffFile(path) as file:
        assert len(file.series) == 5  # which is why they are hard to know for a stack
    image, new = rewritten(path)
    np.testing.assert_array_equal(image.pixels, frames)
    assert image.stack
    assert_upside_down(new, image)
    assert_same_tags(path, new)


def test_a_stack_of_many_pictures_is_not_read_page_by_page_for_ever(tmp_path: Path):
    frames = noise((300, 9, 8), "uint8")
    with tifffile.TiffWriter(tmp_path / "image.tif") as writer:
        for frame in frames:
            writer.write(frame, contiguous=False)
    image, new = rewritten(tmp_path / "image.tif")
    assert image.pixels.shape == (300, 9, 8)
    assert_upside_down(new, image)


def tiff_by_hand(
    path: Path, rgb_or_other: bytes, shape: tuple[int, int], tags: dict[int, tuple[str, list[Any]]]
) -> None:
    """A TIFF of one strip of three samples of 8 bits; `tags` have the letter of struct, or "r" for fractions."""
    height, width = shape
    own = {256: [width], 257: [height], 258: [8, 8, 8], 277: [3], 278: [height], 284: [1]}
    entries = {code: ("H", values) for code, values in own.items()} | tags
    entries |= {273: ("I", [8]), 279: ("I", [len(rgb_or_other)])}
    data = rgb_or_other + b"\0" * (len(rgb_or_other) % 2)
    place = 8 + len(data) + 2 + 12 * len(entries) + 4
    directory, extra = struct.pack("<H", len(entries)), b""
    for code, (letter, values) in sorted(entries.items()):
        kind = {"H": 3, "I": 4, "r": 5}[letter]
        flat = [part for value in values for part in value] if letter == "r" else values
        raw = struct.pack(f"<{len(flat)}{'I' if letter == 'r' else letter}", *flat)
        field = raw.ljust(4, b"\0") if len(raw) <= 4 else struct.pack("<I", place + len(extra))
        extra += raw if len(raw) > 4 else b""
        directory += struct.pack("<HHI", code, kind, len(values)) + field
    path.write_bytes(b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory + b"\0" * 4 + extra)


def colours(shape: tuple[int, int]) -> np.ndarray:
    """Three slopes, so that subsampled colours are still near."""
    slope = np.add.outer(np.arange(shape[0]), np.arange(shape[1]))
    return np.stack([40 + slope, 200 - slope, 90 + slope // 2], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_jpeg_with_fewer_colours_than_brightnesses_in_a_tiff_is_written_as_rgb(tmp_path: Path, subsampling: int):
    packed, right = BytesIO(), colours((32, 48))
    Image.fromarray(right).save(packed, "JPEG", quality=95, subsampling=subsampling)
    steps = [(1, 1), (2, 1), (2, 2)][subsampling]
    range_of_bytes = [(0, 1), (255, 1), (128, 1), (255, 1), (128, 1), (255, 1)]
    tags = {259: ("H", [7]), 262: ("H", [6]), 530: ("H", list(steps)), 532: ("r", range_of_bytes)}
    tiff_by_hand(tmp_path / "image.tif", packed.getvalue(), right.shape[:2], tags)
    image, new = rewritten(tmp_path / "image.tif")
    assert np.abs(image.pixels.astype(int) - right).max() < 12
    assert_upside_down(new, image)
    with Image.open(new) as other, tifffile.TiffFile(new) as file:
        np.testing.assert_array_equal(np.asarray(other), image.pixels[::-1])
        assert file.pages[0].photometric == 2
        assert file.pages[0].tags[532].value == (0, 1, 255, 1) * 3


def as_y_cb_cr(rgb: np.ndarray) -> bytes:
    return np.asarray(Image.fromarray(rgb).convert("YCbCr")).tobytes()


@pytest.mark.parametrize("target", ["new.tif", "new.png", "new.jpg"])
@pytest.mark.parametrize("tags", [{}, {530: ("H", [1, 1]), 529: ("r", [(299, 1000), (587, 1000), (114, 1000)])}])
def test_y_cb_cr_that_is_no_jpeg_becomes_rgb(tmp_path: Path, target: str, tags: dict[int, Any]):
    right = colours((32, 48))
    data = as_y_cb_cr(right)
    tags = {259: ("H", [1]), 262: ("H", [6]), 530: ("H", [1, 1]), **tags}
    tiff_by_hand(tmp_path / "image.tif", data, right.shape[:2], tags)
    image, new = rewritten(tmp_path / "image.tif", tmp_path / target)
    assert np.abs(image.pixels.astype(int) - right).max() <= 3  # rounded twice
    with Image.open(new) as other:
        assert other.mode == "RGB"
        found = np.asarray(other)[::-1].astype(int)
    assert np.sqrt(np.mean((found - right) ** 2)) < (4 if target == "new.jpg" else 2)


@pytest.mark.parametrize(
    "tags",
    [
        {530: ("H", [2, 2])},
        {},  # which is 2 by 2, too
        {530: ("H", [1, 1]), 529: ("r", [(2126, 10000), (7152, 10000), (722, 10000)])},
        {530: ("H", [1, 1]), 532: ("r", [(16, 1), (235, 1), (128, 1), (240, 1), (128, 1), (240, 1)])},
    ],
)
def test_y_cb_cr_of_other_kinds_is_refused_in_words(tmp_path: Path, tags: dict[int, Any]):
    right = colours((32, 48))
    tags = {259: ("H", [1]), 262: ("H", [6]), **tags}
    tiff_by_hand(tmp_path / "image.tif", as_y_cb_cr(right), right.shape[:2], tags)
    with pytest.raises(ImageFileError, match="YCbCr of another kind than in JPEG; convert it to RGB"):
        read_image(tmp_path / "image.tif")


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize(
    ("dtype", "suffix"),
    [("uint8", ".png"), ("uint16", ".png"), ("uint8", ".webp"), ("uint8", ".npy"), ("uint16", ".npy")],
)
def test_colours_that_are_multiplied_by_transparency_are_divided_for_other_formats(
    tmp_path: Path, dtype: str, grey: bool, suffix: str
):
    full = np.iinfo(dtype).max
    right = (colours((32, 48)).astype(np.uint32) * full // 255).astype(dtype)
    right = right[..., :1] if grey else right
    alpha = np.broadcast_to(np.linspace(0, full, 48).astype(dtype), (32, 48))[..., None]
    multiplied = np.rint(right * (alpha / full)).astype(dtype)
    options = {"photometric": "minisblack" if grey else "rgb", "planarconfig": "contig", "extrasamples": ["assocalpha"]}
    tifffile.imwrite(tmp_path / "image.tif", np.concatenate([multiplied, alpha], axis=-1), metadata=None, **options)
    image = read_image(tmp_path / "image.tif")
    if (grey, suffix) == (True, ".npy"):
        with pytest.raises(OutputFileError, match="cannot tell its channels from a stack"):
            check_writable(tmp_path / "new.npy", image)
        return
    write_image(tmp_path / f"new{suffix}", image.pixels, like=image)
    if suffix == ".npy":
        found = np.load(tmp_path / "new.npy")[..., : right.shape[-1]]
    else:
        found = read_image(tmp_path / f"new{suffix}").pixels.reshape(right.shape)
    error = np.abs(found.astype(float) - right)
    assert (error <= 0.51 * full / np.maximum(alpha, 1) + 1)[:, 1:].all()  # half a step, enlarged
    assert (found[:, 0] == 0).all()
    write_image(tmp_path / "new.tif", image.pixels, like=image)
    large = image.enlarge(2)
    write_image(tmp_path / "large.tif", np.repeat(np.repeat(image.pixels, 2, 0), 2, 1), like=large)
    for name in ("new.tif", "large.tif"):
        with tifffile.TiffFile(tmp_path / name) as file:
            assert [int(kind) for kind in file.pages[0].extrasamples] == [1]
    np.testing.assert_array_equal(read_image(tmp_path / "new.tif").pixels, image.pixels)
