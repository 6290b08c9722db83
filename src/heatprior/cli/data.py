"""`heatprior data`: where the images of the paper are; downloads them if they are missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  heatprior data              say where BSDS500 is; download it into the cache if it is missing
  heatprior data --to DIR     the same for another folder; then set HEATPRIOR_DATA to it
"""


def data(
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to use.  [default: HEATPRIOR_DATA, or the cache]"),
    ] = None,
) -> None:
    """Find the images of the paper, or download them.

    Says where BSDS500 and BSD68 are, and downloads them if they are missing.

    The download (about 70 MB) is checked file by file. BSDS500 is for research and education; please cite Arbeláez,
    Maire, Fowlkes and Malik, PAMI 2011.
    """
    from heatprior.data import bsds500
    from heatprior.data.bsds500.fetch import fetch
    from heatprior.errors import DataMissingError

    folder = bsds500.data_folder(to)
    try:
        bsds500.training(folder), bsds500.validation(folder)
    except DataMissingError:
        fetch(folder, progress=sys.stderr.isatty())
    counts = {
        "training": len(bsds500.training(folder)),
        "validation": len(bsds500.validation(folder)),
        "BSD68": len(bsds500.bsd68(folder)) if (folder / "bsd68").is_dir() else 0,
    }
    typer.echo(f"{folder} holds {', '.join(f'{count} images for {name}' for name, count in counts.items())}")
