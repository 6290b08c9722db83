"""The mean of −log f over sigma and sqrt(2t), and its lowest points: the paper's figure of noise estimation.

    python experiments/noise_surface.py [--data DIR] [--quick] [--out DIR]

The same as `heatprior reproduce --only noise-estimation`.
"""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "--only", "noise-estimation", *sys.argv[1:]]))
