"""A result is read back before it gets its name: what a writer spoils never gets one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from round_trip import noise

from heatprior import OutputFileError
from heatprior.images import format_of, read_image, write_image
from heatprior.images.model import ImageFile

SUFFIXES = ["png", "jpg", "tif", "npy", "bmp", "webp"]


def spoilt(suffix: str, spoil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the writer of one format spoil its file."""
    kind = format_of(Path(f"a.{suffix}"))
    assert kind is not None
    name, _, own = kind.module.partition(":")
    module, function = import_module(f"heatprior.images.{name}"), f"write_{own}" if own else "write"
    write = getattr(module, function)

    def spoiling(path: Path, pixels: np.ndarray, like: ImageFile) -> None:
        write(path, pixels, like)
        spoil(path)

    monkeypatch.setattr(module, function, spoiling)


def one_byte_changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 0x55
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


@pytest.mark.parametrize(
    ("suffix", "spoil"),
    [
        (suffix, spoil)
        for spoil in (one_byte_changed, cut_short)
        for suffix in SUFFIXES
        if (suffix, spoil) != ("jpg", one_byte_changed)  # which is within its loss
    ],
)
def test_a_file_that_was_spoilt_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, spoil: Any):
    np.save(tmp_path / "image.npy", noise((40, 50), "uint8"))
    image = read_image(tmp_path / "image.npy")
    write_image(tmp_path / f"whole.{suffix}", image.pixels, like=image)  # as long as nothing spoils it
    before = sorted(tmp_path.iterdir())
    spoilt(suffix, spoil, monkeypatch)
    with pytest.raises(OutputFileError, match=r"choose \.npy, or another format") as refusal:
        write_image(tmp_path / f"new.{suffix}", image.pixels, like=image)
    assert str(refusal.value).startswith(f"cannot write {tmp_path / f'new.{suffix}'}: ")
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.iterdir()) == before


def test_other_pixels_in_a_jpeg_are_more_than_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(tmp_path / "image.npy", noise((40, 50), "uint8"))
    image = read_image(tmp_path / "image.npy")
    write_image(tmp_path / "other.jpg", image.pixels[::-1], like=image)
    spoilt("jpg", lambda path: path.write_bytes((tmp_path / "other.jpg").read_bytes()), monkeypatch)
    with pytest.raises(OutputFileError, match="did not keep the result"):
        write_image(tmp_path / "new.jpg", image.pixels, like=image)


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 1, 3), (9, 7, 3), (8, 8), (3, 17)])
def test_the_loss_of_a_jpeg_is_within_its_bound(tmp_path: Path, shape: tuple[int, ...]):
    """The worst there is: every pixel at random, or black or white."""
    for values in (noise(shape, "uint8"), 255 * (noise(shape, "uint8") % 2)):
        np.save(tmp_path / "image.npy", np.resize(values, (16, 16, 3)) if shape[-1] == 3 else values)
        image = read_image(tmp_path / "image.npy")
        write_image(tmp_path / "new.jpg", image.pixels, like=image)
