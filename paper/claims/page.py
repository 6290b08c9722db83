"""The page: every item with the paper's claim, what was measured, the verdict and its pictures, in one HTML file.

Pictures are inside it; it asks nothing of any other file or place.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from heatprior import __version__
from heatprior.files import replacing

Record = Mapping[str, Any]
MARKS = {True: ("holds", "yes"), False: ("does not hold", "no"), None: ("not judged", "open")}
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 68rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.8rem; margin-bottom: .2rem; } h2 { font-size: 1.35rem; margin: 0; }
section { border-top: 1px solid #ccc; margin-top: 2.2rem; padding-top: 1.2rem; }
p.about, figcaption, .place { color: #555; } figcaption { font-size: .9rem; }
blockquote { margin: .6rem 0; padding-left: .9rem; border-left: 4px solid #0072b2; }
figure { margin: 1.2rem 0; } img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; font-size: .93rem; }
caption { text-align: left; color: #555; padding-bottom: .2rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top; }
th { background: #f4f4f4; } th:first-child, td:first-child { text-align: left; }
table.checks td, table.checks th { text-align: left; } td:last-child { white-space: nowrap; }
.numbers td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.yes, .no, .open { font-weight: 600; } .yes::before { content: "✓ "; } .no::before { content: "✗ "; }
.open::before { content: "? "; } .yes { color: #006b4f; } .no { color: #a63c00; } .open { color: #555; }
.reason { background: #fdf3e7; padding: .5rem .9rem; border-left: 4px solid #d55e00; margin: .6rem 0; }
.quick { background: #eef4fb; padding: .5rem .9rem; border-left: 4px solid #0072b2; }
@media print { body { max-width: none; margin: 0; font-size: 11px; } section { break-inside: auto; }
  figure, tr, blockquote { break-inside: avoid; } h2 { break-after: avoid; } a { color: inherit; } }
"""


def write_page(path: Path, records: Sequence[Record], names: Sequence[str]) -> None:
    """The page of `records`, whose pictures lie beside it; of the items in `names` the others are still to be made."""
    parts = [_head(records), _summary(records, names), *(_section(record, path.parent) for record in records)]
    body = "\n".join(parts)
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>heatprior: the paper "
        f"reproduced</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _head(records: Sequence[Record]) -> str:
    newest = max(records, key=lambda record: str(record["time"]), default=None)
    seconds = sum(record["seconds"] for record in records)
    about = f"heatprior {__version__}"
    if newest is not None:
        about += f", commit {newest['commit']}, {newest['time'][:10]}; {_time(seconds)} in all"
    quick = any(record["depends_on"]["quick"] for record in records)
    note = (
        '<p class="quick">A quick run, on few images and patches: it shows that everything works. Its figures '
        "scatter; for "
        "figures to quote, make the full run.</p>"
        if quick
        else ""
    )
    return (
        "<h1>The paper, reproduced</h1>\n"
        f'<p class="about">{escape(about)}. The paper is <em>Explicit Diffusion of Gaussian Mixture Model Based Image '
        "Priors</em> (Zach, Pock, Kobler, Chambolle). Each claim stands with its tolerance, what was measured, and "
        f"whether it holds; where it does not, the reason is given.</p>\n{note}"
    )


def _summary(records: Sequence[Record], names: Sequence[str]) -> str:
    rows = "".join(
        "<tr><td><a "
        f'href="#{escape(record["item"])}">{escape(record["title"])}</a></td><td>{escape(record["place"])}</td>'
        f"<td>{_counted(record)}</td><td>{_marked(record)}</td></tr>\n"
        for record in records
    )
    missing = [name for name in names if name not in {record["item"] for record in records}]
    note = f'<p class="about">Not made yet: {escape(", ".join(missing))}.</p>' if missing else ""
    head = "<tr><th>item</th><th>in the paper</th><th>claims that hold</th><th>verdict</th></tr>"
    return f'<div class="wide"><table class="checks">{head}\n{rows}</table></div>{note}'


def _counted(record: Record) -> str:
    return f"{sum(check['holds'] is True for check in record['checks'])} of {len(record['checks'])}"


def _marked(record: Record) -> str:
    holds = [check["holds"] for check in record["checks"]]
    mark = "no" if False in holds else "yes" if True in holds else "open"
    return f'<span class="{mark}">{escape(record["verdict"])}</span>'


def _section(record: Record, folder: Path) -> str:
    figures = "\n".join(_figure(folder / picture["file"], picture["caption"]) for picture in record["pictures"])
    tables = "\n".join(_table(table) for table in record["tables"])
    return (
        f'<section id="{escape(record["item"])}">\n<h2>{escape(record["title"])}</h2>\n'
        f'<p class="place">{escape(record["place"])} · <code>python -m paper --only '
        f"{escape(record['item'])}</code> · "
        f"{_time(record['seconds'])}</p>\n<blockquote>{escape(record['paper'])}</blockquote>\n{_checks(record['checks'])}\n"
        f"{figures}\n{tables}\n</section>"
    )


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = ""
    reasons: dict[str, None] = {}
    for check in checks:
        word, mark = MARKS[check["holds"]]
        rows += (
            f"<tr><td>{escape(check['claim'])}</td><td>{escape(check['measured'])}</td>"
            f'<td><span class="{mark}">{word}</span></td></tr>\n'
        )
        if check["holds"] is not True and check["reason"]:
            reasons[check["reason"]] = None
    told = "".join(f'<p class="reason">{escape(reason)}</p>\n' for reason in reasons)
    head = "<tr><th>claim</th><th>measured here</th><th></th></tr>"
    return f'<div class="wide"><table class="checks">{head}\n{rows}</table></div>\n{told}'


def _table(table: Mapping[str, Any]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table["head"])
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in table["rows"])
    caption = f"<caption>{escape(table['caption'])}</caption>"
    return f'<div class="wide"><table class="numbers">{caption}<tr>{head}</tr>\n{rows}</table></div>'


def _figure(path: Path, caption: str) -> str:
    data = b64encode(path.read_bytes()).decode("ascii")
    words = escape(caption)
    return f'<figure><img alt="{words}" src="data:image/png;base64,{data}"><figcaption>{words}</figcaption></figure>'


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
