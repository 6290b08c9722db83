"""The fuzzer stays usable: every seed is sound, some mutants keep the laws, and the laws notice what they are for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "fuzz").is_dir(), reason="the fuzzer is part of the repository only")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_seeds_are_sound_and_some_mutants_keep_the_laws():
    done = python("fuzz", "--count", "150")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 cases, 0 broke a law" in done.stdout


@pytest.mark.parametrize("kind", ["denoise", "train"])
def test_a_process_that_is_killed_leaves_nothing_partial_and_the_next_goes_on(kind: str):
    done = python("fuzz.kills", "4", "--only", kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 kills, 0 wrong" in done.stdout


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"code": 0, "traceback": "Traceback …\nIndexError: 7"}, "IndexError"),
        ({"code": -11}, "exit code -11"),
        ({"err": "TIFFReadDirectory: Warning\n"}, "said"),
        ({"code": 2}, "0 lines of errors"),
        ({"seconds": 21.0}, "21 s"),
        ({"memory": 400 << 20}, "400 MB"),
        ({"computed": {"out.npy": np.ones((16, 20), np.uint8)}}, "not what was computed"),
        ({"computed": {}}, "who wrote"),
        ({"input": b"other"}, "changed"),
        ({"hidden": True}, "left .out behind"),
        ({"output": b"no array"}, "cannot be read"),
        ({"output": None}, "no out.npy"),
        ({}, None),
    ],
)
def test_the_laws_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], complaint: str | None
):
    monkeypatch.syspath_prepend(str(ROOT))
    from fuzz.cases import Case
    from fuzz.laws import Outcome, broken_laws

    pixels = np.zeros((16, 20), np.uint8)
    np.save(tmp_path / "image.npy", pixels)
    case = Case({"image.npy": (tmp_path / "image.npy").read_bytes()}, [], ("out.npy",))
    (tmp_path / "out.npy").write_bytes(case.files["image.npy"])
    if "input" in change:
        (tmp_path / "image.npy").write_bytes(change.pop("input"))
    if change.pop("hidden", False):
        (tmp_path / ".out").touch()
    if "output" in change:
        content = change.pop("output")
        (tmp_path / "out.npy").unlink() if content is None else (tmp_path / "out.npy").write_bytes(content)
    outcome = Outcome(0, "", "", "", 0.1, 1 << 20, {"out.npy": pixels})._replace(**change)
    found = broken_laws(case, outcome, tmp_path)
    assert (found == []) if complaint is None else any(complaint in law for law in found), found


def test_the_page_says_what_the_records_hold():
    page = (ROOT / "docs" / "robustness.md").read_text()
    cases = json.loads((ROOT / "records" / "fuzz-cases.json").read_text())
    kills = json.loads((ROOT / "records" / "fuzz-kills.json").read_text())
    mended = sum(len(target["mended"]) for target in cases["targets"].values())
    memory = max(target["most_memory_mb"] for target in cases["targets"].values())
    assert cases["cases"] == sum(target["cases"] for target in cases["targets"].values())
    assert cases["broken"] == sum(len(target["broken"]) for target in cases["targets"].values()) == 0
    assert f"{cases['cases']:,} cases, {mended} of them mended, none breaks a law. At most {memory} MB" in page
    counts = [f"{kills[kind]['kills']} kills of `{kind}`" for kind in ("denoise", "train")]
    wrong = sum(len(kills[kind]["wrong"]) for kind in ("denoise", "train"))
    assert f"of {counts[0]} and {counts[1].replace(' kills', '')}, {wrong} wrong" in page


def test_a_record_goes_on_and_what_keeps_the_laws_again_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from fuzz.record import Record
    from fuzz.worker import Verdict

    record = Record(tmp_path / "record.json", ["tiff"], first=7)
    record.tallies["tiff"].count(7, Verdict(0, [], 0.5, 3 << 20))
    record.tallies["tiff"].count(8, Verdict(None, ["hangs"], 40.0, 0))
    record.write()
    again = Record(tmp_path / "record.json", ["tiff", "png"], first=0)
    assert (again.cases, again.broken, again.tallies["tiff"].next) == (2, [("tiff", 8)], 9)
    again.tallies["tiff"].count(8, Verdict(2, [], 0.1, 0))
    again.tallies["png"].count(0, Verdict(0, [], 0.1, 0))
    again.write()
    assert (again.cases, again.broken, again.tallies["tiff"].mended) == (3, [], {"8": ["hangs"]})
    assert [part["cases"] for part in again.parts] == [2, 1]


@pytest.mark.parametrize(("kind", "complaint"), [("colours", "from what it means"), ("turns", "turning changes it")])
def test_the_laws_notice_what_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, complaint: str):
    """Outputs as they are meant keep the laws; brighter by 9 grey levels, or changed in a pixel, they do not."""
    monkeypatch.syspath_prepend(str(ROOT))
    from random import Random

    from PIL import Image

    from fuzz import meanings
    from fuzz.cases import Case
    from fuzz.laws import Outcome, broken_laws

    meaning = getattr(meanings, kind)(Random(0))
    case = Case(dict(meaning.files), meaning.arguments, meaning.outputs, meaning=meaning)
    case.write(tmp_path)
    done = Outcome(0, "", "", "", 0.1, 0, {})
    for name in meaning.outputs:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        right = meaning.near[0] if meaning.near else np.asarray(Image.open(tmp_path / "images" / Path(name).name))
        Image.fromarray(right.astype(np.uint8)).save(tmp_path / name, lossless=True)
    assert broken_laws(case, done, tmp_path) == []
    last = tmp_path / meaning.outputs[-1]
    Image.fromarray(np.asarray(Image.open(last)) + np.uint8(9)).save(last, lossless=True)
    assert complaint in broken_laws(case, done, tmp_path)[0]
