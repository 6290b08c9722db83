"""Every figure in the documents stands in a record, or is named here as a setting."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FIGURE = re.compile(r"(?<![\w.])[−-]?\d[\d,]*\.\d+(?:e-?\d+)?(?![\w.])")
SCRIPT = re.compile(r"(experiments|benchmarks)/(\w+)\.py")
PYTHONS = {"3.11", "3.12", "3.13"}

# Other people's figures, which stand in no record of this project: the words that say so.
ELSEWHERE = ("published", "FFDNet")

# Where neither a link nor the name of a script tells the records: words of the paragraph, and the records.
RECORDS = {
    "Mean PSNR in dB on BSD68, Gaussian noise": ("bsd68-default", "table1"),
    "BSD68, all 68 images in one run": ("bsd68-default", "bsd68-fast", "bsd68-best", "mixtures"),
}

# Figures that are no measurement of this project: settings, sections, examples, published ones.
SETTINGS = {
    "app": {"0.3"},
    "error-messages": {"0.1"},
    "errors": {"29.4", "0.1"},
    "files": {"1.0"},
    "inverse": {"0.1", "0.8", "0.3", "2.55"},
    "large": {"0.1", "0.5"},  # versions of OME-Zarr
    "math": {"3.2", "2.1", "0.02", "0.03", "0.05", "0.1", "0.6"},
    "results": {"0.02"},
    "photographs": {
        "0.001",
        "0.03",
        "0.3",
        "0.45",
        "0.6",
        "1.2",
        "1.24",
        "1.3",
        "1.45",
        "1.6",
        "1.7",
        "36.88",
        "37.67",
    },
    "quality": {"0.6", "0.7", "0.40", "0.73"},  # of the card and the tuning of `tuned`
    "start": {"1.6"},
    "torch": {"2.55"},
    "training": {"0.299", "0.587", "0.114", "−0.6", "0.04"},
    "understand": {"0.1"},
}

# Rounded differences between figures that stand in the table above them, or values that a test pins.
DERIVED = {
    "architecture": {"0.001"},
    "math": {"4.6", "1.062"},
    "results": {"0.01", "0.1", "0.3", "0.4", "0.5", "0.6", "0.7"},
    "photographs": {"37.03", "37.68"},
    "training": {"0.1", "0.2", "0.3", "0.4"},
    "understand": {"4.6", "1.062"},
}


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


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def stands_in(figure, numbers):
    """Whether some number, rounded as the figure is, is the figure."""
    text = figure.replace(",", "").replace("−", "-")
    mantissa = text.partition("e")[0].partition(".")[2]
    form = f".{len(mantissa)}{'e' if 'e' in text else 'f'}"
    tie = 1.0 + 1e-9  # numbers that lie between two figures may go either way
    return any(
        float(text) == float(f"{number * factor:{form}}") for number in numbers for factor in (1.0, tie, 1 / tie)
    )


def records_named(page, paragraph):
    """The records that a paragraph links to, or those of the scripts that it names."""
    links = [page.parent / link for link in re.findall(r"\]\(([^)]+\.json)\)", paragraph)]
    for folder, script in SCRIPT.findall(paragraph):
        links.append(ROOT / folder / "results" / f"{script.removeprefix('bench_')}.json")
    words = " ".join(paragraph.split())
    names = [name for said, records in RECORDS.items() if said in words for name in records]
    links += [ROOT / "experiments" / "results" / f"{name}.json" for name in names]
    return [link for link in links if link.is_file()]


def measured(table):
    """The cells of a table, without rows of other people and columns of ratios."""
    names, _, *rows = (line.split("|")[2:] for line in table.splitlines())
    for cells, line in zip(rows, table.splitlines()[2:], strict=True):
        if not any(words in line for words in ELSEWHERE):
            yield from (cell for name, cell in zip(names, cells, strict=False) if "over" not in name)


def figures_checked(page):
    """(figure, whether it stands in a record) for every figure of a page that is no setting.

    A table has the records of the paragraph before it; items of a list are paragraphs of their own.
    """
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    passed = PYTHONS | SETTINGS.get(page.stem, set()) | DERIVED.get(page.stem, set())
    before = ""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d\.) )", prose):
        is_table = paragraph.startswith("|")
        named = records_named(page, before if is_table else paragraph)
        before = before if is_table else paragraph
        text = " | ".join(measured(paragraph)) if is_table else re.sub(r"`[^`]*`|\]\([^)]*\)", "", paragraph)
        figures = [figure for figure in FIGURE.findall(text) if figure not in passed]
        numbers = (
            [number for link in set(named) for number in numbers_in(json.loads(link.read_text()))] if figures else []
        )
        shares = [100.0 * number for number in numbers] if "%" in paragraph else []
        yield from ((figure, stands_in(figure, [*numbers, *shares])) for figure in figures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_figure_stands_in_a_record(page):
    assert [figure for figure, right in figures_checked(page) if not right] == []


def test_enough_figures_are_checked_and_a_wrong_one_is_noticed(tmp_path):
    assert sum(len(list(figures_checked(page))) for page in PAGES) > 200
    assert not stands_in("31.18", [31.1749, 31.1851])
    assert stands_in("31.17", [31.1749])
    page = tmp_path / "page.md"
    page.write_text("Measured somewhere: 31.17 dB.\n\n- Python 3.11, as a list has it\n- 1.25 times as fast\n")
    assert list(figures_checked(page)) == [("31.17", False), ("1.25", False)]
