"""Work on a whole picture: estimating its noise, denoising it, in the background, with progress, until cancelled."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from heatprior.app.overheard import overhearing
from heatprior.app.turns import CancelledByUserError, Turns
from heatprior.errors import HeatpriorError
from heatprior.kernels.row_bands import Progress
from heatprior.kernels.threads import in_background, step_back

Work = Callable[[Progress], dict[str, Any]]  # what is told to the page in the end
FINISHED = ("done", "failed", "cancelled")


class LongJob:
    """One piece of work in a thread of its own, which computes only while it is the turn of its tab."""

    def __init__(self, tab: str, work: Work, turns: Turns, explain: Callable[[str], str]) -> None:
        self.number = secrets.token_urlsafe(8)
        self.tab, self._work, self._turns, self._explain = tab, work, turns, explain
        self.state, self.fraction, self.error = "waiting", 0.0, ""
        self.outcome: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._ticket: object = None
        self._unwanted = Event()
        self._begun = time.monotonic()
        self._thread = Thread(target=self._run, name=f"job-{self.number}", daemon=True)

    def start(self) -> LongJob:
        """Begin to wait for a turn."""
        self._thread.start()
        return self

    def cancel(self) -> None:
        """End it at the next band of the picture; nothing of it stays."""
        self._unwanted.set()
        self._turns.wake()

    def wait(self, seconds: float) -> None:
        """Until it has ended, or for so long."""
        self._thread.join(seconds)

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in FINISHED

    def status(self) -> dict[str, Any]:
        """How it stands, as the page is told."""
        running = self.state == "running" and 0.02 < self.fraction < 1.0
        seconds = time.monotonic() - self._begun
        return {
            "job": self.number,
            "state": "cancelling" if self._unwanted.is_set() and not self.is_finished else self.state,
            "progress": round(self.fraction, 4),
            "left": round(seconds * (1.0 - self.fraction) / self.fraction, 1) if running else None,
            "error": self.error,
            "warnings": self.warnings,
            **self.outcome,
        }

    def _run(self) -> None:
        step_back()
        try:
            with in_background(), overhearing() as self.warnings:
                self._ticket = self._turns.take(self.tab, self._unwanted.is_set)
                self.state, self._begun = "running", time.monotonic()
                self.outcome = self._work(self._progress)
            self.state, self.fraction = "done", 1.0
        except CancelledByUserError:
            self.state = "cancelled"
        except HeatpriorError as error:
            self._fail(str(error))
        except MemoryError:
            self._fail("not enough memory for this picture; close other pictures, or cut it into parts")
        except Exception as error:  # a server goes on, whatever happens to one job
            if self._unwanted.is_set():  # the server ends, and its threads with it
                self.state = "cancelled"
                return
            sys.stderr.write(f"heatprior: error: {type(error).__name__}: {error}\n")
            self._fail(f"something unexpected happened ({type(error).__name__}: {str(error)[:200]}); please report it")
        finally:
            self._turns.give(self._ticket)

    def _fail(self, reason: str) -> None:
        self.error, self.state = self._explain(" ".join(reason.split())), "failed"

    def _progress(self, fraction: float) -> None:
        """Called between bands, with no lock held: where a job can end, or let others go first."""
        self.fraction = max(self.fraction, min(float(fraction), 1.0))
        if self._unwanted.is_set():
            raise CancelledByUserError
        if self._turns.is_due(self.tab):
            self._turns.give(self._ticket)
            self._ticket = self._turns.take(self.tab, self._unwanted.is_set)


def end_all(jobs: list[LongJob], seconds: float = 5.0) -> None:
    """Cancel jobs and wait a little for them, so that nothing is written after their folder has gone."""
    for job in jobs:
        job.cancel()
    limit = time.monotonic() + seconds
    for job in jobs:
        with suppress(RuntimeError):  # never begun
            job.wait(max(0.0, limit - time.monotonic()))
