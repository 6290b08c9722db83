"""The numba loops, each beside the plain-numpy twin that the tests compare it with.

numba keeps compiled code on disk and renews it when the file of a function changes, but not when a function that it
calls from another file does. So what is older than the newest kernel is thrown away here, before any is loaded.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def _drop_outdated_code(folder: Path) -> None:
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        with suppress(OSError):  # another process may have done it, or the folder is not ours to write
            if index.stat().st_mtime < newest:
                index.unlink()


_drop_outdated_code(Path(__file__).parent)
