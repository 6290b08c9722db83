"""Inverse problems: `hp.restore` against total variation and a Wiener filter, each of these with its best weight.

    python -m paper.evaluations.inverse_problems [--images 8] [--problems deblur inpaint-50 …] [--prior tuned] [--again]
    python -m paper.evaluations.inverse_problems --times
    python -m paper.evaluations.inverse_problems --bsd68 [--first 0 --every 1]
    python -m paper.evaluations.inverse_problems --merge other.json

The problems are those of inverse_trials.py, of the first validation images in file order. "inside" is the PSNR of the
pixels at least 16 away from the edge. The weights of total variation and Wiener are the best for the mean PSNR, those
of "own weight" the best for each case: they are chosen by the truth, and nothing of `hp.restore` is. `--times` measures
processor time on one core, of the first case of each problem, total variation with one weight; nothing else should run
meanwhile. BSD68 is the same crop of every image, with all eight kernels, cyclic. The schedule was chosen on crops of
validation images from the ninth on, which are not reported here.
Every case is kept in the JSON as soon as it is done, and is not done again unless `--again` is given; several processes
may share the work, and `--merge` takes over what another record holds. Each part names its commit.
"""

from __future__ import annotations

import argparse
import fcntl
import json
from pathlib import Path
from typing import Any

import numpy as np

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.images import read_grey
from heatprior.restoration.operators.measurement import undetermined_part
from heatprior.restoration.plug_and_play import TRUST, TYPICAL, RestoringStep
from paper import RECORDS
from paper.evaluations.inverse_rivals import best_total_variation, best_wiener, seconds_of, varied
from paper.evaluations.inverse_trials import (
    CROP,
    PROBLEMS,
    SIDE,
    SIGMA,
    Trial,
    compared,
    first,
    folder,
    validation_images,
)
from paper.records import running_commit, write_record

MARGIN = 16
RESULT = RECORDS / "inverse_problems.json"
RIVAL = ("total variation", "own weight")  # what a row holds of it
WITHOUT_RIVAL = ("deblur-edges",)  # which is compared with known edges instead
PARTS = ("problems", "times", "bsd68", "bsd68 means")


def restored(trial: Trial, prior: str) -> dict[str, float]:
    """One case by `hp.restore`."""
    image = hp.restore(trial.data, trial.operator, trial.sigma, prior=prior, **trial.options)
    cut = slice(MARGIN, -MARGIN)
    return {
        "restore": round(float(psnr(image, trial.truth)), 3),
        "inside": round(float(psnr(image[cut, cut], trial.truth[cut, cut])), 3),
        "data": round(compared(trial, first(trial)), 3),
    }


def course(trial: Trial, prior: str) -> dict[str, float]:
    """How much the data leave undetermined, and the last of the steps."""
    steps: list[RestoringStep] = []
    hp.restore(trial.data, trial.operator, trial.sigma, prior=prior, report=steps.append, **trial.options)
    return {
        "undetermined": round(undetermined_part(trial.measurement, TRUST * (trial.sigma / TYPICAL) ** 2), 3),
        "steps": steps[-1].steps,
        "applications": steps[-1].applications,
    }


def means(rows: list[dict[str, float]]) -> dict[str, float]:
    """Of every column."""
    return {key: round(float(np.mean([row[key] for row in rows])), 3) for key in ("restore", "inside", "data")}


def lead(rows: list[dict[str, float]]) -> dict[str, float]:
    """By how much `restore` is ahead of total variation where that is least."""
    shared = [row["restore"] - row["total variation"] for row in rows]
    own = [row["restore"] - row["own weight"] for row in rows]
    return {"least lead": round(min(shared), 3), "least lead over own weights": round(min(own), 3)}


def run(name: str, count: int, prior: str, *, again: bool) -> None:
    """What has not been done of a problem; total variation is not done again: nothing of the library changes it."""
    make = PROBLEMS[name]()
    trials = [trial for number, image in enumerate(validation_images(count)) for trial in make(number, image)]
    done = kept()["problems"].get(name, {})
    before = [{key: row[key] for key in RIVAL if key in row} for row in done.get("rows", [])]
    rows = [] if again else done.get("rows", [])
    if len(rows) < len(trials):
        done |= {"commit": running_commit(), "prior": prior, **course(trials[0], prior)}
    for number, trial in enumerate(trials[len(rows) :], len(rows)):
        rows.append(restored(trial, prior) | (before[number] if number < len(before) else {}))
        done |= {"cases": len(rows), **means(rows), "rows": rows}
        keep("problems", name, done)
    if name in WITHOUT_RIVAL:
        pass
    elif "total variation" not in rows[-1]:
        found, beside = best_total_variation(trials)
        rows = [row | other for row, other in zip(rows, beside, strict=True)]
        wiener = {"wiener": round(best_wiener(trials), 3)} if name == "deblur" else {}
        keep("problems", name, done | {"total variation": found, **lead(rows), **wiener, "rows": rows})
    else:
        keep("problems", name, done | lead(rows))
    print(name, {key: value for key, value in kept()["problems"][name].items() if key != "rows"}, flush=True)


def run_times(names: list[str], prior: str) -> None:
    """Processor seconds for the first case of each problem."""
    image = next(validation_images(1))
    for name in names:
        trial = PROBLEMS[name]()(0, image)[0]
        weight = kept()["problems"][name].get("total variation", {}).get("weight over sigma²")

        def ours(trial: Trial = trial) -> None:
            hp.restore(trial.data, trial.operator, trial.sigma, prior=prior, **trial.options)

        def theirs(trial: Trial = trial, weight: float = weight) -> None:
            varied(trial, weight)

        seconds = {"restore": seconds_of(ours)}
        if name not in WITHOUT_RIVAL:
            seconds["total variation"] = seconds_of(theirs)
        keep("times", name, {"commit": running_commit(), **seconds})
        print(name, seconds, flush=True)


def run_bsd68(prior: str, first_image: int, every: int) -> None:
    """All eight kernels, cyclic; once, for the report."""
    kernels = np.load(folder() / "kernels" / "levin09.npz")
    for number, path in list(enumerate(sorted((folder() / "bsd68").glob("*.png"))))[first_image::every]:
        if path.stem in kept()["bsd68"]:
            continue
        image = read_grey(path)[CROP : CROP + SIDE, CROP : CROP + SIDE] / 255.0
        noise = SIGMA * np.random.default_rng(1000 + number).standard_normal(image.shape)
        row = {}
        for name in kernels:
            operator = hp.operators.Blur(kernels[name], "cyclic")
            data = operator.on(image.shape).forward(image) + noise
            row[name] = round(float(psnr(hp.restore(data, operator, SIGMA, prior=prior), image)), 3)
        keep("bsd68", path.stem, row)
    rows = list(kept()["bsd68"].values())
    averages = {name: round(float(np.mean([row[name] for row in rows])), 3) for name in kernels}
    mean = round(float(np.mean(list(averages.values()))), 3)
    about = {"commit": running_commit(), "prior": prior, "images": len(rows), "mean": mean}
    keep("bsd68 means", "cyclic", {**about, **averages})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--prior", default="tuned")
    parser.add_argument("--again", action="store_true", help="do what was done before anew")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--bsd68", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="image of BSD68 to begin with")
    parser.add_argument("--every", type=int, default=1, help="every so many-th image of BSD68")
    parser.add_argument("--merge", type=Path, metavar="RECORD", help="take over the parts of another record")
    arguments = parser.parse_args()
    if arguments.merge is not None:
        for part, entries in parts_of(json.loads(arguments.merge.read_text())).items():
            for name, entry in entries.items():
                keep(part, name, entry)
    elif arguments.bsd68:
        run_bsd68(arguments.prior, arguments.first, arguments.every)
    elif arguments.times:
        run_times(arguments.problems, arguments.prior)
    else:
        for name in arguments.problems:
            run(name, arguments.images, arguments.prior, again=arguments.again)


def parts_of(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What runs have written, without what is said of the record as a whole."""
    return {part: record.get(part, {}) for part in PARTS}


def kept() -> dict[str, dict[str, Any]]:
    """What all runs have written."""
    return parts_of(json.loads(RESULT.read_text()) if RESULT.exists() else {})


def keep(part: str, name: str, result: dict[str, Any]) -> None:
    """Beside what other runs have written, or are writing."""
    with RESULT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = kept()
        parts[part][name] = result
        write_record(RESULT, {"sigma": SIGMA, **parts})


if __name__ == "__main__":
    main()
