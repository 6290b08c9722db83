"""Run the fuzzer: `python -m fuzz --seconds 60`, `--count 1000 --only tiff`, `--replay tiff 1234`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path

from fuzz.cases import TARGETS, case_of
from fuzz.laws import LONGEST
from fuzz.record import Record
from fuzz.worker import Verdict, run_case, serve

LIST = 200  # cases that a worker is given at a time
TURN = 10  # cases of a target in a row, times its share
HANGS = 2 * LONGEST  # seconds of the processor until a worker that says nothing is ended
PATIENCE = 900.0  # seconds of the clock until then; the machine may have other things to do
START = 1800.0  # seconds that it may take to begin: it may have to compile
SHARES = {"tiff": 4, "png": 2, "jpeg": 2, "prior": 2}  # of a round; the others have one


class Worker:
    """Runs cases in a process of its own; one that dies or hangs is replaced."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
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

    def run(self, jobs: list[tuple[str, int]]) -> list[Verdict]:
        """A verdict for each job, in order."""
        verdicts: list[Verdict] = []
        while len(verdicts) < len(jobs):
            self.connection.send(jobs[len(verdicts) :])
            while len(verdicts) < len(jobs):
                verdict, lost = self._next()
                verdicts.append(verdict)
                if lost:
                    self.end()
                    self._begin()
                    break
        return verdicts

    def _next(self) -> tuple[Verdict, bool]:
        """The next verdict, and whether the process came to an end over it."""
        worked, start = _processor_seconds(self.process), time.monotonic()
        while not self.connection.poll(1.0):
            seconds = _processor_seconds(self.process) - worked
            if seconds > HANGS or time.monotonic() > start + PATIENCE:
                return Verdict(None, ["hangs"], seconds, 0), True
        try:
            return self.connection.recv(), False
        except EOFError:
            self.process.join(10)
            return Verdict(None, [f"the process ended with {self.process.exitcode}"], 0.0, 0), True

    def end(self) -> None:
        """Let the process end, which it does when it is asked no more; or end it."""
        self.connection.close()
        self.process.join(5)
        self.process.kill()
        self.process.join()


def _processor_seconds(process: BaseProcess) -> float:
    """What a process has used so far: its user and system time, which follow its name, state and ten numbers."""
    with suppress(OSError):  # it came to an end
        counts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(counts[11]) + int(counts[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def jobs_of(following: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Targets and numbers for ever, a few of each target in turn, from the numbers that follow."""
    while True:
        for target in list(following):
            for _ in range(TURN * SHARES.get(target, 1)):
                yield target, following[target]
                following[target] += 1


def run(record: Record, targets: list[str], count: int, seconds: float, processes: int) -> None:
    """What broke a law before, again; then cases until the record has `count`, or as many as there is time for."""
    jobs, batch = jobs_of({target: record.tallies[target].next for target in targets}), record.broken
    with ThreadPoolExecutor(processes) as pool:
        workers = list(pool.map(lambda _: Worker(), range(processes)))
        start = time.monotonic()
        while batch or (record.cases < count and time.monotonic() < start + seconds):
            batch = batch or list(islice(jobs, min(LIST * processes, count - record.cases)))
            shares = [batch[i::processes] for i in range(processes)]
            for share, verdicts in zip(shares, pool.map(Worker.run, workers, shares), strict=True):
                for (target, number), verdict in zip(share, verdicts, strict=True):
                    record.tallies[target].count(number, verdict)
            record.write()
            batch = []
    for worker in workers:
        worker.end()


def main() -> int:
    """Parse, run, report; 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="stop at so many cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case of each target")
    parser.add_argument("--only", choices=TARGETS, nargs="*", default=list(TARGETS), help="targets")
    parser.add_argument("--processes", type=int, default=1, help="that run cases")
    parser.add_argument("--record", type=Path, help="keep what came of them here, and go on with what is there")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "NUMBER"), help="run one case and show it")
    arguments = parser.parse_args()
    os.environ["NUMBA_NUM_THREADS"] = "1"  # images are small
    if arguments.replay:
        return replay(arguments.replay[0], int(arguments.replay[1]))
    record = Record(arguments.record, arguments.only, arguments.first)
    run(record, arguments.only, arguments.count, arguments.seconds, arguments.processes)
    for target, tally in record.tallies.items():
        for number, laws in tally.broken.items():
            print(f"{target} {number}: {'; '.join(laws)}")
    print(f"{record.cases} cases, {len(record.broken)} broke a law")
    return int(bool(record.broken))


def replay(target: str, number: int) -> int:
    """Run one case in this process and tell all about it; its files are kept."""
    case = case_of(target, number)
    folder = Path("out", "fuzz", f"{target}-{number}")
    case.write(folder)
    print(f"files in {folder}: {', '.join(case.files)}\nheatprior {' '.join(map(repr, case.arguments))}")
    verdict, outcome = run_case(case)
    print(outcome.out, outcome.err, outcome.traceback, verdict, sep="\n")
    return int(bool(verdict.broken))


if __name__ == "__main__":
    sys.exit(main())
