"""Every view of the page, in both themes and on a small screen: pictures to look at, and what axe-core finds.

`python tests/browser/views.py FOLDER [PICTURE]` writes both there, denoised by the default prior; docs/app-denoise.png,
app-fill-in.png and app-prior.png are its denoise-light, fill-in-dark and prior-light. `make test-app` asks for nothing
serious on any.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_server import FLAGS, Server
from PIL import Image
from steps import choose, paint, set_range, settled, until, wait_for_noise, wait_for_whole

from paper.records import write_record

SERIOUS = ("serious", "critical")
SCREENS = {"light": (1280, 800), "dark": (1280, 800), "small-light": (360, 740), "small-dark": (360, 740)}


def _denoise(page) -> None:
    page.check("#error")
    wait_for_noise(page)
    wait_for_whole(page)


def _map(mode: str) -> Callable[[Any], None]:
    def show(page) -> None:
        page.click(f"[data-mode={mode}]")

    return show


def _queue(page) -> None:
    page.click("[data-mode=wipe]")
    names = ("one.png", "two.png", "not a picture.png")
    page.set_input_files("#files", [{"name": name, "mimeType": "image/png", "buffer": b"x"} for name in names])
    page.click("#queue-start")
    until(page, "document.querySelectorAll('.queue-list .failed').length === 3")


def _task(name: str) -> Callable[[Any], None]:
    def show(page) -> None:
        page.click("[data-view=restore]")
        page.check(f"[name=task][value={name}]")
        if name == "inpaint":
            paint(page, (0.6, 0.5), (0.68, 0.68))
            paint(page, (0.68, 0.68), (0.77, 0.5))

    return show


def _moved(page) -> None:
    page.check("[name=task][value=deblur]")
    page.select_option("#blur", "motion")


def _prior(page) -> None:
    page.click("[data-view=prior]")
    until(page, "document.querySelectorAll('.filter .curve').length === 48")
    until(page, "document.querySelector('.likelihood .curve') !== null")
    set_range(page, ".sigma", 45)
    until(page, "document.querySelector('.potential .plot').getAttribute('aria-label').endsWith('0.081')")


VIEWS: dict[str, Callable[[Any], None]] = {
    "empty": lambda _: None,
    "denoise": _denoise,
    "difference": _map("difference"),
    "noise-map": _map("noise"),
    "error-map": _map("error"),
    "queue": _queue,
    "deblur": _task("deblur"),
    "deblur-motion": _moved,
    "fill-in": _task("inpaint"),
    "enlarge": _task("upscale"),
    "prior": _prior,
}


def options_of(screen: str) -> dict[str, Any]:
    """Of a new context of the browser."""
    width, height = SCREENS[screen]
    small = {"has_touch": True, "device_scale_factor": 2} if screen.startswith("small") else {}
    return {"viewport": {"width": width, "height": height}, "color_scheme": screen.removeprefix("small-"), **small}


def each_view(page, picture: Path | None = None, quality: str = "fast"):
    """Go through all of them, with a picture or the example of the page; gives the name of each once it is there."""
    for name, show in VIEWS.items():
        show(page)
        if name not in ("empty", "prior"):
            settled(page)
        yield name
        if name == "empty":
            page.set_input_files("#files", str(picture)) if picture else page.click("#sample")
            until(page, "document.getElementById('name').textContent !== ''")
            choose(page, quality=quality)


def violations(page, axe: str) -> list[dict[str, Any]]:
    """What axe-core finds: its rule, how grave it is, and where."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        {
            "rule": fault["id"],
            "impact": fault["impact"],
            "where": node["html"][:120],
            "why": node["failureSummary"][:200],
        }
        for fault in found
        for node in fault["nodes"]
    ]


def _save(picture: bytes, path: Path) -> None:
    """In 256 colours, a third of the bytes."""
    shown = Image.open(io.BytesIO(picture)).convert("RGB")
    shown.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def main(folder: Path, picture: Path | None = None) -> None:
    """Pictures of all views, and the record of axe-core."""
    from playwright.sync_api import sync_playwright

    axe = Path(os.environ["HEATPRIOR_AXE"]).read_text()
    folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"views": {}}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        server = Server(Path(scratch))
        browser = playwright.chromium.launch(executable_path=os.environ["HEATPRIOR_CHROMIUM"], args=FLAGS.split())
        record["chromium"] = browser.version
        for screen in SCREENS:
            page = browser.new_context(**options_of(screen)).new_page()
            page.set_default_timeout(600_000)
            page.goto(server.url)
            page.wait_for_selector("html[data-ready]")
            for name in each_view(page, picture, "default"):
                _save(page.screenshot(full_page=screen.startswith("small")), folder / f"{name}-{screen}.png")
                record["views"][f"{name}, {screen}"] = violations(page, axe)
            record["axe-core"] = page.evaluate("axe.version")
            page.close()
        browser.close()
        server.end()
    write_record(folder / "app-accessibility.json", record)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
