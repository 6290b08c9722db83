"""`heatprior app` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import ClassVar

LARGEST_MB = 40  # of the server under test
PATIENCE = float(os.environ.get("HEATPRIOR_PATIENCE", "300"))  # seconds that one step may take on a slow machine
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"

# What Chromium itself writes to the console, where a test expects it.
REFUSED = r"Failed to load resource: the server responded with a status of 4\d\d"
GONE = r"Failed to load resource: net::ERR_"


class Server:
    """`heatprior app` in a process of its own; `running` are those that have not ended yet."""

    running: ClassVar[set[Server]] = set()

    def __init__(self, scratch: Path) -> None:
        command = [sys.executable, "-m", "heatprior", "app", "--no-browser", "--largest", str(LARGEST_MB)]
        self.scratch = scratch
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}
        )
        self.running.add(self)
        too_late = Timer(PATIENCE, self.process.kill)  # ends the line that is waited for
        too_late.start()
        assert self.process.stdout is not None
        found = re.search(r"http://([^/]+)/\?token=(\S+)", self.process.stdout.readline())
        too_late.cancel()
        assert found, "the server did not start"
        self.url, self.address, self.token = found[0], found[1], found[2]

    def end(self) -> int:
        self.process.terminate()
        return self.gone()

    def gone(self) -> int:
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()  # if it has not gone
            self.process.stdout.close()
            self.running.discard(self)

    def folders(self) -> list[Path]:
        return sorted(self.scratch.glob("heatprior-app-*"))
