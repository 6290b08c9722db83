"""The table of kinds: every name in it leads to what it says, and files, trainings and pictures go by it."""

import ast
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

import heatprior
from heatprior import kinds
from heatprior.kinds import KINDS, Kind, trainable

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_a_kind_is_what_its_class_says(kind):
    assert kind.name == kind.find("prior").kind
    assert callable(kind.find("prior").from_file)


@every_kind
def test_every_kind_can_be_drawn(kind):
    assert list(signature(kind.find("picture")).parameters) == ["prior", "path", "most"]


def test_some_kinds_are_trained_from_patches_and_the_others_say_so():
    assert trainable() == ["patch", "mixture"]
    with pytest.raises(LookupError, match="wavelet are not learnt from patches"):
        KINDS["wavelet"].find("training")


def test_a_name_that_leads_nowhere_is_an_error():
    with pytest.raises(AttributeError, match="Missing"):
        Kind("toy", prior="heatprior.priors.patch:Missing", training=None, picture="").find("prior")


def test_the_table_imports_nothing_but_the_standard_library():
    tree = ast.parse(Path(kinds.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", *sys.stdlib_module_names}
    code = "import sys, heatprior.kinds; print('numpy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_no_other_list_of_the_kinds_is_kept():
    """No other module has the names of three kinds as texts."""
    package = Path(heatprior.__file__).parent
    for path in package.rglob("*.py"):
        if path != Path(kinds.__file__):
            texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            assert len(texts & KINDS.keys()) < 3, path
