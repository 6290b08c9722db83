"""One piece of work at a time in a thread of napari, with its progress, until it is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

from napari.qt.threading import create_worker
from qtpy.QtCore import QTimer

from napari_heatprior.requests import Cancelled, Progress

NEWS = 100  # ms between two looks at the progress


class Background:
    """Runs `work(progress)`, and tells its end to one of three: done, failed, cancelled."""

    def __init__(
        self,
        on_progress: Progress,
        done: Callable[[Any], None],
        failed: Callable[[BaseException], None],
        cancelled: Callable[[], None],
    ) -> None:
        self._done, self._failed, self._cancelled = done, failed, cancelled
        self._unwanted: Event | None = None
        self._fraction = 0.0
        self._timer = QTimer()
        self._timer.setInterval(NEWS)
        self._timer.timeout.connect(lambda: on_progress(self._fraction))

    @property
    def is_running(self) -> bool:
        """Whether something is under way."""
        return self._unwanted is not None

    def start(self, work: Callable[[Progress], Any]) -> None:
        """Begin; what was under way before is cancelled, and no longer heard of."""
        self.cancel()
        unwanted = self._unwanted = Event()
        self._fraction = 0.0

        def progress(fraction: float) -> None:
            if unwanted.is_set():
                raise Cancelled
            if self._unwanted is unwanted:
                self._fraction = fraction

        def run() -> tuple[str, Any]:
            try:
                progress(0.0)
                outcome = work(progress)
            except Cancelled:
                return "cancelled", None
            except Exception as error:  # told in the widget: napari goes on
                return "failed", error
            return ("cancelled", None) if unwanted.is_set() else ("done", outcome)

        def returned(result: tuple[str, Any]) -> None:
            if self._unwanted is not unwanted:
                return  # another piece of work has taken its place
            self._unwanted = None
            self._timer.stop()
            state, value = result
            {"done": self._done, "failed": self._failed, "cancelled": lambda _: self._cancelled()}[state](value)

        self._worker = create_worker(run, _connect={"returned": returned})
        self._timer.start()

    def cancel(self) -> None:
        """Ask the work to end; it does so between two bands of the image."""
        if self._unwanted is not None:
            self._unwanted.set()
