"""What came of each test, for `.ci/outcomes.py`: written where HEATPRIOR_OUTCOMES says, beside what is there already.

One suite runs in several environments, none of which has everything. A test may be skipped in some of them, not in all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


class Outcomes:
    """Which tests, and modules of them, passed, failed or were skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.found[report.nodeid] = "skipped"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":  # an expected failure is "skipped": it did run
            self.found[report.nodeid] = "passed" if hasattr(report, "wasxfail") else report.outcome

    def pytest_sessionfinish(self) -> None:
        before = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(before | self.found, indent=0, sort_keys=True))


def pytest_configure(config: pytest.Config) -> None:
    place = os.environ.get("HEATPRIOR_OUTCOMES")
    if place and not hasattr(config, "workerinput"):  # what workers find is told to the process that began them
        config.pluginmanager.register(Outcomes(Path(place).absolute()))
