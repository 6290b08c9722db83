"""NMSE_κ of the experts against the marginals over the noise level: the last plot of the paper's appendix.

    python experiments/discrepancy.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce --only discrepancy`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "--only", "discrepancy", *sys.argv[1:]]))
