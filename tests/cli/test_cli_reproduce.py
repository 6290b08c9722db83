from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Run, assert_refused
from synthetic import folder_of_images

from heatprior.reproduction import items
from heatprior.reproduction.projection import PROJECTION


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEATPRIOR_DATA", raising=False)
    small = replace(PROJECTION, full={"banks": 2, "steps": 12}, quick={"banks": 1, "steps": 12})
    monkeypatch.setattr(items, "ITEMS", tuple(small if item is PROJECTION else item for item in items.ITEMS))
    (tmp_path / "nothing").mkdir()
    (tmp_path / "notes.txt").write_text("precious")
    folder_of_images(tmp_path / "bsd68", 1, (20, 24))
    return tmp_path


@pytest.mark.usefixtures("workplace")
def test_an_item_is_made_once_and_told_in_a_line(run: Run):
    arguments = ("reproduce", "--only", "projection", "--quick")
    outcome = run(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    first, wrote = outcome.out.splitlines()
    assert first.startswith("projection        holds                   2 of 2 claims, ")
    assert wrote == "wrote out/reproduction-quick/index.html"
    assert run(*arguments).out.splitlines()[0].endswith("2 of 2 claims, done before")
    assert not run(*arguments, "--force").out.splitlines()[0].endswith("done before")
    assert sorted(path.name for path in Path("out/reproduction-quick").iterdir()) == [
        "index.html",
        "projection.json",
        "projection.png",
    ]


@pytest.mark.usefixtures("workplace")
def test_the_full_run_has_its_own_folder_and_one_can_be_chosen(run: Run):
    assert run("reproduce", "--only", "projection").out.endswith("wrote out/reproduction/index.html\n")
    assert run("reproduce", "--only", "projection", "--out", "here").out.endswith("wrote here/index.html\n")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("--only table2", "there are filters7, samples, table1"),
        ("--data nothing", "heatprior data"),
        ("--data nothing --only table1", "heatprior data"),
        ("--data nothing --retrain --only projection", "heatprior data"),
        ("--only projection --out notes.txt", "choose another place"),
        ("--only projection --out notes.txt/deeper", "choose another place"),
        ("--only", "--help"),
        ("--fast", "--help"),
        ("table1", "--help"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, workplace: Path, arguments: str, remedy: str):
    before = sorted(workplace.rglob("*"))
    assert_refused(run("reproduce", *arguments.split()), remedy)
    assert sorted(workplace.rglob("*")) == before
    assert (workplace / "notes.txt").read_text() == "precious"
