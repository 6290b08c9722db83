"""One prior, one safetensors file: named arrays plus a card, never pickle.

The header of the file carries `format` (always "heatprior"), `version` of the layout, `kind` of the prior and the
`card`: a JSON object that says how the prior was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from heatprior.errors import PriorFileError
from heatprior.files import replacing

FORMAT = "heatprior"
VERSION = "1"
TENSORS = {"patch": {"filters", "log_weights", "reach"}}  # what a file of each kind holds


@dataclass(frozen=True)
class PriorFile:
    """What a file holds: the kind of the prior, its arrays and its card."""

    kind: str
    tensors: Mapping[str, np.ndarray[Any, Any]]
    card: Mapping[str, Any]


def write_prior_file(path: Path, contents: PriorFile) -> None:
    """Write `contents`; the file appears only when it is whole."""
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "kind": contents.kind,
        "card": json.dumps(dict(contents.card), sort_keys=True),
    }
    with replacing(path) as temporary:
        try:
            save_file(dict(contents.tensors), str(temporary), metadata=metadata)
        except SafetensorError as error:  # its word for a full disk
            raise OSError(str(error)) from error


def read_prior_file(path: Path) -> PriorFile:
    """Read a prior; anything else, damaged files included, is refused with the reason."""
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise PriorFileError(f"cannot read {path}: {what}; give the path of a prior (.safetensors)")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_header(path, metadata)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, AttributeError) as error:  # the last two: types that numpy lacks
        raise PriorFileError(
            f"{path} is not a prior, or is damaged or cut short ({error}); "
            "get a fresh copy, or make one with prior.save"
        ) from error
    missing = TENSORS[metadata["kind"]] - tensors.keys()
    if missing:
        raise PriorFileError(f"{path} lacks {', '.join(sorted(missing))}; get a fresh copy")
    return PriorFile(metadata["kind"], tensors, json.loads(metadata["card"]))


def _check_header(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise PriorFileError(f"{path} is a safetensors file but not a prior of heatprior; make one with prior.save")
    if metadata.get("version") != VERSION:
        raise PriorFileError(
            f"{path} has layout version {metadata.get('version')} but this heatprior reads {VERSION}; update heatprior"
        )
    if metadata.get("kind") not in TENSORS:
        raise PriorFileError(f"{path} holds a prior of unknown kind {metadata.get('kind')!r}; update heatprior")
    try:
        card = json.loads(metadata.get("card", ""))
    except json.JSONDecodeError as error:
        raise PriorFileError(f"{path} has a card that is not JSON; get a fresh copy") from error
    if not isinstance(card, dict):
        raise PriorFileError(f"{path} has a card that is not a JSON object; get a fresh copy")
