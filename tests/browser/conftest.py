"""A server in a process of its own and a real Chromium that looks at it; no error, no foreign request goes unseen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from page_server import FLAGS, PATIENCE, Server

CHROMIUM = os.environ.get("HEATPRIOR_CHROMIUM", "")
LONGEST = 3 * PATIENCE  # seconds of one test

if not CHROMIUM:
    collect_ignore_glob = ["test_*.py"]  # make test-app sets it


@pytest.fixture(autouse=True)
def limit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each step has its limit; a browser that no longer answers has none, so that the whole run ends with it."""

    def give_up() -> None:
        for server in list(Server.running):
            server.process.kill()
        request.config.pluginmanager.getplugin("capturemanager").suspend_global_capture()
        print(f"\n{request.node.nodeid}: not over after {LONGEST:g} s; giving up", flush=True)
        os._exit(1)

    timer = Timer(LONGEST, give_up)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("scratch"))
    yield server
    server.end()
    assert server.folders() == []  # nothing stays


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split(), timeout=1000 * PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server) -> Iterator[Callable[..., object]]:
    """A new tab with the page; at the end, nothing but what was `expected` may have come to its console."""
    contexts, complaints, foreign = [], [], []

    def listen(page, expected, home):
        def complain(text):
            if not (expected and re.match(expected, text)):
                complaints.append(text)

        page.on("console", lambda message: message.type == "error" and complain(message.text))
        page.on("pageerror", lambda error: complain(str(error)))
        page.on("request", lambda request: home in request.url or foreign.append(request.url))

    def opened(url=None, *, expected="", **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        url = url or server.url
        listen(page, expected, url.split("?")[0])
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert foreign == []  # it works offline


@pytest.fixture
def page(open_page):
    return open_page()


def scene(shape: tuple[int, int], seed: int = 0, sigma: float = 0.08) -> np.ndarray:
    """Edges, shading and noise, grey levels 0 to 1."""
    y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
    clean = 0.35 + 0.3 * np.sin(7 * x + 3 * y) * np.cos(5 * y) + 0.25 * ((x - 0.4) ** 2 + (y - 0.3) ** 2 < 0.04)
    return np.clip(clean + np.random.default_rng(seed).normal(0, sigma, shape), 0, 1)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind that is tried."""
    import tifffile
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    Image.fromarray((65535 * scene((96, 120))).astype(np.uint16)).save(folder / "deep.png")
    colours = np.stack([scene((80, 110), seed) for seed in range(3)], axis=-1)
    Image.fromarray((255 * colours).astype(np.uint8)).save(folder / "colour.jpg", quality=95)
    stack = np.stack([(4095 * scene((48, 64), seed)).astype(np.uint16) * 16 for seed in range(3)])
    tifffile.imwrite(folder / "stack.tif", stack, photometric="minisblack", description="kept")
    for name, side in (("large.png", 1000), ("middle.png", 480)):
        Image.fromarray((255 * scene((side, side))).astype(np.uint8)).save(folder / name)
    Image.fromarray((255 * colours[20:68, 30:94]).astype(np.uint8)).save(folder / "small.png")
    Image.fromarray(255 * (np.arange(48)[:, None] // 3 == np.arange(64) // 4).astype(np.uint8)).save(
        folder / "scratch.png"
    )
    (folder / "broken.png").write_bytes((folder / "deep.png").read_bytes()[:3000])
    (folder / "text.png").write_text("not a picture")
    return folder


@pytest.fixture(scope="session")
def by_command(pictures: Path) -> Callable[..., bytes]:
    """What a command of `heatprior` makes of a file, byte by byte."""
    from heatprior.cli import main

    made = pictures / "made"
    made.mkdir()

    @cache
    def run(verb: str, name: str, *options: str) -> bytes:
        target = made / name
        assert main([verb, str(pictures / name), "-o", str(target), "--force", *options]) == 0
        return target.read_bytes()

    return run


@pytest.fixture(scope="session")
def denoised(by_command: Callable[..., bytes]) -> Callable[..., bytes]:
    """What `heatprior denoise` makes of a file."""
    return partial(by_command, "denoise")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, as npm has it."""
    return Path(os.environ["HEATPRIOR_AXE"]).read_text()
