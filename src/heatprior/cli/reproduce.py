"""`heatprior reproduce`: every figure and table of the paper, with its verdict, as one page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

FULL, QUICK = Path("out/reproduction"), Path("out/reproduction-quick")
EXAMPLES = """\b
Examples:
  heatprior reproduce --quick                       all of it on a few images, in minutes
  heatprior reproduce                               in full; what is done is kept, so it can be interrupted
  heatprior reproduce --only table1 --only samples  these two only
"""


def reproduce(
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where BSDS500 is.  [default: HEATPRIOR_DATA, or the cache]")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Make this item only; may be repeated.  [default: all]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"The folder of the results, made if need be.  [default: {FULL}, or {QUICK} with --quick]",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="On few images and patches: a trial, within minutes.")] = False,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="Retrain the priors instead of using the shipped ones; those of paper-training7 and 15 take hours.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Make again what is done.")] = False,
) -> None:
    """Make every figure and table of the paper, and say which of its claims hold.

    Writes pictures (PNG), figures (JSON) and one page to look at, index.html, which needs no other file. An item that
    is done, with the same priors, images and settings, is not made again.
    """
    from heatprior.cli.reports import bar_over
    from heatprior.reproduction.bench import Bench
    from heatprior.reproduction.items import ITEMS, chosen
    from heatprior.reproduction.retraining import retrained
    from heatprior.reproduction.runner import PAGE
    from heatprior.reproduction.runner import reproduce as make

    items = chosen(only or [])
    folder = out or (QUICK if quick else FULL)
    bench = Bench(data, quick)
    if retrain:
        wanted = sorted({name for item in items for name in item.priors})
        with bar_over(len(wanted)) as (progress, say):
            bench.priors = retrained(folder / "priors", bench, wanted, again=force, progress=progress, report=say)
    with bar_over(len(items)) as (progress, say):

        def report(record: Mapping[str, Any], kept: bool) -> None:
            say(line(record, kept))

        make(folder, bench, items, ITEMS, again=force, progress=progress, report=report)
    typer.echo(f"wrote {folder / PAGE}")


def line(record: Mapping[str, Any], kept: bool) -> str:
    """One line about an item: its name, the verdict, how long it took."""
    holding = sum(check["holds"] is True for check in record["checks"])
    took = "done before" if kept else f"{record['seconds']:.0f} s"
    return f"{record['item']:<17} {record['verdict']:<23} {holding} of {len(record['checks'])} claims, {took}"
