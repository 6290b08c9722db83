"""Figures in the documents: what was measured stands, rounded as it is there, in a record that the paragraph names.

In prose that is every decimal with a unit, in tables every decimal. A paragraph names records by links to them, or by
the scripts that write them; a table has those of the paragraph before it.
"""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

NUMBER = r"[−-]?\d[\d,]*\.\d+(?:e-?\d+)?"
FIGURE = re.compile(rf"(?<![\w.]){NUMBER}(?![\w.])")
UNIT = r"(?:dB|ms|s|s/Mpx|[kMG]B(?:/s)?|%|hours|seconds|minutes|megapixels|times)(?!\w)"
MEASURED = re.compile(rf"(?<![\w.])(?:{NUMBER}(?:,? (?:and|to|or|against) |, | |/))*{NUMBER} {UNIT}")
COMPARED = re.compile(r"\b(?:below|above|behind|ahead|within|gains|costs|changes)\b")
SCRIPT = re.compile(r"(?:paper[/.](?:evaluations|weights)[/.]|benchmarks/)(\w+)")
CLAIM = re.compile(r"python -m paper --only ([\w-]+)")
ELSEWHERE = "published"  # says that a figure is not of this project


def numbers_in(record):
    """Every number of a record, however deep, and the means over rows: what tables are filled with."""
    if isinstance(record, dict):
        return [number for item in record.values() for number in numbers_in(item)]
    if isinstance(record, list):
        rows = [row for row in record if isinstance(row, dict)]
        keys = [key for key in (rows or [{}])[0] if all(is_number(row.get(key)) for row in rows)]
        means = [float(np.mean([row[key] for row in rows])) for key in keys]
        return [*means, *(number for item in record for number in numbers_in(item))]
    return [float(record)] if is_number(record) else []


def differences_in(record):
    """By how much rows of a record differ at the same place, and the single values of one row among themselves."""
    rows, singles = list(rows_in(record)), []
    for row in rows:
        singles += [abs(a - b) for a, b in combinations(row.values(), 2)] if isinstance(row, dict) else []
    lists = [row for row in rows if isinstance(row, list)]
    pairs = [(a, b) for a, b in combinations(lists, 2) if len(a) == len(b)]
    return [*singles, *(abs(x - y) for a, b in pairs for x, y in zip(a, b, strict=True))]


def rows_in(record):
    """The lists and the dicts of numbers in a record."""
    if isinstance(record, dict | list):
        items = record.values() if isinstance(record, dict) else record
        if record and all(map(is_number, items)) and len(record) < 20:
            yield record
        for item in items:
            yield from rows_in(item)


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def stands_in(figure, numbers):
    """Whether some number, rounded as the figure is, is the figure."""
    mantissa, _, exponent = figure.replace(",", "").replace("−", "-").partition("e")
    power = 10.0 ** int(exponent or 0)
    half = 0.5 * 10.0 ** -len(mantissa.partition(".")[2])  # a number that lies between two figures may go either way
    return bool(np.any(np.abs(np.array(numbers) / power - float(mantissa)) <= half * (1.0 + 1e-9)))


def records_named(page, paragraph):
    """The records that a paragraph links to, or those of the scripts and claims that it names."""
    links = [page.parent / link for link in re.findall(r"\]\(([^)]+\.json)\)", paragraph)]
    names = [*SCRIPT.findall(paragraph), *(f"claim-{claim}" for claim in CLAIM.findall(paragraph))]
    links += [ROOT / "records" / f"{name}.json" for name in names]
    return [json.loads(link.read_text()) for link in {link.resolve() for link in links} if link.is_file()]


def without_code(text):
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def figures_of_table(table):
    """(figure, False) of a table, without the rows of other people and the columns of ratios."""
    names, _, *rows = (line.split("|")[2:] for line in table.splitlines())
    for cells, line in zip(rows, table.splitlines()[2:], strict=True):
        own = [] if ELSEWHERE in line else zip(names, cells, strict=False)
        counted = " | ".join(without_code(cell) for name, cell in own if "over" not in name)
        yield from ((figure, False) for figure in FIGURE.findall(counted))


def figures_of_prose(paragraph):
    """(figure, whether its sentence compares) of the decimals with a unit; quoted code has none."""
    text = " ".join(without_code(paragraph).split())
    for sentence in re.split(r"(?<=[.;:]) ", text):
        found = [] if ELSEWHERE in sentence else MEASURED.findall(sentence)
        compared = bool(COMPARED.search(sentence))
        yield from ((figure, compared) for run in found for figure in FIGURE.findall(run))


def figures_checked(page):
    """(figure, whether it stands in a record) for every measured figure of a page; items of lists are paragraphs."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    records = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d\.) )", prose):
        is_table = paragraph.startswith("|")
        records = records if is_table else records_named(page, paragraph)
        figures = list(figures_of_table(paragraph) if is_table else figures_of_prose(paragraph))
        if figures:
            numbers = [number for record in records for number in numbers_in(record)]
            numbers += [100.0 * number for number in numbers] if "%" in paragraph else []
            differences = [difference for record in records for difference in differences_in(record)]
            yield from ((f, stands_in(f, numbers + differences if compared else numbers)) for f, compared in figures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_measured_figure_stands_in_a_record(page):
    assert [figure for figure, right in figures_checked(page) if not right] == []


def test_enough_figures_are_checked():
    assert sum(len(list(figures_checked(page))) for page in PAGES) > 200


def test_a_wrong_figure_and_one_without_a_record_are_noticed(tmp_path):
    assert not stands_in("31.18", [31.1749, 31.1851])
    assert stands_in("31.17", [31.1749])
    (tmp_path / "one.json").write_text('{"psnr": {"ours": [31.1749, 28.4], "theirs": [30.9, 28.9]}}')
    page = tmp_path / "page.md"
    page.write_text(
        "Measured ([record](one.json)): 31.17 and 28.41 dB.\n\n| σ | |\n|---|---|\n| 25 | 31.18 |\n\n"
        "- With 3.11 as in a list, 1.25 times as fast\n- We are 0.5 dB behind ([record](one.json)), not 0.4 dB behind\n"
    )
    expected = [("31.17", True), ("28.41", False), ("31.18", False), ("1.25", False), ("0.5", True), ("0.4", False)]
    assert list(figures_checked(page)) == expected
