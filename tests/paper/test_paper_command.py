from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Outcome
from synthetic import folder_of_images

from paper import __main__ as command
from paper.__main__ import main
from paper.claims import items
from paper.claims.projection import PROJECTION

Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Outcome:
        try:
            code = main(arguments)
        except SystemExit as refused:  # by argparse
            code = int(refused.code or 0)
        return Outcome(code, *capsys.readouterr())

    return run


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
    arguments = ("--only", "projection", "--quick")
    outcome = run(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    first, wrote = outcome.out.splitlines()
    assert first.startswith("projection        holds                   2 of 2 claims, ")
    assert wrote == "wrote out/paper-quick/index.html"
    assert run(*arguments).out.splitlines()[0].endswith("2 of 2 claims, done before")
    assert not run(*arguments, "--force").out.splitlines()[0].endswith("done before")
    assert sorted(path.name for path in Path("out/paper-quick").iterdir()) == [
        "index.html",
        "projection.json",
        "projection.png",
    ]


@pytest.mark.usefixtures("workplace")
def test_the_full_run_has_its_own_folder_and_one_can_be_chosen(run: Run):
    assert run("--only", "projection").out.endswith("wrote out/paper/index.html\n")
    assert run("--only", "projection", "--out", "here").out.endswith("wrote here/index.html\n")


def test_what_is_made_in_full_can_be_kept_for_the_documents(run: Run, workplace: Path, monkeypatch: pytest.MonkeyPatch):
    (workplace / "kept").mkdir()
    for name in ("RECORDS", "PICTURES"):
        monkeypatch.setattr(command, name, workplace / "kept")
    assert run("--only", "projection", "--keep").code == 0
    assert sorted(path.name for path in (workplace / "kept").iterdir()) == ["claim-projection.json", "projection.png"]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("--only table2", "there are filters7, samples, table1"),
        ("--data nothing", "python -m paper.bsds500"),
        ("--data nothing --only table1", "python -m paper.bsds500"),
        ("--data nothing --retrain --only projection", "python -m paper.bsds500"),
        ("--only projection --out notes.txt", "choose another place"),
        ("--only projection --out notes.txt/deeper", "choose another place"),
        ("--quick --keep", "leave out --quick"),
        ("--only", "--only: expected one argument"),
        ("--fast", "unrecognized arguments: --fast"),
        ("table1", "unrecognized arguments: table1"),
    ],
)
def test_refuses_in_the_last_line_and_leaves_nothing(run: Run, workplace: Path, arguments: str, remedy: str):
    before = sorted(workplace.rglob("*"))
    outcome = run(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: " in outcome.err.splitlines()[-1]
    assert remedy in outcome.err.splitlines()[-1]
    assert sorted(workplace.rglob("*")) == before
    assert (workplace / "notes.txt").read_text() == "precious"
