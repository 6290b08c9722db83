"""Compiling in advance, in a process of its own with an empty cache, and once more with what that left."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from heatprior.kernels.compiler import on_compiling
from heatprior.kernels.lookup import look_up
heard = []
on_compiling(lambda: heard.append(1))
look_up(np.zeros((4, 4), np.float32), np.zeros(9), 1.0)
print(len(heard))
"""


def kernels_compiled(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_compiling_is_announced_the_first_time_only(tmp_path):
    assert kernels_compiled(tmp_path) > 0
    assert kernels_compiled(tmp_path) == 0


def test_compiling_is_said_once_in_pipes_too(capsys, monkeypatch):
    from heatprior.cli.batches import COMPILING, announce_compiling
    from heatprior.kernels import compiler

    listeners: list = []
    monkeypatch.setattr(compiler, "_listeners", listeners)
    announce_compiling.cache_clear()
    for _ in range(2):
        announce_compiling()
    assert len(listeners) == 1
    for _ in range(3):
        listeners[-1]()
    assert capsys.readouterr().err == f"{COMPILING}\n"


def test_warmup_says_what_it_did(run, monkeypatch):
    import heatprior

    called = []
    monkeypatch.setattr(heatprior, "denoise", lambda *_, **__: called.append("denoise"))
    monkeypatch.setattr(heatprior, "estimate_noise", lambda _, noise="auto", **__: called.append(noise))
    outcome = run("warmup")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("compiled ")
    assert {"denoise", "auto", "map"} == set(called)
