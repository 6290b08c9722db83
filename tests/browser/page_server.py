"""`heatprior app` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

LARGEST_MB = 40  # of the server under test
PATIENCE = float(os.environ.get("HEATPRIOR_PATIENCE", "600"))  # seconds that anything may take
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"

# What Chromium itself writes to the console, where a test expects it.
REFUSED = r"Failed to load resource: the server responded with a status of 4\d\d"
GONE = r"Failed to load resource: net::ERR_"


class Server:
    """`heatprior app` in a process of its own."""

    def __init__(self, scratch: Path) -> None:
        command = [sys.executable, "-m", "heatprior", "app", "--no-browser", "--largest", str(LARGEST_MB)]
        self.scratch = scratch
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}
        )
        assert self.process.stdout is not None
        found = re.search(r"http://([^/]+)/\?token=(\S+)", self.process.stdout.readline())
        assert found, "the server did not start"
        self.url, self.address, self.token = found[0], found[1], found[2]

    def end(self) -> int:
        self.process.terminate()
        return self.gone()

    def gone(self) -> int:
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def folders(self) -> list[Path]:
        return sorted(self.scratch.glob("heatprior-app-*"))
