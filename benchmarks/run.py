"""Every benchmark, one after the other, each in a process of its own so that none disturbs the next.

    python benchmarks/run.py [NAME ...]

Each prints a table and writes records/bench_NAME.json. Run nothing else meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ["patch_prior", "training", "denoising", "mixture", "noise", "torch", "front"]


def main() -> int:
    for name in sys.argv[1:] or NAMES:
        print(f"== {name}", flush=True)
        if status := subprocess.run([sys.executable, str(HERE / f"bench_{name}.py")], check=False).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
