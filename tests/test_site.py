"""The pages of the site: every public name has its place, every command exists."""

import inspect
import re
from pathlib import Path

import pytest

import heatprior as hp
import heatprior.errors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


# ---- the reference ----


def names_listed(text):
    """The names below `.. autosummary::`."""
    listings = re.findall(r"\.\. autosummary::\n   :toctree: \S+\n\n((?:   [\w.]+\n)+)", text)
    return [name for listing in listings for name in listing.split()]


PUBLIC = {name: getattr(hp, name) for name in hp.__all__ if name != "operators"}
PUBLIC |= {f"operators.{name}": getattr(hp.operators, name) for name in hp.operators.__all__}


def test_every_public_name_stands_in_the_reference_once():
    assert sorted(names_listed((DOCS / "reference.md").read_text())) == sorted(PUBLIC)


def test_a_name_that_is_missing_from_the_reference_is_noticed():
    text = (DOCS / "reference.md").read_text().replace("   denoise\n", "")
    assert set(PUBLIC) - set(names_listed(text)) == {"denoise"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_explains_itself(name):
    assert len(PUBLIC[name].__doc__.splitlines()[0]) > 20


def names_explained(docstring, section):
    """The names below a heading of numpydoc."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.cleandoc(docstring), re.MULTILINE | re.DOTALL)
    entries = re.findall(r"^(\S[^:\n]*?)(?: : .*)?$", found[1], re.MULTILINE) if found else []
    return [name.strip(" *") for entry in entries for name in entry.split(",")]


FUNCTIONS = [name for name, value in PUBLIC.items() if inspect.isfunction(value)]
CLASSES = [
    name
    for name, value in PUBLIC.items()
    if name not in (*FUNCTIONS, "DiffusedPrior", "ImagePrior") and not issubclass(value, Exception)
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_explains_its_arguments_and_what_it_returns(name):
    function = PUBLIC[name]
    assert names_explained(function.__doc__, "Parameters") == list(inspect.signature(function).parameters)
    assert "\nReturns\n-------\n" in inspect.getdoc(function)  # from Python 3.13 on, docstrings are not indented


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_class_explains_what_it_is_made_of(name):
    of_class = PUBLIC[name]
    explained = [n for section in ("Parameters", "Attributes") for n in names_explained(of_class.__doc__, section)]
    assert explained == list(inspect.signature(of_class).parameters)


def test_an_argument_that_is_not_explained_is_noticed():
    without = inspect.getdoc(hp.denoise).replace("white : float, optional\n", "")
    assert "white" in names_explained(hp.denoise.__doc__, "Parameters")
    assert "white" not in names_explained(without, "Parameters")


def test_every_error_is_explained():
    page = (DOCS / "error-messages.md").read_text()
    classes = hp.HeatpriorError.__subclasses__()  # of which the paper may have some of its own
    errors = [cls.__name__ for cls in classes if cls.__module__.startswith("heatprior.")]
    assert set(errors) <= set(vars(heatprior.errors))
    for name in errors:
        (parent,) = re.findall(rf"^\| `{name}` \| `(\w+)` \|", page, re.MULTILINE)
        assert parent in [base.__name__ for base in getattr(heatprior.errors, name).__mro__]


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

    from heatprior.cli import application

    commands = typer.main.get_command(application()).commands
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
