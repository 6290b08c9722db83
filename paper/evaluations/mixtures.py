"""Mixtures of Gaussians on BSD68: plain, adapted to the noisy image, at two scales, and both; PSNR and time.

    python -m paper.evaluations.mixtures [--data DIR] [--threads N] [--noisy RUN/prior.safetensors]
    python -m paper.evaluations.mixtures --validation --limit 2      a trial, on other images; writes nothing

`--noisy` is a mixture learnt from noisy images alone (paper/evaluations/noisy_images.py has the commands).

Prints the mean PSNR in dB and the median seconds per megapixel, and writes records/mixtures.json. BSD68 is
for reporting only.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tqdm import tqdm

from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, LEVELS
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.evaluation import Summary, evaluate, summarise
from paper import RECORDS, bsds500, load
from paper.methods import Recipe
from paper.records import running_commit, write_record

RESULT = RECORDS / "mixtures.json"
ROWS = {
    "epll, HQS": Recipe("epll"),
    "mixture, one step": Recipe("mixture", scales=0),
    "mixture": Recipe("mixture"),
    "mixture, two scales": Recipe("mixture", scales=2),
    "mixture, adapted": Recipe("mixture", adapted=True),
    "mixture, adapted, two scales": Recipe("mixture", scales=2, adapted=True),
}
NOISY = "learnt from noisy images: "
COMPARED = ("mixture", "mixture, two scales")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, help="on the first images only; writes nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", nargs="*", help="only these; the others stay as they were measured")
    parser.add_argument("--noisy", type=Path, help="a mixture learnt from noisy images, by its path")
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    rows = {}
    todo = ROWS if arguments.noisy is None else ROWS | {f"{NOISY}{name}": ROWS[name] for name in COMPARED}
    todo = {name: recipe for name, recipe in todo.items() if not arguments.rows or name in arguments.rows}
    print(f"{len(files)} images".ljust(36) + "".join(f"{level:16g}" for level in LEVELS))
    for name, recipe in todo.items():
        prior = load(str(arguments.noisy) if name.startswith(NOISY) else recipe.prior)
        rows[name] = [line._asdict() for line in measured(files, recipe, prior, arguments.threads)]
        cells = (f"{line['psnr']:9.3f} {line['seconds_per_megapixel']:6.2f}" for line in rows[name])
        print(f"{name:36}" + "".join(cells), flush=True)
    if len(files) == len(found) and not arguments.validation:
        before = json.loads(RESULT.read_text()) if RESULT.exists() else {"rows": {}}
        commits = before.get("commits", dict.fromkeys(before["rows"], before.get("commit")))
        commits |= dict.fromkeys(rows, running_commit())  # of each row, since others stay
        about = {"images": len(files), "first_seed": FIRST_SEED, "threads": arguments.threads, "commits": commits}
        write_record(RESULT, {**about, "rows": before["rows"] | rows})
        print(f"wrote {RESULT}")


def measured(files: list[Path], recipe: Recipe, prior: DiffusedPrior, threads: int) -> list[Summary]:
    def denoiser(noisy: FloatArray, sigma: float) -> FloatArray:
        return recipe.follow(noisy, sigma, prior)

    with tqdm(total=len(files) * len(LEVELS), leave=False, disable=None) as bar:
        return summarise(evaluate(files, denoiser, threads=threads, report=lambda _: bar.update()))


if __name__ == "__main__":
    main()
