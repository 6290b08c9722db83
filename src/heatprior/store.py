"""One prior, one safetensors file: named arrays plus a card, never pickle.

The header of the file carries, under the key "heatprior", one JSON object: the `version` of the layout, the `kind` of
the prior, and the `card`, which says how it was made. (One key, since safetensors writes several in random order.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.files import replacing
from heatprior.kinds import KINDS

FORMAT = "heatprior"
VERSION = 1


@dataclass(frozen=True)
class PriorFile:
    """The contents of a file: the kind of the prior, its arrays and its card."""

    kind: str
    tensors: Mapping[str, np.ndarray[Any, Any]]
    card: Mapping[str, Any]

    def arrays(self, *names: str) -> list[np.ndarray[Any, Any]]:
        """The arrays of these names; raises if the file lacks any of them."""
        missing = sorted(set(names) - self.tensors.keys())
        if missing:
            raise PriorFileError(f"the file lacks {', '.join(missing)}; get a fresh copy")
        return [self.tensors[name] for name in names]


def write_prior_file(path: Path, contents: PriorFile) -> None:
    """Write `contents`; the file appears only when it is complete. The same contents give the same bytes."""
    header = {"version": VERSION, "kind": contents.kind, "card": dict(contents.card)}
    try:
        text = json.dumps(header, sort_keys=True)
    except (TypeError, ValueError) as error:
        why = f"the card cannot be written as JSON: {error}; keep to text, numbers and lists"
        raise InvalidInputError(why) from error
    # Contiguous: the file takes memory as it is.
    tensors = {name: np.ascontiguousarray(array) for name, array in contents.tensors.items()}
    with replacing(path) as temporary:  # not save_file, which writes to a hidden file of its own: a kill would leave it
        temporary.write_bytes(save(tensors, metadata={FORMAT: text}))


def read_prior_file(path: Path) -> PriorFile:
    """Read the file of a prior; raises with the reason if it is anything else, or damaged."""
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "it is no file" if path.exists() else "there is no such file"
        raise PriorFileError(f"cannot read {path}: {what}; give the path of a prior (.safetensors)")
    try:
        with safe_open(str(path), framework="numpy") as file:
            header = _read_header(path, file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, AttributeError) as error:  # the last two: types that numpy lacks
        raise PriorFileError(
            f"{path} is not a prior, or is damaged or cut short ({error}); get a fresh copy or use prior.save"
        ) from error
    return PriorFile(header["kind"], tensors, header["card"])


def _read_header(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if FORMAT not in metadata:
        raise PriorFileError(f"{path} is a safetensors file but not a prior of heatprior; make one with prior.save")
    try:
        header = json.loads(metadata[FORMAT])
    except (ValueError, RecursionError) as error:
        raise PriorFileError(f"{path} has a header that is not JSON; get a fresh copy") from error
    if not isinstance(header, dict) or not isinstance(header.get("card"), dict):
        raise PriorFileError(f"{path} has a header without a card; get a fresh copy")
    if header.get("version") != VERSION:
        raise PriorFileError(
            f"{path} has layout version {header.get('version')} but this heatprior reads {VERSION}; update heatprior"
        )
    if header.get("kind") not in KINDS:
        raise PriorFileError(f"{path} holds a prior of unknown kind {header.get('kind')!r}; update heatprior")
    return header
