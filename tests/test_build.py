"""The checks of the build itself: lower bounds become pins, and a test that never runs is found."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
find_pins = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["find_pins"]
find_faults = runpy.run_path(str(ROOT / ".ci" / "outcomes.py"))["find_faults"]


def test_lower_bounds_are_those_of_all_dependencies_and_of_extras_within_extras():
    project = {
        "name": "own",
        "dependencies": ["numpy>=1.26", "pillow >= 10.1, <12", "free"],
        "optional-dependencies": {
            "d": ["pillow>=9", "numpy>=1.100"],
            "a": ["own[b,c]", "x>=2"],
            "b": ["y[z]>=3.0; python_version > '3'"],
            "c": ["w>=4", "numpy>=1.3"],
        },
    }
    assert find_pins(project) == ["numpy==1.26", "pillow==10.1"]
    assert find_pins(project, "a") == ["numpy==1.26", "pillow==10.1", "x==2", "y[z]==3.0", "w==4"]
    assert find_pins(project, "d") == ["numpy==1.100", "pillow==10.1"]


def test_every_dependency_and_extra_that_users_install_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(find_pins(project)) == len(project["dependencies"])
    for extra in ("fits", "dicom", "nifti", "app", "torch", "large", "test", "oracles"):
        names = {re.match("[^>=]*", requirement)[0] for requirement in project["optional-dependencies"][extra]}
        assert names <= {pin.partition("==")[0] for pin in find_pins(project, extra)}


@pytest.mark.parametrize(
    ("steps", "faults"),
    [
        ([{"tests/test_a.py::one": "passed"}], []),
        ([{"tests/test_a.py::two": "skipped"}, {"tests/test_a.py::two": "passed"}], []),
        ([{"tests/test_a.py": "skipped"}, {"tests/test_a.py::one": "passed"}], []),  # a module that needs a package
        ([{"tests/test_a.py::one": "passed", "tests/test_a.py::two": "skipped"}] * 2, ["two passed in no step"]),
        ([{"tests/test_a.py": "skipped"}] * 2, ["tests/test_a.py passed in no step"]),
        ([{}], ["tests/test_a.py passed in no step"]),  # which no step collected
        ([{"tests/test_a.py::one": "passed", "tests/test_a.py::never": "skipped"}], []),  # excused
        ([{"tests/test_a.py::one": "passed", "tests/test_a.py::never": "passed"}], ["is excused"]),
    ],
)
def test_what_ran_in_no_step_is_found(steps, faults):
    found = find_faults(steps, ["tests/test_a.py"], {"tests/test_a.py::never": "it cannot"})
    assert len(found) == len(faults)
    assert all(fault in line for fault, line in zip(faults, found, strict=True))
