"""`python -m paper`, or `make paper`: every figure and table of the paper, with its verdict, as one page.

python -m paper --quick                       all of it on a few images, in minutes
python -m paper                               in full; what is done is kept, so it can be interrupted
python -m paper --only table1 --only samples  these two only
"""

from __future__ import annotations

import json
import shutil
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heatprior.cli.batches import say, show_progress
from heatprior.errors import HeatpriorError, InvalidInputError
from paper import RECORDS
from paper.claims import items as claims
from paper.claims.bench import Bench
from paper.claims.retraining import retrained
from paper.claims.runner import PAGE, reproduce

FULL, QUICK = Path("out/paper"), Path("out/paper-quick")
PICTURES = RECORDS.parent / "docs" / "reproduction"
REFUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is asked for and return the exit code; a refusal is one line on stderr, never a traceback."""
    parser = ArgumentParser("python -m paper", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder of BSDS500 (default: HEATPRIOR_DATA)")
    parser.add_argument("--only", metavar="NAME", action="append", help="make this item only; may be repeated")
    parser.add_argument("--out", metavar="DIR", type=Path, help=f"folder of the results (default: {FULL} or {QUICK})")
    parser.add_argument("--quick", action="store_true", help="use few images and patches: a trial, within minutes")
    parser.add_argument("--retrain", action="store_true", help="train the priors again first; the paper's take hours")
    parser.add_argument("--force", action="store_true", help="make again what is done")
    parser.add_argument(
        "--keep", action="store_true", help="copy figures to records/ and pictures to docs/reproduction"
    )
    options = parser.parse_args(arguments)
    folder = options.out or (QUICK if options.quick else FULL)
    try:
        if options.keep and (options.quick or options.retrain):
            raise InvalidInputError("--keep is for a full run with the kept priors; leave out --quick and --retrain")
        make(folder, Bench(options.data, options.quick), options.only or [], options.retrain, options.force)
        if options.keep:
            keep(folder, options.only or [])
    except (HeatpriorError, OSError) as error:
        print(f"paper: error: {' '.join(str(error).split())}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return 130
    print(f"wrote {folder / PAGE}")
    return 0


def make(folder: Path, bench: Bench, only: list[str], retrain: bool, force: bool) -> None:
    """Make the items in `only`, or all, with a line on each; with fresh priors if `retrain`."""
    items = claims.chosen(only)
    if retrain:
        wanted = sorted({name for item in items for name in item.priors})
        with show_progress(len(wanted)) as progress:
            bench.priors = retrained(folder / "priors", bench, wanted, again=force, progress=progress, report=say)
    with show_progress(len(items)) as progress:

        def report(record: Mapping[str, Any], kept: bool) -> None:
            say(line(record, kept))

        reproduce(folder, bench, items, claims.ITEMS, again=force, progress=progress, report=report)


def keep(folder: Path, only: list[str]) -> None:
    """Copy what was made to where the documents link to it."""
    for item in claims.chosen(only):
        record = json.loads((folder / f"{item.name}.json").read_text(encoding="utf-8"))
        shutil.copyfile(folder / f"{item.name}.json", RECORDS / f"claim-{item.name}.json")
        for picture in record["pictures"]:
            shutil.copyfile(folder / picture["file"], PICTURES / picture["file"])


def line(record: Mapping[str, Any], kept: bool) -> str:
    """One line about an item: its name, the verdict, how long it took."""
    holding = sum(check["holds"] is True for check in record["checks"])
    took = "done before" if kept else f"{record['seconds']:.0f} s"
    return f"{record['item']:<17} {record['verdict']:<23} {holding} of {len(record['checks'])} claims, {took}"


if __name__ == "__main__":
    sys.exit(main())
