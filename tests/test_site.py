"""The pages of the site: every public name has its place, every command exists, every figure stands in its record."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import heatprior as hp

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


# ---- the reference ----


def names_listed(text):
    """The names below `.. autosummary::`."""
    listings = re.findall(r"\.\. autosummary::\n   :toctree: \S+\n\n((?:   \w+\n)+)", text)
    return [name for listing in listings for name in listing.split()]


def test_every_public_name_stands_in_the_reference_once():
    assert sorted(names_listed((DOCS / "reference.md").read_text())) == sorted(hp.__all__)


def test_a_name_that_is_missing_from_the_reference_is_noticed():
    text = (DOCS / "reference.md").read_text().replace("   denoise\n", "")
    assert set(hp.__all__) - set(names_listed(text)) == {"denoise"}


@pytest.mark.parametrize("name", hp.__all__)
def test_every_public_name_explains_itself(name):
    assert len(getattr(hp, name).__doc__.splitlines()[0]) > 20


def test_every_error_is_explained():
    page = (DOCS / "error-messages.md").read_text()
    errors = [cls.__name__ for cls in hp.HeatpriorError.__subclasses__()]
    assert set(errors) <= set(hp.__all__)
    for name in errors:
        (parent,) = re.findall(rf"^\| `{name}` \| `(\w+)` \|", page, re.MULTILINE)
        assert parent in [base.__name__ for base in getattr(hp, name).__mro__]


def pages_in_lists():
    """The names in all toctrees."""
    lists = [re.findall(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```", page.read_text(), re.M | re.S) for page in PAGES]
    return {line.strip() for listing in lists for names in listing for line in names.splitlines()}


def test_every_page_stands_in_a_list_of_pages():
    assert {page.stem for page in DOCS.glob("*.md")} - pages_in_lists() == {"index"}


# ---- commands ----


def commands_in(text):
    """The lines in listings that call heatprior: the name of the command, its options."""
    for language, listing in re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for line in listing.splitlines() if language in ("", "text", "sh") else ():
            called = re.match(r"\s*heatprior (\w+)(.*)", line.partition("#")[0])
            if called:
                yield called[1], re.findall(r"(?<![\w-])(--[a-z][\w-]*|-o)\b", called[2])


def options_of_commands():
    import typer

    from heatprior.cli import app

    commands = typer.main.get_command(app).commands
    return {
        name: {o for p in command.params for o in (*p.opts, *p.secondary_opts)} for name, command in commands.items()
    }


def test_every_command_and_option_in_the_documents_exists():
    known, seen = options_of_commands(), 0
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for command, options in commands_in(page.read_text()):
            assert set(options) <= known[command] | {"--help"}, f"{page.name}: heatprior {command} {options}"
            seen += 1
    assert seen > 30


def test_an_option_that_does_not_exist_is_noticed():
    ((command, options),) = commands_in("```\nheatprior denoise a.png -o b.png --sharper 2   # and so on\n```")
    assert set(options) - options_of_commands()[command] == {"--sharper"}


# ---- figures ----

FIGURE = re.compile(r"(?<![\w.])[−-]?\d[\d,]*\.\d+(?:e-?\d+)?(?![\w.])")


# Tables whose paragraph has no room for links: words in it, and the records. Other people's figures stand in none.
RECORDS = {
    "Mean PSNR in dB on BSD68, Gaussian noise": ("bsd68-default", "table1"),
    "BSD68, all 68 images in one run": ("bsd68-default", "bsd68-fast", "mixtures"),
    "Of each three pictures of a camera": ("camera_noise",),
}
ELSEWHERE = ("published", "FFDNet")


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


def tables_with_records(page):
    """(table, records) for every table after a link to records in the paragraph before it."""
    paragraphs = re.split(r"\n\s*\n", page.read_text())
    for before, table in pairwise(paragraphs):
        links = [page.parent / link for link in re.findall(r"\]\(([^)]+\.json)\)", before)]
        named = [name for words, names in RECORDS.items() if words in " ".join(before.split()) for name in names]
        links += [ROOT / "experiments" / "results" / f"{name}.json" for name in named]
        if links and table.startswith("|"):
            yield table, links


def figures_checked(page):
    """(figure, whether it stands in its record) for every figure in the tables of a page that name their record."""
    for table, links in tables_with_records(page):
        numbers = [number for link in links for number in numbers_in(json.loads(link.read_text()))]
        names, _, *rows = (line.split("|")[2:] for line in table.splitlines())
        for cells, line in zip(rows, table.splitlines()[2:], strict=True):
            if not any(words in line for words in ELSEWHERE):
                taken = [cell for name, cell in zip(names, cells, strict=False) if "over" not in name]  # ratios
                yield from ((figure, stands_in(figure, numbers)) for figure in FIGURE.findall(" | ".join(taken)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_figure_in_a_table_with_a_record_stands_in_it(page):
    assert [figure for figure, right in figures_checked(page) if not right] == []


def test_enough_figures_are_checked_and_a_wrong_one_is_noticed():
    assert sum(len(list(figures_checked(page))) for page in PAGES) > 200
    assert not stands_in("31.18", [31.1749, 31.1851])
    assert stands_in("31.17", [31.1749])
