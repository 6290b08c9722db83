"""Fail if a test was skipped in every step that had it, or if no test of a module ran: `python .ci/outcomes.py`.

Each step writes what came of its tests to out/outcomes (`tests/conftest.py`). What cannot run here is listed below,
with its reason; an entry for what did run is an error too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXCUSED = {  # how the names of tests begin → why they cannot run
    "tests/torch_modules/test_torch_equality.py::test_a_module_moves_between_types_and_devices[dtype0-cuda]": "no CUDA",
    "tests/torch_modules/test_torch_equality.py::test_a_module_moves_between_types_and_devices[dtype1-cuda]": "no CUDA",
    "tests/large/test_large_ome_tiff.py::test_napari_opens_it": "napari needs a viewer: make test-napari",
}
if hasattr(os, "geteuid") and os.geteuid() == 0:
    EXCUSED["tests/cli/test_cli_outputs.py::test_a_folder_without_permission_is_refused"] = "root may write anywhere"
if not os.environ.get("HEATPRIOR_DATA"):
    EXCUSED["tests/cli/test_cli_evaluate.py::test_a_validation_image_has_the_psnr"] = "BSDS500 is not there"


def find_faults(steps: Iterable[dict[str, str]], modules: Iterable[str], excused: dict[str, str]) -> list[str]:
    """What never ran although it should, or ran although it is excused, a line each."""
    steps = list(steps)
    passed = {name for step in steps for name, outcome in step.items() if outcome == "passed"}
    ran = {name.partition("::")[0] for name in passed}
    skipped = {name for step in steps for name, outcome in step.items() if outcome == "skipped"}
    never = sorted((skipped - passed - ran) | (set(modules) - ran))
    faults = [f"{name} passed in no step" for name in never if not name.startswith(tuple(excused))]
    for begin in excused:
        if any(name.startswith(begin) for name in passed):
            faults.append(f"{begin} is excused in .ci/outcomes.py but passed")
    return faults


def main() -> int:
    """Judge what the steps wrote; 1 if there is a fault."""
    steps = {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "out" / "outcomes").glob("*.json"))
    }
    modules = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    faults = find_faults(steps.values(), modules, EXCUSED)
    print(*faults, sep="\n", end="\n" * bool(faults))
    print(f"{sum(map(len, steps.values()))} outcomes of {', '.join(steps)}: {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
