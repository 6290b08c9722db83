"""What a person does on the page, step by step."""

from __future__ import annotations

import base64
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


def choose(page, *, sigma: str = "", quality: str = "") -> None:
    """How much noise, and how well to denoise."""
    if sigma:
        page.fill("#sigma", sigma)
        page.press("#sigma", "Enter")
    if quality:
        page.select_option("#quality", quality)


def wait_for_noise(page) -> None:
    """Until the noise of the whole frame is known."""
    until(page, "!document.querySelector('[data-mode=noise]').disabled")


def wait_for_whole(page) -> None:
    """Until the whole picture can be saved; what goes wrong ends the waiting."""
    until(page, "!document.getElementById('save').disabled || !document.getElementById('problem').hidden")
    assert page.is_hidden("#problem"), page.inner_text("#problem")


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
    """What the canvas shows once nothing more is under way for it."""
    until(page, "document.getElementById('viewer').getAttribute('aria-busy') === 'false'")
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
    canvas = page.locator("#viewer canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=5)
    page.mouse.up()


def shown_modes(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('[data-mode]:enabled')].map((button) => button.dataset.mode)")


def legend(page) -> list[float]:
    """The values at the two ends of the scale below a map."""
    until(page, "!document.getElementById('legend').hidden")
    settled(page)
    return [float(page.inner_text(f"#legend-{end}").replace("−", "-")) for end in ("low", "high")]


def drop(page, *paths: Path) -> None:
    """Drop files onto the page, as a hand would."""
    files = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths]
    page.evaluate(
        "(files) => { const carried = new DataTransfer(); for (const [name, text] of files)"
        " carried.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));"
        " for (const type of ['dragover', 'drop'])"
        " document.body.dispatchEvent(new DragEvent(type, { dataTransfer: carried, bubbles: true })); }",
        files,
    )
