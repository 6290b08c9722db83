"""A case: files, and a command line over them, from the name of a target and a number alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.command_lines import odd_command_line
from fuzz.meanings import PADDED, Meaning, colours, gaps, turns
from fuzz.mutations import mutated
from fuzz.places import odd_places, store
from fuzz.seeds import MAKERS, Seed, seeds_of

PRIOR = ("--prior", "dct3.safetensors")  # small: the work is in reading and writing
IN_UNITS = ("fits", "dicom", "nifti")  # formats that may hold floats of any scale
FAST = ("--sigma", "10")
PLAIN = ("tiff", "npy", "bmp", "fits", "dicom", "nifti")  # formats of pixels that are not packed


class Case(NamedTuple):
    """What a folder holds, the command that is run in it, and what is to come of it if it succeeds."""

    files: dict[str, bytes]
    arguments: list[str]
    outputs: tuple[str, ...] = ()
    kept: tuple[str, ...] | None = None  # files that may not change; None: all of them
    sound: tuple[str, ...] = ()  # outputs that must be there whatever else fails: those of files that are not mutated
    links: tuple[tuple[str, str], ...] = ()  # names, and where they lead
    padded: tuple[str, ...] = ()  # files that are made PADDED bytes long
    meaning: Meaning | None = None  # what is expected of the outputs, if that is known

    def write(self, folder: Path) -> None:
        """Make the files and the links."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if name in self.padded:
                os.truncate(path, PADDED)
        for name, place in self.links:
            (folder / name).symlink_to(place)


@cache
def _seeds(target: str) -> list[Seed]:
    return seeds_of(target)


@cache
def small_prior() -> bytes:
    """The prior of the cases that are not about priors."""
    return _seeds("prior")[0].content


def _whole_image_priors() -> list[Seed]:
    """Those of which an image of the size that they choose themselves takes half a minute to draw."""
    return _seeds("prior")[2:]


def case_of(target: str, number: int) -> Case:
    """The case; the same for the same target and number."""
    random = Random(f"{target}/{number}")
    case = _MAKERS.get(target, _image)(target, random)
    case.files["dct3.safetensors"] = small_prior()
    return case


def sound_cases() -> list[Case]:
    """Cases without any fault, of every command: all succeed."""
    picture, map_of_noise = _seeds("png")[1].content, _seeds("map")[0].content
    cases = [
        Case({"image.png": picture}, ["denoise", "image.png", "-o", "out.png", *FAST, *PRIOR], ("out.png",)),
        Case({"image.png": picture}, ["noise", "image.png", "--noise", "constant"]),
        Case({"images/image.png": picture}, ["evaluate", "images", "--sigma", "25", "--steps", "1", *PRIOR]),
        Case(
            {"image.png": picture, "map.npy": map_of_noise},
            ["denoise", "image.png", "-o", "out.png", "--sigma", "map.npy", *PRIOR],
            ("out.png",),
        ),
    ]
    for seed in _seeds("prior"):
        files = {"image.png": picture, "prior.safetensors": seed.content}
        arguments = ["denoise", "image.png", "-o", "out.png", *FAST, "--prior", "prior.safetensors"]
        cases.append(Case(files, arguments, ("out.png",)))
        size = ["--size", "16x16"] if seed in _whole_image_priors() else []
        arguments = ["sample", "prior.safetensors", "-o", "out.npy", "--sigma", "0.1", "--count", "1", *size]
        cases.append(Case(files, arguments))
    for target in TARGETS:
        if target not in _MAKERS:
            for suffix, content in _seeds(target):
                arguments = ["denoise", f"image{suffix}", "-o", f"out{suffix}", *FAST, *PRIOR]
                white = ["--white", "65535"] if target in IN_UNITS else []
                cases.append(Case({f"image{suffix}": content}, [*arguments, *white], (f"out{suffix}",)))
    if find_spec("zarr") and find_spec("distributed"):
        files = {f"in.zarr/{name}": content for name, content in store(bytes(range(256)), 3).items()}
        cases.append(Case(files, ["denoise", "in.zarr", "-o", "out.zarr", *FAST, *PRIOR]))
    for case in cases:
        case.files["dct3.safetensors"] = small_prior()
    return cases


def _mutant(target: str, random: Random) -> Seed:
    return _mutation(random.choice(_seeds(target)), target, random)


def _mutation(seed: Seed, target: str, random: Random) -> Seed:
    return seed._replace(content=mutated(target, seed.content, [other.content for other in _seeds(target)], random))


def _image(target: str, random: Random) -> Case:
    """A mutated image denoised, alone or among others; sometimes written in another format; or only looked at."""
    suffix, content = _mutant(target, random)
    name, draw = f"image{suffix}", random.random()
    if draw < 0.1:
        files = {f"images/{name}": content, "images/sound.png": _seeds("png")[1].content}
        outputs = (f"out/{name}", "out/sound.png")
        return Case(files, ["denoise", "images", "-o", "out", *FAST, *PRIOR], outputs, sound=outputs[1:])
    if draw < 0.15:
        return Case({f"images/{name}": content}, ["evaluate", "images", "--sigma", "25", "--steps", "1", *PRIOR])
    if draw < 0.155:
        return Case({name: content}, ["noise", name, "--noise", "constant"])
    output = f"out{suffix if draw < 0.85 else random.choice(('.npy', '.tif', '.png'))}"
    white = ["--white", "65535"] if target in IN_UNITS and random.random() < 0.7 else []
    return Case({name: content}, ["denoise", name, "-o", output, *FAST, *PRIOR, *white], (output,))


def _prior(target: str, random: Random) -> Case:
    """A mutated prior, denoised with, drawn from."""
    seed = random.choice(_seeds(target))
    content = _mutation(seed, target, random).content
    files = {"prior.safetensors": content, "image.png": _seeds("png")[1].content}
    if random.random() < 0.8:
        arguments = ["denoise", "image.png", "-o", "out.png", *FAST, "--prior", "prior.safetensors"]
        return Case(files, arguments, ("out.png",))
    size = ["--size", "16x16"] if random.random() < 0.5 or seed in _whole_image_priors() else []
    return Case(files, ["sample", "prior.safetensors", "-o", "out.npy", "--sigma", "0.1", "--count", "1", *size])


def _map(target: str, random: Random) -> Case:
    """A mutated map of the noise level."""
    suffix, content = _mutant(target, random)
    files = {f"map{suffix}": content, "image.png": _seeds("png")[1].content}
    arguments = ["denoise", "image.png", "-o", "out.png", "--sigma", f"map{suffix}", *PRIOR]
    return Case(files, arguments, ("out.png",))


def _command_line(_: str, random: Random) -> Case:
    files = {"image.png": _seeds("png")[1].content, "images/image.tif": _seeds("tiff")[0].content, "notes.txt": b"text"}
    line, inputs = odd_command_line(random)
    return Case(files, line, kept=tuple(name for name in files if {name, name.split("/")[0]} & set(inputs)))


def _places(_: str, random: Random) -> Case:
    picture, scan = _seeds("png")[1].content, _seeds("tiff")[0].content
    files, links, line, kept = odd_places(random, picture, scan, small_prior())
    return Case(files, line, kept=kept, links=tuple(links.items()))


def _meaning(_: str, random: Random) -> Case:
    meaning = random.choice((colours, gaps, turns))(random)
    return Case(dict(meaning.files), meaning.arguments, meaning.outputs, meaning=meaning)


def _padded(_: str, random: Random) -> Case:
    """A sound or mutated image in a file that is far longer; whatever comes of it takes little memory.

    What is not packed stays sound: a mutant may declare pixels that the padding then holds.
    """
    target = random.choice([target for target in TARGETS if target not in _MAKERS])
    is_sound = target in PLAIN or random.random() < 0.5
    suffix, content = random.choice(_seeds(target)) if is_sound else _mutant(target, random)
    name, output = f"image{suffix}", f"out{suffix}"
    return Case({name: content}, ["denoise", name, "-o", output, *FAST, *PRIOR], (output,), padded=(name,))


_MAKERS: dict[str, Callable[[str, Random], Case]] = {
    "prior": _prior, "map": _map, "arguments": _command_line, "places": _places, "meanings": _meaning,
    "padded": _padded,
}  # fmt: skip
PACKAGES = {"fits": "astropy", "dicom": "pydicom", "nifti": "nibabel"}
TARGETS = (
    *(target for target in MAKERS if find_spec(PACKAGES.get(target, "numpy"))),
    "arguments",
    "places",
    "meanings",
    "padded",
)
