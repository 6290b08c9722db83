"""Priors of whole images on BSD68, beside the patch prior: quality, parameters and time of one step and of splitting.

    python -m paper.evaluations.whole_images [--data DIR] [--methods eb hqs] [PRIOR ...]
    python -m paper.evaluations.whole_images --validation --limit 4      a trial, on other images; writes nothing

`conv` is the paper's convolutional model; `wavelet` and `wavelet-density` the exact one, cycle-spun. BSD68 is for
reporting only. Writes records/whole_images.json; rows of earlier runs are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tqdm import tqdm

from heatprior import denoise
from heatprior.data.trials import FIRST_SEED, LEVELS
from heatprior.restoration.evaluation import Summary, evaluate, summarise
from paper import RECORDS, bsds500, load
from paper.records import running_commit, write_record

PRIORS = ("patch7", "conv", "wavelet-density", "wavelet")
METHODS = {"eb": "one step", "hqs": "splitting"}
STEPS = {"eb": 1, "hqs": None}
RESULT = RECORDS / "whole_images.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=PRIORS, metavar="PRIOR")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, help="on the first images only; writes nothing")
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    print(f"{len(files)} of {len(found)} images".ljust(36) + "".join(f"{level:9g}" for level in LEVELS))
    for name in arguments.priors:
        for method in arguments.methods:
            lines = measured(files, name, method)
            show(name, method, lines)
            if len(files) == len(found) and not arguments.validation:
                add_row(len(files), name, method, lines)


def measured(files: list[Path], name: str, method: str) -> list[Summary]:
    prior = load(name)
    with tqdm(total=len(files) * len(LEVELS), desc=f"{name} {method}", leave=False, disable=None) as bar:
        results = evaluate(
            files,
            lambda noisy, sigma: denoise(noisy, sigma, prior=prior, steps=STEPS[method], white=1.0),
            report=lambda _: bar.update(),
        )
    return summarise(results)


def show(name: str, method: str, lines: list[Summary]) -> None:
    title = f"{name}, {METHODS[method]}, PSNR in dB"
    print(f"{title:36}" + "".join(f"{line.psnr:9.2f}" for line in lines), flush=True)
    print(f"{'  seconds per megapixel':36}" + "".join(f"{line.seconds_per_megapixel:9.2f}" for line in lines))


def add_row(images: int, name: str, method: str, lines: list[Summary]) -> None:
    rows: list[dict[str, Any]] = json.loads(RESULT.read_text())["measured"] if RESULT.is_file() else []
    rows = [row for row in rows if (row["prior"], row["method"]) != (name, method)]
    levels = [line._asdict() for line in lines]
    about = {"prior": name, "method": method, "commit": running_commit(), "parameters": load(name).parameters}
    rows.append({**about, "levels": levels})
    write_record(RESULT, {"images": images, "first_seed": FIRST_SEED, "threads": 1, "measured": rows})


if __name__ == "__main__":
    main()
