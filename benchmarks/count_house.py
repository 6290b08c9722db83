"""How large the house is: files, lines, what one call runs through, and what a user has to know.

    python benchmarks/count_house.py

Writes records/count_house.json, with what was counted when the rooms were drawn. Two calls are traced in processes of
their own: `hp.denoise(a, sigma)`, and the command line denoising a file blindly. A module counts as executed if one of
its functions was called, as imported if it was loaded; depth is the number of nested calls of functions of the package.
Each call was made once before, so that compiling and loading do not count.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from measure import write_result

import heatprior

PACKAGE = Path(__file__).parent.parent / "src" / "heatprior"

# When the rooms were drawn, counted in the same way.
BEFORE = {
    "files": 302,
    "lines": 31990,
    "modules with one importer": 89,
    "public names": 42,
    "options of denoise": 18,
    "hp.denoise(a, sigma)": {"functions": 145, "modules": 34, "imported": 116},
    "heatprior denoise noisy.png": {"functions": 298, "modules": 74, "depth": 26},
}
TRACED = """
import json, sys, threading
package = {package!r}
seen, depth, deepest = set(), threading.local(), [0]
def trace(frame, event, argument):
    if event not in ("call", "return") or not frame.f_code.co_filename.startswith(package):
        return
    here = getattr(depth, "value", 0)
    depth.value = here + (1 if event == "call" else -1)
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        deepest[0] = max(deepest[0], depth.value)
{before}
threading.setprofile(trace); sys.setprofile(trace)
{call}
sys.setprofile(None); threading.setprofile(None)
modules = sorted({{name for name, _ in seen}})
imported = [name for name in sys.modules if name.startswith("heatprior.")]
print(json.dumps(dict(functions=len(seen), modules=len(modules), imported=len(imported), depth=deepest[0])))
"""
ARRAY = """
import numpy as np, heatprior as hp
noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
hp.denoise(noisy, 0.1)
"""
COMMAND = """
import pathlib, tempfile, contextlib, io
import numpy as np
from PIL import Image
folder = pathlib.Path(tempfile.mkdtemp())
pixels = np.clip(128 + 25 * np.random.default_rng(0).standard_normal((96, 96)), 0, 255).astype(np.uint8)
Image.fromarray(pixels).save(folder / "noisy.png")
from heatprior.cli import main
sys.argv = ["heatprior", "denoise", str(folder / "noisy.png"), "-o", str(folder / "clean.png"), "--force"]
def run():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
run()
"""


def trace(before: str, call: str) -> dict[str, int]:
    """Functions, modules, imports and depth of a call."""
    code = TRACED.format(package=str(PACKAGE), before=before, call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def importers() -> Counter[str]:
    """How many modules of the package import each of them."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        found.update(set(_imports(path)))
    return found


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("heatprior"):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("heatprior."))


def main() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    modules = {".".join(("heatprior", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files}
    counts = importers()
    denoise = subprocess.run(
        [sys.executable, "-m", "heatprior", "denoise", "--help"], capture_output=True, text=True, check=True
    ).stdout
    found = {
        "files": len(files),
        "lines": sum(len(path.read_text().splitlines()) for path in files),
        "modules with one importer": sum(counts[name] == 1 for name in modules if not name.endswith("__init__")),
        "public names": len(heatprior.__all__),
        "options of denoise": len(re.findall(r"^ {2}(?:-\w, )?--(?!help)", denoise, re.MULTILINE)),
        "hp.denoise(a, sigma)": trace(ARRAY, "hp.denoise(noisy, 0.1)"),
        "heatprior denoise noisy.png": trace(COMMAND, "run()"),
    }
    print(json.dumps(found))
    write_result("count_house", {"before": BEFORE, "after": found})


if __name__ == "__main__":
    main()
