"""The page stands alone: one file, nothing fetched, every claim with its verdict."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from paper.claims.page import write_page

PNG = b"\x89PNG not really"


def record(name: str, holds, *, reason: str = "because", quick: bool = False) -> dict:
    return {
        "item": name,
        "title": f"Title of {name} & <more>",
        "place": "Figure 1",
        "paper": "It is <b>large</b>.",
        "verdict": "some verdict",
        "checks": [{"claim": "a < b", "measured": "1 < 2", "holds": holds, "reason": reason}],
        "tables": [{"caption": "numbers", "head": ["σ", "0.1"], "rows": [["error", "<1"]]}],
        "pictures": [{"file": f"{name}.png", "caption": "a 'picture' of \"it\""}],
        "seconds": 130.0,
        "depends_on": {"quick": quick},
        "commit": "abc",
        "time": "2026-01-01T00:00:00Z",
    }


class Reader(HTMLParser):
    """Notes every address, and that every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.identities: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        for key, value in attributes:
            if key in ("src", "href", "action", "data", "srcset"):
                self.addresses.append(value)
            if key == "id":
                self.identities.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.png").write_bytes(PNG)
    return tmp_path


def page_of(folder: Path, *records: dict) -> str:
    write_page(folder / "index.html", records, ["first", "second", "third"])
    return (folder / "index.html").read_text()


def test_the_page_asks_for_nothing_else(folder: Path):
    page = page_of(folder, record("first", True), record("second", False), record("third", None))
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.identities == ["first", "second", "third"]
    links = [address for address in reader.addresses if address.startswith("#")]
    assert links == ["#first", "#second", "#third"]
    pictures = [address for address in reader.addresses if not address.startswith("#")]
    assert pictures == ["data:image/png;base64," + base64.b64encode(PNG).decode()] * 3
    assert not re.search(r"https?:|url\(|@import|<script|<link", page)


def test_text_is_text(folder: Path):
    page = page_of(folder, record("first", True))
    assert "Title of first &amp; &lt;more&gt;" in page
    assert "It is &lt;b&gt;large&lt;/b&gt;." in page
    assert "&lt;1" in page


@pytest.mark.parametrize(("holds", "word", "told"), [(True, "yes", 0), (False, "no", 1), (None, "open", 1)])
def test_a_reason_is_given_where_a_claim_does_not_hold(folder: Path, holds, word: str, told: int):
    page = page_of(folder, record("first", holds))
    assert page.count('<p class="reason">because</p>') == told
    assert f'<span class="{word}">' in page


def test_a_quick_run_says_so_and_what_is_missing_is_named(folder: Path):
    assert "A quick run" in page_of(folder, record("first", True, quick=True))
    page = page_of(folder, record("first", True))
    assert "A quick run" not in page
    assert "Not made yet: second, third." in page
    assert "Not made yet: first, second, third." in page_of(folder)
