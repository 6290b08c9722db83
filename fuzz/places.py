"""Outputs that should not be: inputs, what contains them or lies in them, stores, links, and names like our own."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import NamedTuple

SIDE = 16
STORES = ("in.zarr", "up.zarr", "up.zarr/x.zarr", "old.zarr", "images/s.zarr")
LINKS = {
    "link": "in.zarr",
    "link.zarr": "old.zarr",
    "link.png": "image.png",
    "dangling.zarr": "nowhere.zarr",
    "dangling.png": "nowhere.png",
    "there": "images/sub",
    "images/back": "..",
    "y/into.zarr": "../in.zarr",
    "loop": "loop",
}
TEXTS = (
    "raw.zarr/notes.txt",
    "up.zarr/notes.txt",
    "file.zarr",
    "run/config.json",
    "run/log.csv",
    "run/.log-book",
    "y/text.txt",
    ".out.zarr-heatprior/journal",
    ".out.zarr-heatprior/store/zarr.json",
    ".out.zarr-heatprior.old",
    ".out.zarr-heatprior.journal",
    ".new.png-heatprior/new.png",
    ".new.png-heatprior/.new.png-heatprior",
    ".new-heatprior.json",
    ".out-heatprior",
)
PICTURES = (
    "image.png",
    "images/a.png",
    "images/sub/b.png",
    "old.png",
    ".out-heatprior.png",
    ".old.png-heatprior/c.png",
)
INPUTS = (
    *("image.png", "images", "images/a.png", "images/sub", "images/sub/b.png", "link.png", "there", "there/b.png"),
    *(
        "in.zarr",
        "link",
        "up.zarr",
        "up.zarr/x.zarr",
        "raw.zarr/scan.tif",
        "raw.zarr",
        "old.zarr",
        "link.zarr",
        "old.png",
    ),
    *("y/into.zarr", "images/back/image.png", ".out-heatprior.png", ".old.png-heatprior/c.png", "dct3.safetensors"),
    *("images/back/images/back/in.zarr", "dangling.zarr", "loop", ".", "images/s.zarr"),
)
OUTPUTS = (
    *INPUTS,
    *(
        "out.png",
        "out.zarr",
        "new.png",
        "new",
        "new.json",
        "old.json",
        "run",
        "dangling.png",
        "file.zarr",
        "images/new",
    ),
    *(
        "in.zarr/out.zarr",
        "link/in.zarr",
        "y/../in.zarr/in2.zarr",
        "y/into.zarr/0/x.zarr",
        "images/new.png",
        "there/new",
    ),
    *(
        "images/back",
        "images/back/new.zarr",
        "images/back/in.zarr/x.zarr",
        "raw.zarr/new.zarr",
        "up.zarr/new.zarr",
        "..",
    ),
    *("prior.npy", "prior.png", "in.zarr/c/0/0", "in.zarr/zarr.json", "link.zarr/new.zarr", "image.png/new.png"),
)
DETOURS = ("", "", "", "./", "y/../", "images/../", "images/sub/../../", "there/../../", "images/back/")
SMALL = ["--prior", "dct3.safetensors"]
QUICK = [*SMALL, "--sigma", "10"]


class Places(NamedTuple):
    """Files and links, a command over them, and which files may not change."""

    files: dict[str, bytes]
    links: dict[str, str]
    arguments: list[str]
    kept: tuple[str, ...]


def store(pixels: bytes, version: int) -> dict[str, bytes]:
    """A zarr array of SIDE×SIDE bytes in one chunk."""
    if version == 2:
        about = {"zarr_format": 2, "shape": [SIDE, SIDE], "chunks": [SIDE, SIDE], "dtype": "|u1", "order": "C"}
        return {
            ".zarray": json.dumps(about | dict.fromkeys(("compressor", "filters", "fill_value"))).encode(),
            "0.0": pixels,
        }
    about = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [SIDE, SIDE],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
        "attributes": {},
    }
    return {"zarr.json": json.dumps(about).encode(), "c/0/0": pixels}


def odd_places(random: Random, picture: bytes, scan: bytes, prior: bytes) -> Places:
    """A command whose output may be anything that is there, by any name of it, with `--force` more often than not."""
    pixels = bytes(random.choices(range(90, 130), k=SIDE * SIDE))
    files = dict.fromkeys(PICTURES, picture) | dict.fromkeys(TEXTS, b"precious") | {"raw.zarr/scan.tif": scan}
    for number, name in enumerate(STORES):
        files |= {f"{name}/{part}": content for part, content in store(pixels, 2 + number % 2).items()}
    files |= {"prior.npy": prior, "prior.png": prior, "old.json": b"{}"}
    line = _line(random)
    line += ["--force"] if random.random() < 0.8 else []
    line += ["--skip-existing"] if random.random() < 0.05 and line[0] in ("denoise", "upscale") else []
    return Places(files, dict(LINKS), line, _kept(files, line))


def _kept(files: dict[str, bytes], line: list[str]) -> tuple[str, ...]:
    """All files but those that `--force` may replace: pictures and whole stores where an output is, if no input."""
    values = dict(pairwise(line))
    inputs = [_real(name) for name in (*line[1:3], values.get("--mask"), values.get("--validation")) if name]
    outputs = [_real(values[option]) for option in ("-o", "--error", "--picture") if option in values]
    whole = [_real(name) for name in STORES if name != "up.zarr"]

    def may_change(name: str) -> bool:
        place = tuple(name.split("/"))
        replaced = name not in TEXTS and any(place[: len(output)] == output for output in outputs)
        store = next((one for one in whole if place[: len(one)] == one), None)
        in_store = store is None or store in outputs
        return replaced and in_store and not any(place[: len(given)] == given for given in inputs)

    return tuple(name for name in files if "--force" not in line or not may_change(name))


def _real(path: str) -> tuple[str, ...]:
    """The parts of a path without links and `..`, told from the table of links alone."""
    left, found = path.split("/")[::-1], list[str]()
    for _ in range(99):
        if not left:
            break
        part = left.pop()
        if part == "..":
            found = found[:-1] if found and found[-1] != ".." else [*found, ".."]
        elif part not in ("", "."):
            target = LINKS.get("/".join([*found, part]))
            left += [] if target is None else target.split("/")[::-1]
            found += [part] if target is None else []
    return tuple(found)


def _line(random: Random) -> list[str]:
    def given() -> str:
        return random.choice(DETOURS) + random.choice(INPUTS)

    def output() -> str:
        return random.choice(DETOURS) + random.choice(OUTPUTS)

    command = random.choice(
        ("denoise",) * 6 + ("upscale", "inpaint", "deblur", "noise", "evaluate", "train", "sample", "show")
    )
    line = [command, given()]
    if command in ("sample", "show"):
        line[1] = random.choice(("prior.npy", "prior.png", "patch7", "y/../prior.png"))
        line += ["--count", "1", "--sigma", "0.1"] if command == "sample" else []
    if command in ("denoise", "upscale", "inpaint", "deblur"):
        line += [given()] if random.random() < 0.1 else []
        line += QUICK
        line += ["--compare"] if random.random() < 0.05 else []
    if command == "denoise":
        line += ["--error", output()] if random.random() < 0.1 else []
    line += {"inpaint": ["--mask", given()], "deblur": ["--gaussian", "1"]}.get(command, [])
    if command == "noise":
        line += ["--noise", "constant"]
        line += ["--picture", output()] if random.random() < 0.7 else []
    if command == "evaluate":
        line += [*SMALL, "--sigma", "25", "--steps", "1", "--limit", "1"]
    if command == "train":
        line += ["--size", "3", "--components", "9", "--batch", "20", "--steps", "1"]
        line += ["--validation", given()] if random.random() < 0.3 else []
    return [*line, "-o", output()] if command != "noise" or random.random() < 0.5 else line
