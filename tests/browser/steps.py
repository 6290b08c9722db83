"""What a person does on the page, step by step."""

from __future__ import annotations

import time
from pathlib import Path

from page_server import PATIENCE


def until(page, expression: str, seconds: float = PATIENCE):
    """Wait for a JavaScript expression to be true; the page itself must not evaluate strings."""
    end = time.monotonic() + seconds
    while not (value := page.evaluate(expression)):
        assert time.monotonic() < end, f"not within {seconds:g} s: {expression}"
        time.sleep(0.05)
    return value


def give(page, path: Path) -> None:
    """Choose a file; returns when its first denoised view is there."""
    page.evaluate("performance.clearMeasures()")
    page.set_input_files("#files", str(path))
    until(page, "performance.getEntriesByName('given to first view').length > 0")


def wait_for_whole(page) -> None:
    until(page, "!document.getElementById('save').disabled")


def save(page, button: str = "#save") -> bytes:
    with page.expect_download() as download:
        page.click(button)
    return Path(download.value.path()).read_bytes()


def set_range(page, selector: str, value: float) -> None:
    page.eval_on_selector(
        selector,
        "(slider, value) => { slider.value = value; for (const name of ['input', 'change']) "
        "slider.dispatchEvent(new Event(name, { bubbles: true })); }",
        value,
    )


def seen(page) -> str:
    """A fingerprint of what the canvas shows."""
    return page.evaluate(
        "(() => { const c = document.querySelector('#viewer canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let h = 0; for (let i = 0; i < d.length; i += 97) h = (h * 31 + d[i]) | 0; return String(h); })()"
    )


def settled(page) -> str:
    until(page, "document.getElementById('busy').hidden")
    return seen(page)


def begin_restoring(page, path: Path, task: str) -> None:
    """Open a file in the view that restores, and choose what is to be done."""
    page.click("[data-view=restore]")
    page.set_input_files("#files", str(path))
    page.wait_for_selector("#restore-settings")
    page.check(f"[name=task][value={task}]")
    settled(page)


def paint(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A stroke over the picture, between two places in parts of the canvas."""
    box = page.locator("#viewer canvas").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=5)
    page.mouse.up()


def shown_modes(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('[data-mode]:enabled')].map((button) => button.dataset.mode)")
