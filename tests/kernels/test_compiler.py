"""The compiler's private corners against their plain twins."""

import os
import subprocess
import sys

import numpy as np
from numba import njit
from numba.extending import intrinsic

from heatprior.kernels import compiler


def look_up(read, fetch, write):
    @njit
    def loop(u, table):
        for i in range(u.size):
            write(u, i, fetch(table, np.int32(read(u, i))))

    return loop


def test_look_ups_with_and_without_alias_scopes_are_the_same():
    rng = np.random.default_rng(0)
    table, places = rng.standard_normal(50).astype(np.float32), rng.integers(0, 50, 1003)
    scopes = []
    for tricks in (
        (compiler.read, compiler.fetch, compiler.write),
        (compiler.read_plain, compiler.read_plain, compiler.write_plain),
    ):
        loop, u = look_up(*tricks), places.astype(np.float32)
        loop(u, table)
        np.testing.assert_array_equal(u, table[places])
        (code,) = loop.inspect_llvm().values()
        scopes.append("!alias.scope" in code)
    assert scopes == [True, False]


def test_without_metadata_look_ups_are_untagged_and_right(monkeypatch):
    """As with an llvmlite that takes none."""

    class NoMetadata:
        @property
        def module(self):
            raise AttributeError

    untagged = compiler._tag
    monkeypatch.setattr(compiler, "_tag", lambda instruction, name, _: untagged(instruction, name, NoMetadata()))
    scoped = (compiler._reader("alias.scope"), compiler._reader("noalias"), compiler._write)
    tricks = (intrinsic(function) for function in scoped)
    loop, table, u = look_up(*tricks), np.arange(5, dtype=np.float32) ** 2, np.array([3.0, 0.0], np.float32)
    loop(u, table)
    assert u.tolist() == [9.0, 0.0]
    (code,) = loop.inspect_llvm().values()
    assert "!alias.scope" not in code


def test_an_inner_kernel_is_a_part_of_those_that_call_it_and_serves_python_too():
    def double(x):
        return 2 * x

    inner = compiler.kernel(double, inner=True)
    assert compiler.kernel(lambda x: inner(x) + 1)(3) == 7
    assert not inner.signatures
    assert inner(3) == 6


STEP = """
import sys
import numpy as np
from heatprior.kernels import compiler
from heatprior.kernels.patch_averaging import ResponseTables, average_changes

assert compiler.PLAIN == (compiler.TRICKS if sys.argv[1] == "plain" else ())
rng = np.random.default_rng(0)
nodes = np.sin(rng.uniform(3.0, 6.0, (8, 1)) * np.linspace(-1.0, 1.0, 65))
slopes = np.diff(nodes)
lines = np.stack([nodes[:, :-1] - slopes * (np.arange(64) - 32), slopes], axis=-1)[:, None].astype(np.float32)
filters, image = np.linalg.qr(rng.normal(size=(9, 8)))[0].T, rng.normal(size=(40, 50)).astype(np.float32)
tables = ResponseTables(lines, 0.8, np.full(8, 3.0), 0.1, 2.0)
np.save(sys.argv[2], average_changes(image, filters, tables))
"""


def test_a_whole_step_does_without_any_trick(tmp_path):
    results = []
    for name, switch in (("plain", "1"), ("fast", "")):
        file = tmp_path / f"{name}.npy"
        environment = os.environ | {"HEATPRIOR_PLAIN_KERNELS": switch}
        subprocess.run([sys.executable, "-c", STEP, name, str(file)], check=True, env=environment)
        results.append(np.load(file))
    # sums in another order, and a response beside the edge of a cell may be looked up on its other side: float32
    np.testing.assert_allclose(*results, atol=2e-5)
    assert np.abs(results[0]).max() > 0.1


def test_kernels_run_as_python_where_the_compiler_is_switched_off():
    """NUMBA_DISABLE_JIT, as for coverage and debuggers: machine code cannot be had, so every trick must give way."""
    run = (
        "import numpy as np, heatprior as hp; image = np.random.default_rng(0).normal(0.5, 0.1, (12, 12));"
        "print(*hp.denoise(image, 0.1, quality='fast', white=1.0).ravel())"
    )
    found = []
    for off in ("0", "1"):
        command, env = [sys.executable, "-W", "ignore", "-c", run], {**os.environ, "NUMBA_DISABLE_JIT": off}
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        found.append(np.array(said.split(), float))
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)  # sums in another order, in float32
