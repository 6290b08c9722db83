"""How long people wait for the page: from a 12-megapixel photograph to its first denoised view, from strength to view.

Run with a Chromium: HEATPRIOR_CHROMIUM=/usr/bin/chromium python benchmarks/bench_app.py. Needs the extra testapp.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
from measure import write_result

SHAPE = (3000, 4000)
SIGMA, SEED = 15.0, 22
MOVES, REPEATS = 30, 3
ASKED = 0.3  # seconds from a move of the strength to the new view
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"


def photograph(path: Path) -> None:
    """scikit-image's astronaut, tiled by mirrors to 12 megapixels, with noise, as a JPEG of quality 95."""
    from PIL import Image
    from skimage import data

    tile = cast(Any, data).astronaut()
    tile = np.concatenate([tile, tile[:, ::-1]], axis=1)
    tile = np.concatenate([tile, tile[::-1]])
    counts = [-(-wanted // side) for wanted, side in zip(SHAPE, tile.shape[:2], strict=True)]
    clean = np.tile(tile, (*counts, 1))[: SHAPE[0], : SHAPE[1]]
    noisy = clean + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape, dtype=np.float32)
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save(path, quality=95)


def measures(page: Any, name: str) -> list[float]:
    found: list[float] = page.evaluate(f"performance.getEntriesByName('{name}').map((entry) => entry.duration / 1000)")
    return found


def wait_for(page: Any, name: str, count: int) -> None:
    end = time.monotonic() + 600
    while len(measures(page, name)) < count:
        if time.monotonic() > end:
            raise TimeoutError(name)
        time.sleep(0.02)


def open_photograph(browser: Any, url: str, path: Path) -> tuple[Any, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    page.set_input_files("#files", str(path))
    wait_for(page, "given to first view", 1)
    return page, measures(page, "given to first view")[0]


def move_strength(page: Any, zoom: str) -> list[float]:
    """Seconds from each of several movements to the view that it gives, the whole picture being denoised meanwhile."""
    page.click(zoom)
    time.sleep(1.0)
    page.evaluate("performance.clearMeasures()")
    for move in range(MOVES):
        value = int(40 * np.sin(0.7 * move)) or 1
        page.eval_on_selector(
            "#strength", "(s, v) => { s.value = v; s.dispatchEvent(new Event('input', { bubbles: true })); }", value
        )
        wait_for(page, "strength to view", move + 1)
        time.sleep(0.1 if move % 5 else 1.2)  # now and then long enough for the whole picture to be begun
    return measures(page, "strength to view")


def main() -> None:
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "heatprior", "app", "--no-browser"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            path = Path(folder) / "photograph.jpg"
            photograph(path)
            with sync_playwright() as playwright:
                chromium = os.environ.get("HEATPRIOR_CHROMIUM", "/usr/bin/chromium")
                browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
                first = []
                for _ in range(REPEATS):
                    page, seconds = open_photograph(browser, found[0], path)
                    first.append(seconds)
                    if len(first) < REPEATS:
                        page.close()
                moves = {name: move_strength(page, zoom) for name, zoom in (("fit", "#fit"), ("1:1", "#one"))}
                browser.close()
        finally:
            server.terminate()
    result = {
        "picture": {"shape": [*SHAPE, 3], "sigma": SIGMA, "seed": SEED, "format": "JPEG"},
        "drop_to_first_view_seconds": {"median": statistics.median(first), "worst": max(first), "all": first},
        "strength_to_view_seconds": {
            name: {
                "median": statistics.median(values),
                "worst": max(values),
                "within_0.3": sum(value <= ASKED for value in values),
                "moves": len(values),
                "all": [round(value, 3) for value in values],
            }
            for name, values in moves.items()
        },
    }
    write_result("bench_app", result)
    print(result["drop_to_first_view_seconds"], result["strength_to_view_seconds"])


if __name__ == "__main__":
    main()
