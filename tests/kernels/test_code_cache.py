"""Compiled kernels on disk: renewed when any kernel changes, and done without where nothing can be written."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import heatprior
from heatprior.kernels import compiler

LOOK_UP = """
import json, sys
import numpy as np
from heatprior.kernels import lookup

u = np.array([0.25, -2.0, 2.0])
lookup.look_up(u, np.array([1.0, 0.0, 1.0]), 1.0)
assert u.tolist() == [0.25, 2.0, 2.0]
stats = lookup._look_up.stats
print(json.dumps([stats.cache_path, sum(stats.cache_hits.values())]))
print("numba.np.arraymath" in sys.modules, file=sys.stderr)
"""


class Installation:
    """A copy of the package whose home and whose own folder hold a cache, or cannot."""

    def __init__(self, folder: Path, *, package_is_writable: bool, home_is_writable: bool) -> None:
        self.kernels = folder / "site" / "heatprior" / "kernels"
        source = Path(heatprior.__file__).parent
        shutil.copytree(source / "kernels", self.kernels, ignore=shutil.ignore_patterns("__pycache__"))
        for path in source.glob("*.py"):
            shutil.copy(path, self.kernels.parent)
        self.home = folder / "home"
        if home_is_writable:
            self.home.mkdir()
        else:
            self.home.touch()  # a file in the way stops even root
        if not package_is_writable:
            (self.kernels / "__pycache__").touch()

    def run(self, **variables: str) -> tuple[str | None, int]:
        """Where the code is kept, and how often it came from there; `prepared` if numba was made ready to compile."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")}
        settings = {"PYTHONPATH": str(self.kernels.parents[1]), "HOME": str(self.home), "NUMBA_NUM_THREADS": "1"}
        process = subprocess.run(
            [sys.executable, "-W", "error", "-c", LOOK_UP],
            env=kept | settings | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        self.prepared = process.stderr == "True\n"
        return tuple(json.loads(process.stdout))


def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same(tmp_path):
    installation = Installation(tmp_path, package_is_writable=False, home_is_writable=False)
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    assert installation.run(NUMBA_CACHE_DIR=str(in_the_way / "cache")) == (None, 0)
    assert not list(tmp_path.rglob("*.nbi"))


def test_code_is_kept_in_the_users_cache_if_not_in_the_package(tmp_path):
    installation = Installation(tmp_path, package_is_writable=False, home_is_writable=True)
    folder, hits = installation.run()
    assert hits == 0
    assert Path(folder).is_relative_to(installation.home)
    assert installation.run() == (folder, 1)


def test_code_that_is_kept_is_loaded_without_what_only_compiling_needs(tmp_path):
    installation = Installation(tmp_path, package_is_writable=True, home_is_writable=False)
    _, hits = installation.run()
    assert (hits, installation.prepared) == (0, True)
    _, hits = installation.run()
    assert (hits, installation.prepared) == (1, False)
    for expected in (0, 1):  # as numba does it: other names of files, so compiled once more
        _, hits = installation.run(HEATPRIOR_PLAIN_KERNELS="loading")
        assert (hits, installation.prepared) == (expected, True)


def test_code_is_compiled_anew_when_any_kernel_changes_and_nothing_is_deleted(tmp_path):
    installation = Installation(tmp_path, package_is_writable=True, home_is_writable=False)
    cache = installation.kernels / "__pycache__"
    assert installation.run() == (str(cache), 0)
    assert installation.run() == (str(cache), 1)
    foreign = cache / "outdated.nbi"
    foreign.touch()
    os.utime(foreign, (0, 0))
    with (installation.kernels / "threads.py").open("a") as file:  # any other file of the folder
        file.write("# another line\n")
    assert installation.run() == (str(cache), 0)
    assert foreign.exists()
    for path in cache.glob("lookup*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:20])  # damaged
    assert installation.run() == (str(cache), 0)
    assert installation.run() == (str(cache), 1)


def test_code_that_is_there_is_used_though_its_folder_cannot_be_written(monkeypatch, tmp_path):
    package, home = tmp_path / "package", tmp_path / "home"
    package.mkdir()
    (package / "kernel.py").touch()

    def refuse(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr(compiler, "FOLDER", package)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    assert compiler._cache_folder.__wrapped__() is None
    (package / "__pycache__" / "kernel.nbi").touch()
    assert compiler._cache_folder.__wrapped__() == package / "__pycache__"
    (package / "kernel.py").unlink()
    assert compiler._cache_folder.__wrapped__() is None  # without the source nobody knows whether it is outdated


@pytest.mark.parametrize("missing", [True, False])
def test_without_a_cache_kernels_are_compiled_in_memory(monkeypatch, missing):
    if missing:
        monkeypatch.setattr(compiler, "_KernelCache", None)
    else:
        monkeypatch.setattr(compiler, "_cache_folder", lambda: None)
    double = compiler.kernel(lambda x: 2 * x)
    assert double(3) == 6
    assert double.stats.cache_path is None
