"""Pages of results from the JSON files in records/: where each comes from, and its tables.

A record is drawn by its form alone: equal-keyed rows become a table, nested ones a table each, single values a list. So
a new record has its page without a line here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

SCRIPTS = ("paper/evaluations", "paper/weights", "benchmarks")
MADE_BY = ("commit", "time", "processor", "machine", "cores", "cpu_features", "python", "numba_cpu_name", "command")
MOST_ROWS = 60
OUT_OF_SEARCH = "---\nnosearch: true\n---"
Rows = list[list[str]]


def write_records(root: Path, folder: Path) -> int:
    """A page for each record of the checkout `root` into `folder`, and one that lists them; how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    listed: list[tuple[str, str, dict[str, Any]]] = []
    for path in sorted((root / "records").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        command = command_of(root, path, record)
        page = page_of(path.relative_to(root), record, command)
        (folder / f"{path.stem}.md").write_text(page, encoding="utf-8")
        listed.append((path.stem, command, record))
    (folder / "index.md").write_text(_index(listed), encoding="utf-8")
    return len(listed)


def command_of(root: Path, path: Path, record: dict[str, Any]) -> str:
    """The command that makes a record: as recorded, or that of the script that names its file; "" if none does."""
    if "command" in record:
        return str(record["command"])
    if {"quality", "first_seed"} <= record.keys():
        fast = "" if record["quality"] == "default" else f" --{record['quality']}"
        return f"heatprior evaluate {record['images']}{fast} -o {path.name}"
    if "item" in record:
        return f"python -m paper --only {record['item']}"
    family = path.stem.partition("-")[0]
    names = re.compile(rf'"{re.escape(path.name)}"|"{family}-\{{')
    for script in (script for folder in SCRIPTS for script in sorted((root / folder).glob("*.py"))):
        if script.stem == family or names.search(script.read_text(encoding="utf-8")):
            module = ".".join(script.relative_to(root).with_suffix("").parts)
            return f"python -m {module}" if module.startswith("paper.") else f"python {script.relative_to(root)}"
    return ""


def page_of(path: Path, record: dict[str, Any], command: str) -> str:
    """A record as a page."""
    made = {key: record[key] for key in MADE_BY if record.get(key) not in (None, "", [])}
    made = ({"command": f"`{command}`"} if command else {}) | made
    rest = {key: value for key, value in record.items() if key not in MADE_BY}
    table = _table(["made", "by"], [[k, _cell(v)] for k, v in made.items()])
    parts = [OUT_OF_SEARCH, f"# {path.stem}", f"Record: `{path}`.", table]
    return "\n\n".join([*parts, *_drawn(rest, 2)]) + "\n"


def _index(listed: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    rows = [
        [f"[{page}]({page}.md)", f"`{command}`" if command else "not recorded", *(
            _cell(record.get(key, "not recorded")) for key in ("processor", "commit", "time")
        )]
        for page, command, record in listed
    ]  # fmt: skip
    names = "\n".join(page for page, _, _ in listed)
    table = _table(["record", "command", "processor", "commit", "time"], rows)
    words = (
        "Every measurement here is a JSON file in the repository, written by a script. These pages are made from those "
        "files when the site is built; nothing on them was typed. Where a record is older than the habit of noting the "
        "processor, or was made outside of a checkout, it says so. The command is the one recorded, or else that of "
        "the script that writes the file."
    )
    return f"# Records\n\n{words}\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _drawn(value: Any, depth: int) -> Iterator[str]:
    """Paragraphs, tables and headings for a value of any form."""
    if isinstance(value, dict):
        if table := _table_of_rows([(key, row) for key, row in value.items()]):
            yield table
            return
        single = {key: item for key, item in value.items() if _is_single(item)}
        if single:
            yield _table(["setting", "value"], [[_text(key), _cell(item)] for key, item in single.items()])
        for key, item in value.items():
            if key not in single and item not in ({}, []):
                yield f"{'#' * min(depth, 5)} {_text(key)}"
                yield from _drawn(item, depth + 1)
    elif isinstance(value, list):
        yield _table_of_rows([(None, row) for row in _spread_out(value)]) or "`" + json.dumps(value)[:2000] + "`"
    else:
        yield _cell(value)


def _table_of_rows(rows: Sequence[tuple[Any, Any]]) -> str | None:
    """Rows of the same form as one table: dicts of single values, or lists of numbers."""
    if len(rows) < 2 and not (rows and isinstance(rows[0][1], dict) and rows[0][0] is None):
        return None
    named = rows[0][0] is not None
    first = [""] if named else []
    if all(isinstance(row, dict) for _, row in rows):
        flat = [dict(_flattened(row)) for _, row in rows]
        keys = list(dict.fromkeys(key for row in flat for key in row))
        if not all(_is_single(item) for row in flat for item in row.values()) or len(keys) > 12:
            return None
        cells = [[_cell(row.get(key, "")) for key in keys] for row in flat]
    elif all(isinstance(row, list) and row and all(map(_is_number, row)) for _, row in rows):
        longest = max(len(row) for _, row in rows)
        if longest > 16:
            return None
        keys = [str(k + 1) for k in range(longest)]
        cells = [[_cell(item) for item in row] + [""] * (longest - len(row)) for _, row in rows]
    else:
        return None
    names = [[_text(name)] if named else [] for name, _ in rows]
    body = [name + row for name, row in zip(names, cells, strict=True)]
    more = f"\n\n… and {len(body) - MOST_ROWS} more rows in the record." if len(body) > MOST_ROWS else ""
    return _table([*first, *map(_text, keys)], body[:MOST_ROWS]) + more


def _spread_out(rows: Sequence[Any]) -> list[Any]:
    """Rows that hold a list of rows themselves, as one row for each of these; others as they are."""
    spread: list[Any] = []
    for row in rows:
        inner = [key for key, item in row.items() if _is_rows(item)] if isinstance(row, dict) else []
        if len(inner) == 1:
            outer = {key: item for key, item in row.items() if key != inner[0]}
            spread += [outer | dict(item) for item in row[inner[0]]]
        else:
            spread.append(row)
    return spread


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _flattened(row: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in row.items():
        if isinstance(item, dict):
            yield from _flattened(item, f"{above}{key}, ")
        else:
            yield f"{above}{key}", item


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_single(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 8 and all(not isinstance(item, list | dict) for item in value)
    return not isinstance(value, dict)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_cell(item) for item in value)
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10 else f"{value:.2f}"
    return _text(value)


def _text(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (names, ["---"] * len(names), *rows)]
    return "\n".join(lines)
