"""Fetching BSDS500 from its public address, and making BSD68 from it.

The images are checked by name and by hash, and what does not match is thrown away. The hash of the archive itself does
not matter: it may have been repacked.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import numpy as np
from tqdm import tqdm

from heatprior.errors import OutputFileError
from paper.bsds500 import VALIDATION_STEMS, VARIABLE, DataMissingError

# Matlab's rgb2gray, with which the BSD68 files were made: its rounded values are theirs, pixel by pixel.
MATLAB_LUMA = np.array([0.298936021293776, 0.587043074451121, 0.114020904255103])
REMEDY = f"set {VARIABLE} to the folder that holds bsds500/train, val and test"
PATIENCE = 60.0  # seconds without an answer
PIECE = 1 << 20  # bytes
LARGEST_FILE = 10_000_000  # bytes of one image; the true ones are below 200 kB


@dataclass(frozen=True)
class Archive:
    """An archive of images: its address, how members are named, and the digest of each of its folders.

    The digest of a folder is the sha256 of lines `name sha256`, sorted by name; that of BSD68 is over pixels.
    """

    url: str
    member: re.Pattern[str]
    digests: Mapping[str, str]
    bsd68: str


BSDS500 = Archive(
    url="http://www.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz",
    member=re.compile(r"(?:\./)?BSR/BSDS500/data/images/(train|val|test)/(\d+\.jpg)"),
    digests={
        "train": "d11b47a6ba844165ee2b83967b6ad02642713627e839c1d81ec319b256e4384e",
        "val": "9d061d5664e72c068ecf3f5652d31aaa8a4bc4b2cfcf0aa84ce65740ddc7603c",
        "test": "4c86e4cce33a730f38bc8ca8405f310af5b69fa90f12ebaf4112d5f56081d774",
    },
    bsd68="2e37a02ad4b84de9ca0f7870c4601b0293e6a4aa02bb3dd2fa3f108949c9e9fe",
)


def fetch(folder: Path, archive: Archive = BSDS500, *, progress: bool = False) -> None:
    """Put `bsds500/{train,val,test}` and `bsd68` into `folder`, checked, or leave nothing behind.

    A `bsd68` that is there is kept; a `bsds500` that is there is refused before anything is downloaded.
    """
    if (folder / "bsds500").exists():
        raise OutputFileError(f"{folder / 'bsds500'} is there but lacks images; move it away, then fetch again")
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as name:
            work = Path(name)
            packed = _download(archive.url, work, progress=progress)
            _unpack(packed, work / "bsds500", archive)
            _check(work / "bsds500", archive)
            _make_bsd68(work / "bsds500" / "val", work / "bsd68", archive)
            for part in ("bsds500", "bsd68"):
                if not (folder / part).exists():
                    (work / part).rename(folder / part)
    except (DataMissingError, OutputFileError):
        raise
    except OSError as error:
        reason = f"cannot write to {folder}: {error.strerror or error}; choose another folder"
        raise OutputFileError(reason) from error
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # fails unless it is empty


def folder_digest(files: Mapping[str, bytes]) -> str:
    """The sha256 of lines `name sha256`, sorted by name."""
    lines = (f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _download(url: str, folder: Path, *, progress: bool) -> Path:
    packed = folder / "archive.tgz"
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            total = int(answer.headers.get("Content-Length") or 0)
            bar = tqdm(total=total, unit="B", unit_scale=True, leave=False, disable=not progress)
            with bar, packed.open("wb") as file:
                while piece := answer.read(PIECE):
                    file.write(piece)
                    bar.update(len(piece))
            return packed
    except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, HTTPError):
            error.close()  # the answer that says why
        raise DataMissingError(
            f"cannot fetch {url} ({type(error).__name__}); check the network, or get BSDS500 elsewhere and {REMEDY}"
        ) from error


def _unpack(packed: Path, folder: Path, archive: Archive) -> None:
    """Take the images, and only these; no path in the archive is trusted."""
    try:
        with tarfile.open(packed) as tar:
            for member in tar:
                named = archive.member.fullmatch(member.name)
                content = tar.extractfile(member) if named and member.isreg() and member.size < LARGEST_FILE else None
                if named and content:
                    target = folder / named[1] / named[2]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read())
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _wrong(archive, "it is not an archive, or is damaged or cut short") from error


def _check(folder: Path, archive: Archive) -> None:
    for split, expected in archive.digests.items():
        files = {path.name: path.read_bytes() for path in (folder / split).glob("*")}
        if folder_digest(files) != expected:
            raise _wrong(archive, f"its {len(files)} images of {split} are not those of the January 2013 release")


def _make_bsd68(val: Path, folder: Path, archive: Archive) -> None:
    """The images of `val` that are not for validation, as grey PNGs test001.png, test002.png, … in order of name."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    folder.mkdir()
    pixels = hashlib.sha256()
    chosen = sorted(path for path in val.iterdir() if path.stem not in VALIDATION_STEMS)
    for number, path in enumerate(chosen, start=1):
        with Image.open(path) as image:
            grey = np.rint(np.asarray(image.convert("RGB")) @ MATLAB_LUMA).astype(np.uint8)
        pixels.update(grey.tobytes())
        Image.fromarray(grey).save(folder / f"test{number:03}.png")
    if pixels.hexdigest() != archive.bsd68:
        raise _wrong(archive, "the grey images made from it are not BSD68, pixel by pixel; this JPEG decoder differs")


def _wrong(archive: Archive, reason: str) -> DataMissingError:
    return DataMissingError(f"what {archive.url} gave was thrown away: {reason}; get BSDS500 elsewhere and {REMEDY}")
