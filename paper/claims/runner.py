"""Making items: what is done already is kept, and pictures, records and the page appear whole or not at all.

The record of an item, NAME.json, is written last, so where there is one the item is done. It holds what the result
depends on; if any of that has changed, the item is made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from heatprior import __version__
from heatprior.errors import HeatpriorError
from heatprior.files import make_folder
from paper.claims.bench import Bench
from paper.claims.item import Item, verdict
from paper.claims.page import Record, write_page
from paper.claims.plots import DPI, save_diagram
from paper.records import write_record

PAGE = "index.html"


def reproduce(
    folder: Path,
    bench: Bench,
    items: Sequence[Item],
    everything: Sequence[Item],
    *,
    again: bool = False,
    progress: Callable[[float], None] = lambda _: None,
    report: Callable[[Record, bool], None] = lambda *_: None,
) -> None:
    """Make `items`, and the page of whatever is done of `everything`.

    `progress` is called with the number of items done, fractions included; `report` with each record, and whether it
    was there already.
    """
    keys = [depends_on(item, bench) for item in items]  # what is missing is reported before any work
    make_folder(folder)
    for number, (item, key) in enumerate(zip(items, keys, strict=True)):
        kept = None if again else read_record(folder, item, key)
        bench.progress = partial(_part, progress, number)
        record = kept or _made(folder, item, key, bench)
        write_page(folder / PAGE, _done(folder, bench, everything), [each.name for each in everything])
        progress(number + 1.0)
        report(record, kept is not None)


def depends_on(item: Item, bench: Bench) -> dict[str, Any]:
    """What the result of an item depends on."""
    return {
        "version": __version__,
        "quick": bench.quick,
        "settings": dict(item.settings(quick=bench.quick)),
        "digests": bench.fingerprint(item.priors, item.images),
    }


def read_record(folder: Path, item: Item, key: Mapping[str, Any]) -> Record | None:
    """The record of an item that is done with the same priors, images and settings, and whose pictures are there."""
    try:
        record = json.loads((folder / f"{item.name}.json").read_text(encoding="utf-8"))
        whole = all((folder / picture["file"]).is_file() for picture in record["pictures"])
        return record if whole and record["depends_on"] == key else None
    except (OSError, ValueError, KeyError, TypeError):  # none there, or not one of ours
        return None


def _part(progress: Callable[[float], None], number: int, done: float) -> None:
    progress(number + done)


def _made(folder: Path, item: Item, key: Mapping[str, Any], bench: Bench) -> Record:
    begin = time.perf_counter()
    finding = item.make(bench, item.settings(quick=bench.quick))
    pictures = []
    for picture in finding.pictures:
        name = f"{item.name}{picture.suffix}.png"
        save_diagram(picture.figure, folder / name, dpi=DPI)
        pictures.append({"file": name, "caption": picture.caption})
    record = {
        "item": item.name,
        "title": item.title,
        "place": item.place,
        "paper": item.claim,
        "verdict": verdict(finding.checks),
        "checks": [check._asdict() for check in finding.checks],
        "tables": [table._asdict() for table in finding.tables],
        "pictures": pictures,
        "figures": finding.figures,
        "seconds": round(time.perf_counter() - begin, 1),
        "depends_on": key,
    }
    write_record(folder / f"{item.name}.json", record)
    return record


def _done(folder: Path, bench: Bench, everything: Sequence[Item]) -> list[Record]:
    found = []
    for item in everything:
        try:
            record = read_record(folder, item, depends_on(item, bench))
        except (HeatpriorError, OSError):  # its images or priors are not there: nor is it
            continue
        if record is not None:
            found.append(record)
    return found
