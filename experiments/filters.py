"""Filters, potentials and empirical marginals, 7×7, 15×15, trained at one noise level, and trained as in the paper.

    python experiments/filters.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce` with `--only` for each of the items in `items`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    items = ("filters7", "filters15", "single", "paper-training7", "paper-training15")
    sys.exit(main(["reproduce", *(word for item in items for word in ("--only", item)), *sys.argv[1:]]))
