"""The commands of ordinary tasks on ordinary files print few lines, each of which a person understands."""

import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "ordinary_tasks.py"


@pytest.mark.filterwarnings("ignore")
def test_no_task_prints_more_than_three_lines(tmp_path, monkeypatch):
    script = runpy.run_path(str(SCRIPT))
    monkeypatch.chdir(tmp_path)
    script["make_files"](48)
    said: list[str] = []
    quick = [
        (task, f"{command} --quality fast" if command.startswith("denoise") else command)
        for task, command in script["TASKS"]
    ]
    absent = tuple(suffix for suffix, package in script["NEEDS"].items() if find_spec(package) is None)
    kept = [
        (task, command)
        for task, command in quick
        if "--quality fast --quality" not in command and not any(suffix in command for suffix in absent)
    ]
    script["tell"].__globals__["TASKS"] = kept
    assert script["tell"](said.append) == 0
    text = "\n".join(said)
    assert "Traceback" not in text
    assert text.count("wrote") >= len(kept) - 3
    assert "no noise found, picture unchanged; if you see noise: --strength 2" in text
