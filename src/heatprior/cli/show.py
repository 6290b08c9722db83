"""`heatprior show`: what a prior is, as a short card, and as a picture: filters and potentials, or shapes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from heatprior.arrays import FloatArray

MOST_NUMBERS = 48  # of a table that is printed whole
EXAMPLES = """\b
Examples:
  heatprior show patch7
  heatprior show mine.safetensors --filters 24 -o mine.pdf
"""


def show(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="A shipped prior by its name, or the path of a prior.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .pdf or .svg.  [default: PRIOR.png]"),
    ] = None,
    filters: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Draw at most so many filters, evenly spaced by norm, or shapes.  [default: 112, 12]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Tell what a prior is, and draw its filters and potentials, or the shapes of a mixture.

    The filters come in the order of their norms, each with the values of its black and white, and below it the
    potentials −log ψ at five noise levels. The shapes come most frequent first, each with its leading axes and the
    weights of its contrasts.
    """
    from heatprior import load
    from heatprior.cli.outputs import check_output
    from heatprior.errors import InvalidInputError
    from heatprior.kinds import KINDS
    from heatprior.pictures.figures import SUFFIXES

    output = output or Path(f"{Path(prior).stem or 'prior'}.png")
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot write {output}: it must be a name that ends in {', '.join(SUFFIXES)}")
    check_output(output, force=force)
    loaded = load(prior)
    facts = loaded.facts()
    KINDS[loaded.kind].drawing()(loaded, output, filters)
    for name, value in facts.items():
        typer.echo(f"{_one_line(name):<12}{_one_line(_in_words(value))}")
    typer.echo(f"wrote {output}")


def _in_words(value: object) -> str:
    """An entry of a card as a person would write it: lists with commas, objects as names with their values.

    Of long tables it tells the shape and the range.
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_in_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        table = _as_table(value)
        if table is not None and table.size > MOST_NUMBERS:
            shape = "×".join(map(str, table.shape))
            return f"{shape} numbers from {table.min():.4g} to {table.max():.4g}"
        nested = any(isinstance(part, list | tuple) for part in value)
        return (" | " if nested else ", ").join(_in_words(part) for part in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _as_table(value: object) -> FloatArray | None:
    """Nested lists of numbers as an array, if they are that."""
    import numpy as np

    try:
        return np.array(value, np.float64)
    except (OverflowError, TypeError, ValueError):
        return None


def _one_line(value: object) -> str:
    """Text from a file of unknown origin, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))
