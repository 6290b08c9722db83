"""The images of the paper: BSDS500 to train and to choose with, BSD68 to report on, as lists of files.

They are looked for in the folder that is given, else in HEATPRIOR_DATA, else in the cache of `python -m paper.bsds500`:

    bsds500/train, bsds500/test    400 colour images; the training set
    bsds500/val                    the other 100; 68 of them are BSD68, the rest (validation.txt) is for every choice
    bsd68                          the 68 grey images that the denoising literature reports on
"""

from __future__ import annotations

import os
from pathlib import Path

from heatprior.errors import HeatpriorError
from heatprior.images import image_files

VARIABLE = "HEATPRIOR_DATA"
CACHE_NAME = "heatprior"
VALIDATION_STEMS = frozenset(Path(__file__).with_name("validation.txt").read_text(encoding="utf-8").split())


class DataMissingError(HeatpriorError, OSError):
    """BSDS500 is not there, or not as it should be."""


def data_folder(given: Path | None = None) -> Path:
    """Where the images are looked for: `given`, else what HEATPRIOR_DATA says, else the cache."""
    if given is not None:
        return given
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    return cache_folder()


def cache_folder() -> Path:
    """Where `python -m paper.bsds500` puts what it fetches, unless given another folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / CACHE_NAME


def training(data: Path | None = None) -> list[Path]:
    """The 400 files of the paper's training set: BSDS500 train and test."""
    return sorted([*_files("bsds500/train", data), *_files("bsds500/test", data)], key=lambda path: path.name)


def validation(data: Path | None = None) -> list[Path]:
    """The 32 files of BSDS500 val that are not in BSD68: every choice is made on these."""
    chosen = [path for path in _files("bsds500/val", data) if path.stem in VALIDATION_STEMS]
    if not chosen:
        raise _missing("the validation images of bsds500/val", data)
    return chosen


def bsd68(data: Path | None = None) -> list[Path]:
    """The 68 grey files of BSD68: for reporting only."""
    return _files("bsd68", data)


def _files(name: str, data: Path | None) -> list[Path]:
    folder = data_folder(data) / name
    files = image_files(folder) if folder.is_dir() else []
    if not files:
        raise _missing(name, data)
    return files


def _missing(what: str, data: Path | None) -> DataMissingError:
    return DataMissingError(
        f"no {what} in {data_folder(data)}; fetch BSDS500 with the command `python -m paper.bsds500`, or set "
        f"{VARIABLE} to a folder that holds it"
    )
