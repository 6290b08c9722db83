"""Filters, potentials and empirical marginals, 7×7, 15×15 and trained at one noise level: figures of the paper.

    python experiments/filters.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce --only filters7 --only filters15 --only single`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "--only", "filters7", "--only", "filters15", "--only", "single", *sys.argv[1:]]))
