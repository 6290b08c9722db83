"""A record says which code made it, wherever it is written, and on which processor."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import heatprior
from paper import records
from paper.records import commit_of, processor, running_commit, write_record

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
PACKAGE = Path(records.__file__).parent


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository with one script in it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "script.py").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@needs_git
def test_the_commit_is_that_of_the_file_with_a_mark_for_changes(checkout):
    commit = git(checkout, "rev-parse", "--short", "HEAD")
    assert commit_of(checkout / "script.py") == commit
    (checkout / "result.json").write_text("{}")
    assert commit_of(checkout / "script.py") == commit  # results are not code
    (checkout / "script.py").write_text("2\n")
    assert commit_of(checkout / "script.py") == f"{commit}+"


@needs_git
def test_what_lies_in_a_checkout_without_being_part_of_it_has_no_commit(checkout, tmp_path):
    (checkout / "installed.py").touch()
    assert commit_of(checkout / "installed.py") is None
    (tmp_path / "elsewhere.py").touch()
    assert commit_of(tmp_path / "elsewhere.py") is None


@needs_git
def test_settings_of_git_hooks_do_not_mislead(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert commit_of(checkout / "script.py") is not None


@needs_git
@pytest.mark.skipif(commit_of(Path(records.__file__)) is None, reason="the package is not in a checkout")
def test_a_record_written_elsewhere_has_the_commit_of_the_package(tmp_path):
    write_record(tmp_path / "out" / "a.json", {"psnr": 30.0})
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert record["commit"].rstrip("+") == git(PACKAGE, "rev-parse", "--short", "HEAD")
    assert record["psnr"] == 30.0
    assert {"processor", "cores", "cpu_features", "python", "time"} <= set(record)


@needs_git
def test_of_an_installed_package_it_is_the_commit_of_the_script(checkout, tmp_path):
    (tmp_path / "site" / "paper").mkdir(parents=True)
    shutil.copy(PACKAGE / "records.py", tmp_path / "site" / "paper")
    script = "from paper.records import running_commit\nprint(running_commit())\n"
    (checkout / "script.py").write_text(script)
    git(checkout, "commit", "-q", "-a", "-m", "second")
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(heatprior.__file__).parents[1])])
    commands = {"script": [str(checkout / "script.py")], "none": ["-c", script]}
    said = {
        name: subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, check=True
        ).stdout.decode()
        for name, command in commands.items()
    }
    assert said == {"script": git(checkout, "rev-parse", "--short", "HEAD") + "\n", "none": "unknown\n"}


def test_without_git_the_commit_is_unknown(monkeypatch):
    monkeypatch.setattr(records, "_git", lambda *_: None)
    assert running_commit() == "unknown"


def test_the_processor_is_named_with_its_vector_instructions(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "CPU_INFO", tmp_path / "cpuinfo")
    assert processor()["cpu_features"] == []
    assert processor()["processor"]
    text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu sse sse4_2 avx avx2 fma avx512f\n"
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    found = processor()
    assert found["processor"] == "Some CPU @ 2 GHz"
    assert found["cpu_features"] == ["avx", "avx2", "avx512f", "fma", "sse4_2"]
    assert found["numba_cpu_name"] == "generic"
