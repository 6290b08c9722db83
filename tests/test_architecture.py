"""Imports point one way: cli → learning | restoration → priors → kernels, and what all stand on below."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.util import resolve_name
from pathlib import Path

import pytest

import heatprior

PACKAGE = Path(heatprior.__file__).parent
BOTTOM = {"arrays", "display", "errors", "files", "locks", "scipy_subset"}
# What each part of the package may import; a new part needs its line here.
MAY_IMPORT = {
    "arrays": set(),
    "display": set(),
    "errors": set(),
    "files": {"errors"},
    "locks": set(),
    "kinds": set(),
    "presets": {"errors"},
    "scipy_subset": {"arrays"},
    "version": set(),
    "noise_value": {"arrays", "display", "errors", "locks"},
    "store": BOTTOM | {"kinds"},
    "images": BOTTOM,
    "kernels": {"arrays", "errors", "locks", "scipy_subset"},
    "border": BOTTOM | {"noise_value"},
    "priors": BOTTOM | {"store", "kernels", "noise_value"},
    "zoo": BOTTOM | {"store", "priors", "kinds"},
    "data": BOTTOM | {"kernels", "images"},
    "pictures": BOTTOM | {"noise_value", "priors"},
    "noise": BOTTOM | {"kernels", "noise_value", "priors", "zoo", "border"},
    "learning": BOTTOM | {"kernels", "priors", "data", "images", "kinds", "version"},
    "restoration": BOTTOM | {"presets", "kernels", "noise_value", "priors", "zoo", "images", "data", "border", "noise"},
}
MAY_IMPORT["torch"] = BOTTOM | {"kernels", "noise_value", "priors", "zoo", "border", "restoration"}
MAY_IMPORT["deepinv"] = BOTTOM | {"border", "noise", "torch"}
MAY_IMPORT["large"] = MAY_IMPORT["restoration"] | {"restoration", "version"}
EVERYTHING_BELOW = set(MAY_IMPORT) - {"torch", "deepinv"}  # nothing else knows of these: they need an extra
MAY_IMPORT["heatprior"] = EVERYTHING_BELOW  # the package itself: the public names
MAY_IMPORT["app"] = EVERYTHING_BELOW
MAY_IMPORT["cli"] = EVERYTHING_BELOW | {"heatprior", "app"}
MAY_IMPORT["__main__"] = {"cli"}


def part_of(module):
    """heatprior.priors.patch → priors; heatprior → heatprior."""
    names = module.split(".")
    return names[1] if len(names) > 1 else names[0]


def imported_modules(source, package):
    """Every module of heatprior that `source`, standing in `package`, imports anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            # `from heatprior import priors` may name a part of the package or a public name.
            found = [f"{origin}.{alias.name}" if alias.name in MAY_IMPORT else origin for alias in node.names]
        else:
            continue
        yield from (name for name in found if name.split(".")[0] == "heatprior")


def forbidden_imports(source, module, package):
    own = part_of(module)
    parts = {part_of(name) for name in imported_modules(source, package)}
    return sorted(parts - MAY_IMPORT[own] - {own})


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        names = ("heatprior", *path.relative_to(PACKAGE).with_suffix("").parts)
        is_package = names[-1] == "__init__"
        module = ".".join(names[:-1] if is_package else names)
        yield pytest.param(path, module, module if is_package else ".".join(names[:-1]), id=module)


@pytest.mark.parametrize(("path", "module", "package"), list(modules()))
def test_imports_point_one_way(path, module, package):
    assert part_of(module) in MAY_IMPORT, f"{module} is in a new part of the package; say what it may import"
    assert forbidden_imports(path.read_text(), module, package) == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("heatprior.kernels.expert_moments", "from heatprior.priors.experts import Experts", ["priors"]),
        ("heatprior.kernels.expert_moments", "from heatprior.files import replacing", ["files"]),
        ("heatprior.kernels.expert_moments", "from heatprior.kernels.lookup import clamp", []),
        ("heatprior.priors.patch", "import heatprior.learning.patch_training as p", ["learning"]),
        ("heatprior.priors.patch", "def f():\n    from heatprior import cli", ["cli"]),
        ("heatprior.priors.patch", "from heatprior import load", ["heatprior"]),
        ("heatprior.priors.patch", "from ..restoration import denoising", ["restoration"]),
        ("heatprior.priors.patch", "from .. import learning, zoo", ["learning", "zoo"]),
        ("heatprior.priors.patch", "from . import experts", []),
        ("heatprior.learning.patch_training", "from heatprior.noise.levels import estimate_sigma", ["noise"]),
        ("heatprior.noise.levels", "import numpy, heatprior.learning", ["learning"]),
        ("heatprior.store", "if True:\n    from heatprior.priors.patch import PatchPrior", ["priors"]),
        ("heatprior.cli.app", "from heatprior import __version__, learning, restoration", []),
    ],
)
def test_the_rule_sees_imports_that_point_the_wrong_way(module, source, found):
    assert forbidden_imports(source, module, module.rpartition(".")[0]) == found


def imports_the_paper(source):
    return bool(re.search(r"^\s*(from|import) paper\b", source, re.MULTILINE))


def test_nothing_in_the_package_imports_the_paper_beside_it():
    assert [path for path in sorted(PACKAGE.rglob("*.py")) if imports_the_paper(path.read_text())] == []
    assert imports_the_paper("def f():\n    from paper.claims import items")


def test_the_table_has_no_circles():
    order, left = [], dict(MAY_IMPORT)
    while left:
        free = [part for part, below in left.items() if below <= set(order)]
        assert free, f"circle among {sorted(left)}"
        order += free
        left = {part: below for part, below in left.items() if part not in free}


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_loads_nothing_slow():
    slow = {"numba", "matplotlib", "typer", "scipy", "numpy", "skimage", "safetensors", "PIL"}
    assert not loaded_by("import heatprior") & slow
    assert {"numba", "scipy"} <= loaded_by("import heatprior; heatprior.load")


# By the names under which they are imported; what is not of the base stands in one room, behind an extra.
BASE = {"numpy", "scipy", "numba", "llvmlite", "PIL", "tifffile", "safetensors", "typer", "tqdm", "matplotlib"}
BASE |= {"threadpoolctl"}
ROOMS = {
    "large": {"dask", "distributed", "zarr"}, "torch": {"torch"}, "deepinv": {"torch", "deepinv"}, "fits": {"astropy"},
    "app": {"starlette", "uvicorn"}, "dicom": {"pydicom"}, "nifti": {"nibabel"},
}  # fmt: skip


def foreign_imports(source):
    """What is imported, anywhere in a file, beyond the standard library and the package."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"heatprior"}


def test_the_base_does_without_what_it_does_not_install():
    for path in sorted(PACKAGE.rglob("*.py")):
        within = path.relative_to(PACKAGE).with_suffix("").parts
        allowed = BASE.union(*(ROOMS.get(part, set()) for part in within))
        assert foreign_imports(path.read_text()) <= allowed, path
    assert foreign_imports("def f():\n    from skimage import data") == {"skimage"}


def test_what_the_base_imports_is_what_it_asks_for():
    with (PACKAGE.parents[1] / "pyproject.toml").open("rb") as file:
        asked = tomllib.load(file)["project"]["dependencies"]
    names = {re.match(r"[\w-]+", line)[0].replace("pillow", "PIL") for line in asked}
    assert names == BASE - {"llvmlite"}  # numba brings its own


def test_computing_loads_no_picture_and_no_command_line():
    names = "heatprior.PatchPrior, heatprior.load, heatprior.train"
    assert not loaded_by(f"import heatprior; {names}") & {"matplotlib", "typer", "tqdm", "skimage", "PIL"}


def test_computing_with_arrays_loads_nothing_that_reads_files():
    names = "print(*(name for name in sys.modules if name.startswith('heatprior.images')))"
    run = "import sys, numpy, heatprior; heatprior.denoise(numpy.ones((16, 16), 'f4'), 0.1)"
    read = "import sys, heatprior.images"
    for code, loaded in ((run, False), (read, True)):
        found = subprocess.run([sys.executable, "-c", f"{code}; {names}"], capture_output=True, text=True, check=True)
        assert bool(found.stdout.strip()) is loaded
    formats = "from heatprior.images import FORMATS; found = {f.module.partition(':')[0] for f in FORMATS}"
    code = f"import sys; {formats}; print(*(m for m in found if f'heatprior.images.{{m}}' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("name", heatprior.__all__)
def test_every_public_name_is_there(name):
    assert getattr(heatprior, name) is not None
    assert name in dir(heatprior)


def test_public_names_are_sorted_and_others_are_refused():
    assert sorted(heatprior.__all__) == heatprior.__all__
    with pytest.raises(AttributeError, match="module 'heatprior' has no attribute 'nonsense'"):
        heatprior.nonsense  # noqa: B018


def test_every_module_says_what_it_is():
    silent = [path.name for path in PACKAGE.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def asked_for_their_class(pattern):
    """Places outside priors/ that ask an object whether it is of a class whose name matches."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_question = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            )
            if is_question and "priors" not in path.parts and re.search(pattern, ast.unparse(node.args[1])):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_few_places_ask_a_prior_or_a_config_for_its_class():
    """What a kind can do belongs on the kind; a new one would be forgotten here."""
    assert len(list(asked_for_their_class(r"(Prior|Config|Training)\b"))) <= 6
    assert len(list(asked_for_their_class(r"\w*Noise(Map)?\b"))) <= 3
    assert len(list(asked_for_their_class(r"HeatpriorError|Mapping|float|str"))) > 6  # the search does find places


def test_what_is_kept_has_no_lock_that_a_fork_could_find_taken():
    """That of functools has one before Python 3.12."""
    of_functools = re.compile(r"from functools import .*\bcached_property\b")
    found = {path.name for path in PACKAGE.rglob("*.py") if of_functools.search(path.read_text(encoding="utf-8"))}
    assert found == {"locks.py"}


def messages_with_flags(source):
    """Texts of a module, other than docstrings, that name an option of the command line."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [text for text in texts if " " in text and re.search(r"(^|\s)--[a-z]", text) and text not in docstrings]


def test_the_messages_of_the_library_name_no_option_of_the_command_line():
    """Whoever calls from Python has no --force."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"cli", "app"} & set(path.relative_to(PACKAGE).parts):
            assert messages_with_flags(path.read_text()) == [], path
    assert messages_with_flags(
        'def f():\n    """With --force."""\n    raise ValueError("add --force to replace it")'
    ) == ["add --force to replace it"]


def texts_of_any_encoding(source):
    """The lines that read or write a text in whatever encoding the system has, which on Windows is not UTF-8."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if getattr(call.func, "attr", "") in ("read_text", "write_text")]
    return [call.lineno for call in calls if "encoding" not in {keyword.arg for keyword in call.keywords}]


def test_every_text_is_utf_8():
    found = {path.name: texts_of_any_encoding(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    assert not {name: lines for name, lines in found.items() if lines}
    assert texts_of_any_encoding("path.read_text()\npath.read_text(encoding='utf-8')") == [1]
