"""Odd command lines: the options that the commands have, with values that nobody should give."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from heatprior.cli import application

COMMANDS = ("denoise", "noise", "evaluate", "sample", "show", "train")
PATHS = (
    "image.png",
    "images",
    "nowhere.png",
    "nowhere/at/all.png",
    "notes.txt",
    ".",
    "images/..",
    "-",
    "dct3.safetensors",
    "x" * 300,
)
OUTPUTS = (
    "out.png",
    "out.npy",
    "out",
    "out.json",
    "images",
    "image.png",
    "nowhere/out.png",
    "out.xyz",
    ".png",
    "é\udc80.png",
)
NUMBERS = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "-0.0",
    "1e-300",
    "1e300",
    "1e9",
    "0.1",
    "25",
    "x",
    "1,5",
    "٣",
    "0x10",
    " 7 ",
)
COUNTS = ("0", "-1", "1", "2", "1.5", "nan", "x", "99999999999999999999", "٣", "1_0", "²")
WORDS = (
    "",
    " ",
    "mixture",
    "patch7",
    "nonsense",
    "--",
    "-",
    "--force",
    "best",
    "auto",
    "16x16",
    "0x0",
    "1x",
    "💥",
    "\n",
    "x" * 5000,
)
WORK = {  # so that what is accepted is soon done; the last of an option that comes twice counts
    "denoise": ["--prior", "dct3.safetensors"],
    "evaluate": ["--prior", "dct3.safetensors", "--steps", "1", "--limit", "1"],
    "sample": ["--count", "1", "--size", "16x16"],
    "show": ["--filters", "1"],
    "train": ["--steps", "1", "--batch", "20", "--size", "3", "--checkpoint", "9"],
    "noise": [],
}


@cache
def _options(command: str) -> list[Any]:
    import typer.main  # noqa: PLC0415

    group: Any = typer.main.get_command(application())
    return [one for one in group.commands[command].params if one.param_type_name == "option"]


def odd_command_line(random: Random) -> tuple[list[str], list[str]]:
    """A command with a few of its options, each with a value that may or may not suit it; and its inputs."""
    if random.random() < 0.05:
        return [*random.choices((*COMMANDS, *WORDS), k=random.randint(1, 2)), "--nonsense"], []
    command = random.choice(COMMANDS)
    inputs = random.choices(PATHS, k=random.choice((0, 1, 1, 1, 2)))
    line = [command, *inputs]
    if random.random() < 0.7:
        line += ["-o", random.choice(OUTPUTS)]
    for option in random.sample(_options(command), k=random.randint(0, 3)):
        line.append(random.choice(option.opts))
        if not option.is_flag or random.random() < 0.1:
            line.append(_value(random))
    known = {name for option in _options(command) for name in option.opts}
    work = WORK[command] if random.random() < 0.9 or command == "train" else []
    for name, value in zip(work[::2], work[1::2], strict=True):
        line += [name, value] if name in known else []
    return line, inputs


def _value(random: Random) -> str:
    return random.choice(random.choice((PATHS, OUTPUTS, NUMBERS, NUMBERS, COUNTS, COUNTS, WORDS)))
