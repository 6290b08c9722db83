"""`python -m paper.bsds500`: says where the images of the paper are, and downloads them if they are missing.

The download (about 70 MB) is checked file by file. BSDS500 is for research and education; please cite Arbeláez, Maire,
Fowlkes and Malik, PAMI 2011.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from heatprior.errors import HeatpriorError
from paper import bsds500
from paper.bsds500 import fetch


def main(arguments: Sequence[str] | None = None) -> int:
    """Find or fetch the images, and return the exit code; a refusal is one line on stderr."""
    parser = ArgumentParser("python -m paper.bsds500", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--to", metavar="DIR", type=Path, help="the folder (default: HEATPRIOR_DATA, or the cache)")
    folder = bsds500.data_folder(parser.parse_args(arguments).to)
    try:
        try:
            bsds500.training(folder), bsds500.validation(folder)
        except bsds500.DataMissingError:
            fetch.fetch(folder, progress=sys.stderr.isatty())
        counts = {
            "training": len(bsds500.training(folder)),
            "validation": len(bsds500.validation(folder)),
            "BSD68": len(bsds500.bsd68(folder)) if (folder / "bsd68").is_dir() else 0,
        }
    except HeatpriorError as error:
        print(f"paper: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(f"{folder} holds {', '.join(f'{count} images for {name}' for name, count in counts.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
