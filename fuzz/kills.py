"""SIGKILL at random moments of `denoise` on a folder and on a store, and of `train`; what must hold of the disk then.

`python -m fuzz.kills 200` kills each of the three so often. After each kill no file under a final name is partial;
after the next run nothing hidden is left, and the results are the same bits as those of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"  # children are forked: no threads before

from tqdm import tqdm

from fuzz.laws import is_hidden
from fuzz.places import store
from fuzz.seeds import seeds_of
from paper.records import write_record

tqdm.monitor_interval = 0  # which is a thread
tqdm.set_lock(threading.RLock())  # its own is shared by processes, and a killed one may hold it
multiprocessing.set_start_method("spawn")  # else numba has such a lock, too, and takes it at every loop over pieces
DENOISE = ["denoise", "images", "-o", "out", "--sigma", "20", "--prior", "dct3.safetensors"]
STORE = ["denoise", "in.zarr", "-o", "out.zarr", *DENOISE[4:]]
TRAIN = ["train", "images", "-o", "run", "--size", "3", "--components", "9", "--batch", "50", "--checkpoint", "0"]
STEPS = ["--steps", "12"]
RESULT = "prior.safetensors"
KINDS = ("denoise", "store", "train") if find_spec("zarr") and find_spec("distributed") else ("denoise", "train")
PATIENCE = 600.0  # seconds until a command that nobody kills counts as hanging; it works for less than one


def prepare(folder: Path) -> None:
    """A prior, images of several formats, and a store of many arrays."""
    (folder / "images").mkdir()
    (folder / "dct3.safetensors").write_bytes(seeds_of("prior")[0].content)
    for number, target in enumerate(("png", "tiff", "npy", "jpeg", "bmp", "webp", "png", "tiff")):
        suffix, content = seeds_of(target)[1]
        (folder / "images" / f"{number}{suffix}").write_bytes(content)
    (folder / "in.zarr").mkdir()
    (folder / "in.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    for number in range(24):
        for name, content in store(bytes(range(256)), 2).items():
            (folder / "in.zarr" / str(number)).mkdir(exist_ok=True)
            (folder / "in.zarr" / str(number) / name).write_bytes(content)


def started(arguments: list[str], folder: Path) -> int:
    """The process of a command in `folder`, forked from this one."""
    from heatprior.cli import main  # noqa: PLC0415

    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.chdir(folder)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        code = main(arguments)
    finally:
        os._exit(code)


def perform(arguments: list[str], folder: Path) -> None:
    """Run a command in this process, so that those that are forked from it spend their time on the work."""
    from heatprior.cli import main  # noqa: PLC0415

    with chdir(folder), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        code = main(arguments)
    if code:
        raise SystemExit(f"{arguments[0]} fails without being killed")
    if threading.active_count() > 1:
        raise SystemExit("a thread is left, and its locks would be held for ever in processes that are forked")


def finished(arguments: list[str], folder: Path) -> int:
    """The exit code of a command that runs to its end."""
    child, start = started(arguments, folder), time.monotonic()
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > start + PATIENCE:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise SystemExit(f"{arguments[0]} hangs after an earlier one was killed")
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


def killed(arguments: list[str], folder: Path, delay: float) -> bool:
    """Whether a command was still running when it was killed after `delay` seconds."""
    child = started(arguments, folder)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def files_below(folder: Path) -> dict[str, bytes]:
    """Names and contents."""
    found = (path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else iter(())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _visible(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not is_hidden(name)}


def kill_denoising(folder: Path, delay: float, right: dict[str, bytes]) -> list[str]:
    """Kill once, look, run again; what is wrong."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    killed(DENOISE, folder, delay)
    found = _visible(files_below(folder / "out"))
    wrong = [f"{name} is partial" for name, content in found.items() if content != right.get(name)]
    code = finished([*DENOISE, "--skip-existing"], folder)
    wrong += [f"exit code {code}"] if code else []
    if files_below(folder / "out") != right:
        names = sorted(set(files_below(folder / "out")) ^ set(right))
        wrong.append(f"after the next run {', '.join(names) or 'the bytes'} differ")
    return wrong


def kill_store(folder: Path, delay: float, right: dict[str, bytes]) -> list[str]:
    """Kill twice, at first where nothing is and then with a result that is to be replaced; look, and let it end."""
    shutil.rmtree(folder / "out.zarr", ignore_errors=True)
    wrong = []
    for force in ([], ["--force"]):
        killed([*STORE, *force], folder, delay)
        wrong += ["out.zarr is partial"] if files_below(folder / "out.zarr") not in ({}, right) else []
        code = finished([*STORE, "--force"], folder)
        wrong += [f"exit code {code}"] if code else []
        wrong += ["out.zarr differs after the next run"] if files_below(folder / "out.zarr") != right else []
        wrong += [f"{path.name} is left" for path in folder.iterdir() if is_hidden(path.name)]
    return wrong


def kill_training(folder: Path, delay: float, right: dict[str, bytes]) -> list[str]:
    """Kill a run, and its resumption; then let it end; what is wrong."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    killed([*TRAIN, *STEPS], folder, delay)
    wrong = _partial(folder, right)
    killed(_next(folder), folder, delay / 2)
    wrong += _partial(folder, right)
    code = finished(_next(folder), folder)
    wrong += [f"exit code {code}"] if code else []
    found = files_below(folder / "run")
    wrong += [f"{name} is left" for name in found if is_hidden(name)]
    return wrong + ([] if found.get(RESULT) == right[RESULT] else [f"{RESULT} differs"])


def _next(folder: Path) -> list[str]:
    """What a user would do next: resume, or begin if nothing has begun."""
    begun = (folder / "run" / "config.json").exists()
    done = (folder / "run" / RESULT).exists()
    return [*TRAIN[:4], "--resume"] if begun and not done else [*TRAIN, *STEPS, *(["--force"] if done else [])]


def _partial(folder: Path, right: dict[str, bytes]) -> list[str]:
    """Files of a run that are not whole."""
    from safetensors.numpy import load  # noqa: PLC0415

    found, wrong = _visible(files_below(folder / "run")), []
    for name, content in found.items():
        if name == RESULT and content != right[RESULT]:
            wrong.append(f"{name} is partial")
        elif name.endswith(".safetensors"):
            try:
                load(content)
            except Exception as error:
                wrong.append(f"{name} is partial: {error}")
        elif name.endswith(".json") and content != right[name]:
            wrong.append(f"{name} is partial")
    return wrong


def trial(kind: str, kills: int, begun: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Kill `kind`, one of KINDS, so often, at moments spread over its time; after each, what came of all."""
    kill: Callable[[Path, float, dict[str, bytes]], list[str]]
    line, place, kill = {
        "denoise": (DENOISE, "out", kill_denoising),
        "store": (STORE, "out.zarr", kill_store),
        "train": ([*TRAIN, *STEPS], "run", kill_training),
    }[kind]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        if kind == "store":  # which leaves a thread of zarr's behind
            import_module("heatprior.large.files")
            finished(line, folder)
        else:
            perform(line, folder)  # imports, compiles
        right = files_below(folder / place)
        shutil.rmtree(folder / place)
        start = time.monotonic()
        finished(line, folder)
        seconds = time.monotonic() - start
        wrong = list(begun["wrong"])
        for number in range(begun["kills"], kills):
            delay = Random(f"{kind}/{number}").uniform(0.0, seconds)
            wrong += [f"kill {number} after {delay:.3f} s: {what}" for what in kill(folder, delay, right)]
            yield {"kills": number + 1, "wrong": wrong}


def main() -> int:
    """Kill all; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills", description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=200, help="of each of the three")
    parser.add_argument("--only", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--record", type=Path, help="keep what came of them here, and go on with what is there")
    arguments = parser.parse_args()
    path: Path | None = arguments.record
    known = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
    record = {kind: known.get(kind, {"kills": 0, "wrong": []}) for kind in KINDS}
    for kind in arguments.only:
        for so_far in trial(kind, arguments.kills, record[kind]):
            record[kind] = so_far
            if path is not None:
                write_record(path, record)
        wrong = record[kind]["wrong"]
        print(f"{kind}: {record[kind]['kills']} kills, {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)
    return int(any(record[kind]["wrong"] for kind in KINDS))


if __name__ == "__main__":
    sys.exit(main())
