"""Print the lower bounds of pyproject.toml as pins, for pip: `python .ci/lower_bounds.py formats,large`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?\s*(?:>=\s*([^,;\s]+))?")


def find_pins(project: dict, extras: str = "") -> list[str]:
    """`name==bound` for every dependency of a project, and of these extras: the highest, if it has several bounds."""
    requirements, bounds = [*project["dependencies"], f"{project['name']}[{extras}]"], {}
    for requirement in requirements:  # which grows: extras may be made of extras
        name, inner, bound = REQUIREMENT.match(requirement).groups(default="")
        if name == project["name"]:
            for extra in filter(None, inner.split(",")):
                requirements += project["optional-dependencies"][extra]
        elif bound:
            known = f"{name}[{inner}]" if inner else name
            bounds[known] = max(bounds.get(known, bound), bound, key=lambda version: [*map(int, version.split("."))])
    return [f"{name}=={bound}" for name, bound in bounds.items()]


if __name__ == "__main__":
    print(*find_pins(tomllib.loads(PROJECT.read_text("utf-8"))["project"], *sys.argv[1:]), sep="\n")
