"""Print the lower bounds of pyproject.toml as pins, for pip: `python .ci/lower_bounds.py formats,large`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?\s*(?:>=\s*([^,;\s]+))?")


def find_pins(project: dict, extras: str = "") -> list[str]:
    """`name==bound` for every dependency of a project, and of these extras, that has a lower bound."""
    requirements, pins = [*project["dependencies"], f"{project['name']}[{extras}]"], []
    for requirement in requirements:  # which grows: extras may be made of extras
        name, inner, bound = REQUIREMENT.match(requirement).groups(default="")
        if name == project["name"]:
            for extra in filter(None, inner.split(",")):
                requirements += project["optional-dependencies"][extra]
        elif bound:
            pins.append(f"{name}[{inner}]=={bound}" if inner else f"{name}=={bound}")
    return pins


if __name__ == "__main__":
    print(*find_pins(tomllib.loads(PROJECT.read_text("utf-8"))["project"], *sys.argv[1:]), sep="\n")
