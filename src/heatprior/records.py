"""Measured figures as JSON, with what made them: version, commit, time and kind of machine."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heatprior.files import replacing


def write_record(path: Path, result: Mapping[str, Any]) -> None:
    """Write `result`, and beside it where it comes from; the folder is made if it is not there."""
    about = {
        "commit": commit_of(path.parent),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({**about, **result}, indent=2) + "\n")


def commit_of(folder: Path) -> str:
    """The commit of the checkout that the record is written into, or "unknown"."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder.parent), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return answer.stdout.strip()
