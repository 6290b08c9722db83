"""Run the fuzzer: `python -m fuzz --seconds 60`, `--count 1000 --only tiff`, `--replay tiff 1234`."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from fuzz.cases import TARGETS, case_of
from fuzz.laws import LONGEST
from fuzz.worker import Verdict, run_case, serve

LIST = 200  # cases that a worker is given at a time
TURN = 10  # cases of a target in a row, times its share
PATIENCE = 6 * LONGEST  # seconds until a worker that says nothing is ended; the machine may have other things to do
START = 1800.0  # seconds that it may take to begin: it may have to compile
SHARES = {"tiff": 4, "png": 2, "jpeg": 2, "prior": 2}  # of a round; the others have one


class Tally:
    """What was run of a target, and how it went."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self.broken: dict[int, list[str]] = {}
        self.slowest = (0.0, 0)  # seconds, and the case that took them
        self.memory = 0

    def count(self, number: int, verdict: Verdict) -> None:
        """Add a case."""
        self.codes[str(verdict.code)] += 1
        self.slowest, self.memory = max(self.slowest, (verdict.seconds, number)), max(self.memory, verdict.memory)
        if verdict.broken:
            self.broken[number] = verdict.broken

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "cases": self.codes.total(),
            "exit_codes": dict(sorted(self.codes.items())),
            "broken": {str(number): laws for number, laws in self.broken.items()},
            "slowest_seconds": round(self.slowest[0], 2),
            "slowest_case": self.slowest[1],
            "most_memory_mb": self.memory >> 20,
        }


class Worker:
    """A process that runs cases; one that dies or hangs is replaced."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there,))
        self.process.start()
        there.close()
        if not self.connection.poll(START):
            self.end()
            raise SystemExit("the worker does not begin")
        if faults := self.connection.recv():
            self.end()
            raise SystemExit(f"cases without a fault fail, such as {faults[0]}")

    def run(self, jobs: list[tuple[str, int]]) -> Iterator[Verdict]:
        """A verdict for each job, in order; fewer, the last of them a bad one, if the process comes to an end."""
        self.connection.send(jobs)
        for _ in jobs:
            if not self.connection.poll(PATIENCE):
                yield Verdict(None, ["hangs"], PATIENCE, 0)
                return
            try:
                yield self.connection.recv()
            except EOFError:
                self.process.join(10)
                yield Verdict(None, [f"the process ended with {self.process.exitcode}"], 0.0, 0)
                return

    def end(self) -> None:
        """Let the process end, which it does when it is asked no more; or end it."""
        self.connection.close()
        self.process.join(5)
        self.process.kill()
        self.process.join()


def jobs_of(targets: list[str], first: int) -> Iterator[tuple[str, int]]:
    """Targets and numbers for ever, a few of each target in turn."""
    following = dict.fromkeys(targets, first)
    while True:
        for target in targets:
            for _ in range(TURN * SHARES.get(target, 1)):
                yield target, following[target]
                following[target] += 1


def run(targets: list[str], first: int, count: int, seconds: float, report: Path | None) -> dict[str, Tally]:
    """Run `count` cases, or as many as there is time for."""
    tallies = {target: Tally() for target in targets}
    worker, start = Worker(), time.monotonic()
    jobs, done, left = jobs_of(targets, first), 0, list[tuple[str, int]]()
    while done < count and time.monotonic() < start + seconds:
        left = left or list(islice(jobs, min(LIST, count - done)))
        verdicts = list(zip(left, worker.run(left), strict=False))
        for (target, number), verdict in verdicts:
            tallies[target].count(number, verdict)
        done += len(verdicts)
        left = left[len(verdicts) :]
        if verdicts[-1][1].code is None and verdicts[-1][1].seconds in (0.0, PATIENCE):
            worker.end()
            worker = Worker()
        _report(tallies, report, time.monotonic() - start)
    worker.end()
    return tallies


def main() -> int:
    """Parse, run, report; 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="stop after so many cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case of each target")
    parser.add_argument("--only", choices=TARGETS, nargs="*", default=list(TARGETS), help="targets")
    parser.add_argument("--report", type=Path, help="write counts and broken laws here, as JSON")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "NUMBER"), help="run one case and show it")
    arguments = parser.parse_args()
    os.environ["NUMBA_NUM_THREADS"] = "1"  # images are small
    if arguments.replay:
        return replay(arguments.replay[0], int(arguments.replay[1]))
    start = time.monotonic()
    tallies = run(arguments.only, arguments.first, arguments.count, arguments.seconds, arguments.report)
    for target, tally in tallies.items():
        for number, laws in tally.broken.items():
            print(f"{target} {number}: {'; '.join(laws)}")
    failures = sum(len(tally.broken) for tally in tallies.values())
    done = sum(tally.codes.total() for tally in tallies.values())
    print(f"{done} cases in {time.monotonic() - start:.0f} s, {failures} broke a law")
    return int(failures > 0)


def replay(target: str, number: int) -> int:
    """Run one case in this process and tell all about it; its files are kept."""
    case = case_of(target, number)
    folder = Path("out", "fuzz", f"{target}-{number}")
    case.write(folder)
    print(f"files in {folder}: {', '.join(case.files)}\nheatprior {' '.join(map(repr, case.arguments))}")
    verdict, outcome = run_case(case)
    print(outcome.out, outcome.err, outcome.traceback, verdict, sep="\n")
    return int(bool(verdict.broken))


def _report(tallies: dict[str, Tally], path: Path | None, seconds: float) -> None:
    record = {"seconds": round(seconds), "targets": {target: tally.record() for target, tally in tallies.items()}}
    record["cases"] = sum(tally.codes.total() for tally in tallies.values())
    record["broken"] = sum(len(tally.broken) for tally in tallies.values())
    if path is not None:
        path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
