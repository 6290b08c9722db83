"""How fast Algorithm 1 converges, and what B = 3 steps leave to be done.

    python experiments/projection.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce --only projection`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "--only", "projection", *sys.argv[1:]]))
