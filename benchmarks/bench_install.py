"""What an installation costs: megabytes on disk by package, and how soon `heatprior --help` answers.

Each checkout is installed into a fresh environment, as by `pip install .`. Megabytes are those of the files (a million
bytes each), with the bytecode that pip writes and without; pip and setuptools are not counted. Help is the fastest of
some runs, in seconds of the clock, which a busy machine stretches, and of the processor. Run as
`python benchmarks/bench_install.py --before OTHER`, which measures another checkout too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from measure import ROOT, write_result

REPEATS = 10
LARGEST = 12  # packages that are named


def measure(checkout: Path, folder: Path) -> dict[str, Any]:
    """The record of a checkout that is installed into a new environment in `folder`."""
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([scripts / "python", "-m", "pip", "install", *quiet, checkout.resolve()], check=True)
    sizes = measure_packages(next(folder.rglob("site-packages")))
    total, bytecode = (sum(size[kind] for size in sizes.values()) for kind in ("all", "bytecode"))
    largest = sorted(sizes, key=lambda name: -sizes[name]["all"])[:LARGEST]
    return {
        "packages": len(sizes),
        "megabytes": round(total / 1e6),
        "without_bytecode": round((total - bytecode) / 1e6),
        "largest": {name: round(sizes[name]["all"] / 1e6, 1) for name in largest},
        "help": measure_help(scripts / "heatprior"),
    }


def measure_packages(site: Path) -> dict[str, Counter[str]]:
    """Bytes of every package of an environment, and of its bytecode."""
    sizes = {}
    for package in distributions(path=[str(site)]):
        name = package.metadata["Name"]
        if name in ("pip", "setuptools"):
            continue
        sizes[name] = Counter[str]()
        for path in (Path(str(package.locate_file(file))) for file in package.files or []):
            if path.is_file():
                sizes[name]["all"] += path.stat().st_size
                sizes[name]["bytecode"] += path.stat().st_size * (path.suffix == ".pyc")
    return sizes


def measure_help(command: Path) -> dict[str, float]:
    """Seconds until `heatprior --help` is done, from elsewhere, the fastest of some runs."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    times = []
    for _ in range(REPEATS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([command, "--help"], check=True, capture_output=True, cwd=command.parent, env=environment)
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    clocks, processors = zip(*times, strict=True)
    return {"clock": round(min(clocks), 2), "processor": round(min(processors), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, measured first")
    before = parser.parse_args().before
    record = {}
    for name, checkout in {"before": before, "now": ROOT}.items():
        if checkout is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            record[name] = measure(checkout, Path(folder))
    print(json.dumps(record, indent=2))
    write_result("bench_install", {"python": sys.version.split()[0], **record})


if __name__ == "__main__":
    main()
