"""True noisy patches beside exact samples at five noise levels, with two-sample tests: a figure of the paper.

    python experiments/samples.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce --only samples`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "--only", "samples", *sys.argv[1:]]))
