"""Table 1 of the paper: PSNR on BSD68 of one empirical-Bayes step (EB-PA) and of half-quadratic splitting (HQS).

    python experiments/table1.py [--data DIR] [PRIOR ...]    rows of other priors stay as they were measured
    python experiments/table1.py --validation --limit 2      a trial, on other images; writes nothing

Prints the mean PSNR beside the paper's, with SSIM and seconds per megapixel on one core, and writes
experiments/results/table1.json. BSD68 is for reporting only.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tqdm import tqdm

from heatprior import load
from heatprior.data import bsds500
from heatprior.data.trials import FIRST_SEED, LEVELS
from heatprior.records import running_commit, write_record
from heatprior.reproduction.denoising_table import METHODS
from heatprior.reproduction.denoising_table import measured as measured_lines
from heatprior.reproduction.published import TABLE1 as PAPER
from heatprior.restoration.evaluation import Summary

PRIORS = {  # which in the paper
    "patch7": "patch7",
    "patch15": "patch15",
    "patch7-paper": "patch7",
    "patch15-paper": "patch15",
    "denoise7": "patch7",
    "denoise15": "patch15",
}
RESULT = Path(__file__).parent / "results" / "table1.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=list(PRIORS), metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, help="on the first images only; writes nothing")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    name = "validation" if arguments.validation else "BSD68"
    print(f"{len(files)} of {len(found)} images of {name}".ljust(36) + "".join(f"{level:9g}" for level in LEVELS))
    rows: list[dict[str, Any]] = []
    for prior in arguments.priors:
        for method in METHODS:
            lines = measured(files, prior, method, arguments.threads)
            show(prior, method, lines, with_paper=not arguments.validation)
            about = {"commit": running_commit(), "threads": arguments.threads}
            rows.append({"prior": prior, "method": method, **about, "levels": [line._asdict() for line in lines]})
    if len(files) == len(found) and not arguments.validation:
        before = json.loads(RESULT.read_text())["measured"] if RESULT.exists() else []
        kept = [row for row in before if row["prior"] not in arguments.priors]
        about = {"images": len(files), "first_seed": FIRST_SEED}
        write_record(RESULT, {**about, "measured": kept + rows, "paper": PAPER})
        print(f"wrote {RESULT}")


def measured(files: list[Path], prior: str, method: str, threads: int) -> list[Summary]:
    with tqdm(total=len(files) * len(LEVELS), desc=f"{prior} {method}", leave=False, disable=None) as bar:
        return measured_lines(files, load(prior), method, threads, lambda _: bar.update())


def show(prior: str, method: str, lines: list[Summary], *, with_paper: bool) -> None:
    psnr = [line.psnr for line in lines]
    print(f"{prior + ' ' + METHODS[method] + ', PSNR in dB':36}" + "".join(f"{value:9.2f}" for value in psnr))
    if prior in PRIORS and with_paper:
        paper = PAPER[PRIORS[prior]][method]
        print(f"{'  the paper':36}" + "".join(f"{value:9.2f}" for value in paper))
        print(f"{'  difference':36}" + "".join(f"{a - b:+9.2f}" for a, b in zip(psnr, paper, strict=True)))
    print(f"{'  SSIM':36}" + "".join(f"{line.ssim:9.4f}" for line in lines))
    print(f"{'  seconds per megapixel':36}" + "".join(f"{line.seconds_per_megapixel:9.2f}" for line in lines))


if __name__ == "__main__":
    main()
