"""What a program may send to the server, whole or broken: one line answers it, and no request spoils another."""

import asyncio
import io
import json
import time
import zipfile
from contextlib import asynccontextmanager

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the page is the extra heatprior[app]")
pytest.importorskip("uvicorn", reason="the page is the extra heatprior[app]")

from heatprior.app import routes
from heatprior.app.server import application

HOST, TOKEN = "127.0.0.1:8000", "right"
JSON = "application/json"
LARGEST = 50_000  # bytes of a file
REFUSED = range(400, 500)


class Page:
    """A tab with one picture; speaks ASGI with the server."""

    def __init__(self, app):
        self.app = app

    async def ask(self, method, path, body=b"", content_type=JSON, query="", pause=0.0):
        pieces = [body[place : place + 1000] for place in range(0, max(len(body), 1), 1000)]
        headers = {"host": HOST, "x-heatprior-token": TOKEN, "content-type": content_type}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "root_path": "",
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 1),
        }
        status, content = 0, []

        async def receive():
            if not pieces:
                await asyncio.sleep(3600)
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message):
            nonlocal status
            status = message.get("status", status)
            content.append(message.get("body", b""))
            await asyncio.sleep(pause)  # as a slow browser does

        await self.app(scope, receive, send)
        return status, b"".join(content)

    async def post(self, path, **settings):
        status, content = await self.ask("POST", path, json.dumps(settings).encode())
        assert status == 200, content
        return json.loads(content)

    async def denoise(self):
        job = await self.post(f"{self.picture}/jobs", kind="denoise", sigma=10, quality="fast")
        while (await self.ask("GET", f"{self.tab}/jobs/{job['job']}", query="wait=20"))[1].count(b'"done"') == 0:
            await asyncio.sleep(0.05)
        return json.loads((await self.ask("GET", f"{self.tab}/jobs/{job['job']}"))[1])["result"]


@asynccontextmanager
async def open_page(folder):
    page = Page(application(folder, TOKEN, frozenset({HOST}), LARGEST))
    page.tab = f"/api/tabs/{(await page.post('/api/tabs'))['tab']}"
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).integers(90, 120, (64, 64)).astype(np.uint8))
    status, content = await page.ask("PUT", f"{page.tab}/pictures", file.getvalue(), "", "name=a.npy")
    assert status == 200
    page.picture = f"{page.tab}/pictures/{json.loads(content)['picture']}"
    yield page
    await page.ask("POST", f"{page.tab}/close")


def with_page(folder, act):
    async def run():
        async with open_page(folder) as page:
            return await act(page)

    return asyncio.run(run())


BROKEN = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"denoise"',
    b"\xff\xfe\x00",
    b"[" * 50_000,
    b'{"kind":' + b"9" * 5000 + b"}",
    b'{"kind": "denoise", "sigma": 1' + b"0" * 400 + b"}",
    b'{"kind": "denoise", "sigma": {}}',
    b'{"kind": "denoise", "sigma": [1]}',
    b'{"kind": "denoise", "sigma": NaN}',
    b'{"kind": "denoise", "sigma": 1e999}',
    b'{"kind": "denoise", "strength": "much"}',
    b'{"kind": "denoise", "quality": ["fast"]}',
    b'{"kind": "estimate", "frame": 1e999}',
    b'{"kind": "estimate", "frame": null}',
    b'{"kind": "estimate", "frame": {}}',
    b'{"kind": "restore"}',
    b'{"kind": "restore", "task": []}',
    b'{"kind": "restore", "task": "upscale", "factor": NaN}',
    b'{"kind": "restore", "task": "deblur", "width": 1' + b"0" * 400 + b"}",
    b'{"kind": ["denoise"]}',
    b'{"place": ""}',
    b'{"place": "../a.npy"}',
    b'{"place": "' + b"a/" * 3000 + b'a.npy"}',
    b'{"place": {}}',
    b'{"place": "a\\u0000.npy"}',
    b'{"place": "\\ud800.npy"}',
    b'{"result": "none"}',
    b'{"result": []}',
]


@pytest.mark.parametrize("route", ["jobs", "keep"])
def test_broken_settings_are_refused_in_one_line(tmp_path, capsys, route):
    async def act(page):
        return [await page.ask("POST", f"{page.picture}/{route}", body) for body in BROKEN]

    for body, (status, content) in zip(BROKEN, with_page(tmp_path, act), strict=True):
        assert status in REFUSED, body[:60]
        words = json.loads(content)["error"]
        assert "\n" not in words
        assert ";" in words, words  # what is wrong; how to mend it
        assert str(tmp_path) not in words
    assert not capsys.readouterr().err


@pytest.mark.parametrize("route", ["jobs", "keep"])
def test_settings_have_a_limit_and_a_type(tmp_path, route):
    huge = json.dumps({"kind": "denoise", "more": "a" * routes.MOST_WORDS}).encode()

    async def act(page):
        path = f"{page.picture}/{route}"
        return await page.ask("POST", path, huge), await page.ask("POST", path, b"{}", "text/plain")

    (status, content), (other, _) = with_page(tmp_path, act)
    assert (status, str(routes.MOST_WORDS) in json.loads(content)["error"]) == (413, True)
    assert other in REFUSED


def test_a_file_beyond_the_limit_leaves_nothing(tmp_path):
    async def act(page):
        mask = await page.ask("PUT", f"{page.picture}/mask", bytes(LARGEST + 1), "image/png")
        nonsense = await page.ask("PUT", f"{page.picture}/mask", b"no png", "image/png")
        picture = await page.ask("PUT", f"{page.tab}/pictures", bytes(LARGEST + 1), "", "name=b.npy")
        return (mask[0], nonsense[0], picture[0]), sorted(file.name for file in tmp_path.rglob("*") if file.is_file())

    assert with_page(tmp_path, act) == ((413, 422, 413), ["a.npy"])


@pytest.mark.parametrize(
    "query",
    [
        "",
        "x=1",
        "x=a&y=0&w=9&h=9&step=1",
        "x=0&y=0&w=9&h=9&step=3",
        "x=0&y=0&w=9&h=9&step=1&layer=no",
        "x=0&y=0&w=9&h=9&step=1&frame=a",
        "x=0&y=0&w=9&h=9&step=1&sigma=nan",
        "x=0&y=0&w=9&h=9&step=1&strength=inf",
        "x=0&y=0&w=9&h=9&step=1&result=r9",
        f"x={'9' * 5000}&y=0&w=9&h=9&step=1",
        "x=-9&y=-9&w=9&h=9&step=1",
    ],
)
def test_a_view_of_nonsense_is_refused(tmp_path, capsys, query):
    status, content = with_page(tmp_path, lambda page: page.ask("GET", f"{page.picture}/view", query=query))
    assert status in REFUSED, content
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/priors/none", ""),
        ("/api/priors/patch7/potentials", "sigma=a"),
        ("/api/priors/patch7/expert", "filter=a"),
        ("/api/priors/patch7/samples", "seed=a"),
        ("/api/priors/patch7/samples", "sigma=nan"),
        ("{picture}/noise", "frame=a"),
        ("{picture}/likelihood", "frame=a"),
        ("{picture}/likelihood", "prior=no"),
        ("{picture}/save", "name=../a.npy"),
        ("{picture}/save", "result=r9"),
        ("{tab}/jobs/none", ""),
        ("{tab}/jobs/none", "wait=a"),
        ("{tab}/saved.zip", ""),
        ("{tab}/pictures/none/view", ""),
        ("/api/tabs/none", ""),
        ("/api/none", ""),
    ],
)
def test_other_questions_of_nonsense_are_refused(tmp_path, capsys, path, query):
    def act(page):
        return page.ask("GET", path.format(picture=page.picture, tab=page.tab), query=query)

    status, content = with_page(tmp_path, act)
    assert status in REFUSED, content
    assert not capsys.readouterr().err


def test_archives_sent_at_once_are_all_whole(monkeypatch, tmp_path):
    """Each has a file of its own: in a common one, the second empties what the first is being sent from."""
    write = zipfile.ZipFile.write

    def write_slowly(*given):
        time.sleep(0.3)
        write(*given)

    async def act(page):
        result = await page.denoise()
        await page.post(f"{page.picture}/keep", result=result, place="x/a.npy")
        first = asyncio.create_task(page.ask("GET", f"{page.tab}/saved.zip", pause=0.2))
        await asyncio.sleep(0.1)
        monkeypatch.setattr(zipfile.ZipFile, "write", write_slowly)
        archives = [await page.ask("GET", f"{page.tab}/saved.zip"), await first]
        await page.ask("GET", f"{page.picture}/save", query=f"result={result}")
        return archives, {path.name for path in tmp_path.rglob("*") if path.name.startswith(("tmp", "denoised"))}

    archives, left = with_page(tmp_path, act)
    for status, content in archives:
        assert status == 200
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.namelist() == ["x/a.npy"]
            assert np.load(io.BytesIO(archive.read("x/a.npy"))).shape == (64, 64)
    assert left == set()
