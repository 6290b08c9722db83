"""Measured figures as JSON, with what made them: commit, time, Python, and the processor, on which speed depends.

python -m paper.records records/bsd68-default.json    adds that to what `heatprior evaluate -o` wrote
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heatprior.files import replacing

CPU_INFO = Path("/proc/cpuinfo")
VECTOR_FEATURES = ("sse4_2", "avx", "fma", "f16c", "asimd", "sve")  # how the names of those that matter begin
# Settings that do without some of them.
OVERRIDES = (
    "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA",
)  # fmt: skip


def write_record(path: Path, result: Mapping[str, Any]) -> None:
    """Write `result`, and beside it where it comes from; the folder is made if it is not there."""
    about = {
        "commit": running_commit(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "machine": platform.machine(),
        **processor(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({**about, **result}, indent=2) + "\n", encoding="utf-8")


def running_commit() -> str:
    """The commit of the code that runs: of this package or, if it is installed elsewhere, of the script; or "unknown".

    A "+" stands for changes that are not committed.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    for file in (Path(__file__), Path(script) if script else None):
        if file is not None and (commit := commit_of(file.resolve())):
            return commit
    return "unknown"


def commit_of(file: Path) -> str | None:
    """The commit of the checkout that tracks `file`, with a "+" if files beside or below it differ; None if none does.

    A file that merely lies inside a checkout, as those of an installed package in `.venv` do, is not part of it.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is None:
        return None
    commit = _git(file.parent, "rev-parse", "--short", "HEAD")
    changed = _git(file.parent, "status", "--porcelain", "--untracked-files=no", "--", "*.py")
    return f"{commit}+" if commit and changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers in a folder, or None."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def processor() -> dict[str, Any]:
    """Model, number of cores and vector instructions of the processor, and what keeps the compiler from using them."""
    known: dict[str, str] = {}
    if CPU_INFO.is_file():
        lines = (line.partition(":") for line in CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines())
        known = {name.strip().lower(): value.strip() for name, _, value in lines}
    flags = (known.get("flags") or known.get("features") or "").split()
    return {
        "processor": known.get("model name") or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "cpu_features": sorted(flag for flag in flags if flag.startswith(VECTOR_FEATURES)),
        **{name.lower(): os.environ[name] for name in OVERRIDES if name in os.environ},
    }


if __name__ == "__main__":
    for measured in map(Path, sys.argv[1:]):
        write_record(measured, json.loads(measured.read_text(encoding="utf-8")))
