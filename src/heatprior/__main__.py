"""`python -m heatprior` is the command `heatprior`."""

from __future__ import annotations

import sys

from heatprior.cli import main

if __name__ == "__main__":
    sys.exit(main())
