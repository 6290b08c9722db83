"""How kernels are compiled and kept: `kernel`, and what leans on undocumented parts of numba and llvmlite.

All of that is here, so that a new release of numba is tried on one file. Each trick has a fallback in documented numba,
which takes its place where the trick cannot be had, and wherever HEATPRIOR_PLAIN_KERNELS asks for it: 1 for all tricks,
or some of their names, such as "alias,loading". Results agree to rounding; benchmarks/bench_tricks.py has the gains.

- `alias`: with `read`, `write`, `fetch`, LLVM's alias scopes tell that a loop does not write the table that it looks
  up in, so that its look-ups become SIMD gathers.
- `loading`: compiled code is taken from the cache without all that numba needs to compile: 0.3 s of every start.
- The cache of compiled code on disk, invalidated whenever any kernel changes.
- The lock around numba's compiler, for which a fork waits: a child could never take it from a thread of its parent.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numba
from numba import njit, types
from numba.extending import intrinsic

from heatprior.locks import hold_during_forks

TRICKS = ("alias", "loading")
# The tricks are machine code: where NUMBA_DISABLE_JIT leaves kernels to Python, none can be had.
_asked = "1" if getattr(numba.config, "DISABLE_JIT", 0) else os.environ.get("HEATPRIOR_PLAIN_KERNELS", "")
PLAIN = tuple(trick for trick in TRICKS if _asked == "1" or trick in _asked.split(","))  # tricks to do without
FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}  # fast-math flags under which NaN and infinity keep their meaning
FOLDER = Path(__file__).parent


@cache
def _tell_notebook() -> None:
    """Say once, in a notebook, why the first call takes so long; programs decide for themselves what they print."""
    if "ipykernel" in sys.modules:
        print("heatprior: compiling once for this processor, about ten seconds", file=sys.stderr)


_listeners: list[Callable[[], None]] = [_tell_notebook]


def on_compiling(listener: Callable[[], None]) -> None:
    """Call `listener` before each kernel that has to be compiled, since no cache holds it: that takes a while."""
    _listeners.append(listener)


def kernel(function: Callable[..., Any] | None = None, *, inner: bool = False, **options: Any) -> Any:
    """`njit` of a loop that releases the GIL, divides as numpy does (no ZeroDivisionError), and is kept on disk.

    An `inner` one is compiled as a part of the kernels that call it, with their options: a pass of the compiler less.
    """
    if function is None:
        return lambda function: kernel(function, inner=inner, **options)
    if inner:
        return cast(Any, njit)(error_model="numpy", inline="always", **options)(function)
    dispatcher = cast(Any, njit)(nogil=True, error_model="numpy", **options)(function)
    if _KernelCache is not None and _cache_folder() is not None:
        dispatcher._cache = _KernelCache(function)
    return dispatcher


# The cache on disk. numba's own renews the code of a function when its file changes, but not when a function that it
# calls from another file does; and it refuses to compile where nothing can be written.


@cache
def _stamp() -> str:
    """Changes with any kernel; numba itself checks its own version and the processor."""
    digest = sha256()
    for path in sorted(FOLDER.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _cache_folder() -> Path | None:
    """NUMBA_CACHE_DIR, __pycache__ or the user's cache: the first that can be written, else the first with code."""
    if not any(FOLDER.glob("*.py")):
        return None  # no source, no stamp
    own = f"heatprior-{sha256(os.fsencode(FOLDER)).hexdigest()[:16]}"
    folders = [FOLDER / "__pycache__", Path(AppDirs("heatprior", appauthor=False).user_cache_dir) / own]
    if given := getattr(numba.config, "CACHE_DIR", ""):
        folders.insert(0, Path(given) / own)
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return next((folder for folder in folders if any(folder.glob("*.nbi"))), None)


# Where a symbol were missing, LLVM would end the process: so only for releases of numba on which the tests were run.
LOADING = "loading" not in PLAIN and (0, 61) <= tuple(map(int, numba.__version__.split(".")[:2])) <= (0, 68)

try:
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.runtime.nrt import rtsys
    from numba.misc.appdirs import AppDirs

    class _Locator(_CacheLocator):
        def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
            self._py_file, self._line = py_file, py_func.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            return str(_cache_folder())

        def get_source_stamp(self) -> str:
            return _stamp()

        def get_disambiguator(self) -> str:
            return "-".join([str(self._line), *PLAIN])

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
            return cls(py_func, py_file)

    class _Implementation(CompileResultCacheImpl):
        _locator_classes = [_Locator]  # noqa: RUF012

    class _Cache(FunctionCache):
        """A cache that fails to be read or written is no reason to fail."""

        _impl_class = _Implementation

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = self._found(sig, target_context) if LOADING else super().load_overload(sig, target_context)
            except Exception:  # a damaged file may raise anything as it is unpickled; recompiled, it is replaced
                with suppress(OSError):
                    self.flush()
                found = None
            if found is None:
                for listener in _listeners:
                    listener()
            return found

        def _found(self, sig: Any, target_context: Any) -> Any:
            """As numba does it, but it would first import and install how everything else is typed and compiled."""
            rtsys.initialize(target_context)  # what allocates arrays
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(OSError):
                super().save_overload(sig, data)

    _KernelCache: Any = _Cache
except (ImportError, AttributeError):
    _KernelCache = None


with suppress(ImportError, AttributeError):
    _compiling = import_module("numba.core.compiler_lock").global_compiler_lock
    hold_during_forks(_compiling.acquire, _compiling.release)


# Loops that write one array and look up in another. That the two do not overlap is not checked; there
# are no bounds checks and no negative indices.


@kernel(inner=True)
def read_plain(array, index):
    """array[index] of a contiguous array, which the same loop writes (`read`), or nothing in it does (`fetch`)."""
    return array[index]


@kernel(inner=True)
def write_plain(array, index, value):
    """array[index] = value."""
    array[index] = value


def _tag(instruction, name, builder):
    """The instruction, tagged with the alias scope of all places that are written; untagged it is right, but slower."""
    with suppress(AttributeError, TypeError, NotImplementedError):
        domain = builder.module.add_metadata(["heatprior"])
        scope = builder.module.add_metadata([builder.module.add_metadata(["written", domain])])
        instruction.set_metadata(name, scope)
    return instruction


def _place(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]], inbounds=True)


def _reader(name):
    def typed(_, array, index):  # noqa: ARG001
        def generate(context, builder, signature, arguments):
            return _tag(builder.load(_place(context, builder, signature, arguments)), name, builder)

        return array.dtype(array, types.intp), generate

    return typed


def _write(_, array, index, value):  # noqa: ARG001
    def generate(context, builder, signature, arguments):
        _tag(builder.store(arguments[2], _place(context, builder, signature, arguments)), "alias.scope", builder)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


read: Any = read_plain if "alias" in PLAIN else intrinsic(_reader("alias.scope"))
write: Any = write_plain if "alias" in PLAIN else intrinsic(_write)
fetch: Any = read_plain if "alias" in PLAIN else intrinsic(_reader("noalias"))
