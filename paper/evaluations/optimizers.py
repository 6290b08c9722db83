"""Adam and iPALM at equal time: validation PSNR of fresh 7×7 trainings over the seconds of training.

    python -m paper.evaluations.optimizers [--data DIR] [--seconds 100]

Run nothing else meanwhile. Validation (eight crops of the validation images) is not counted. Writes
records/optimizers.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from heatprior import TrainingConfig
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import LEVELS
from heatprior.learning.training import Validation
from paper import RECORDS, bsds500
from paper.learning.ipalm import PaperConfig
from paper.records import write_record

NO_END = 1_000_000
RUNS = {
    "ipalm": PaperConfig(noise="log", start="student", sigma_min=0.01, averaged=500, steps=NO_END),
    "adam": TrainingConfig(steps=NO_END),
    "ipalm, as in the paper": PaperConfig(steps=NO_END),
}
STEPS_BETWEEN = 50  # looks at the clock
FIRST_LOOK, GROWTH = 2.5, 1.4  # seconds until the first validation, and the factor from one to the next
RESULT = RECORDS / "optimizers.json"


def watch(config: TrainingConfig, source: PatchSource, validation: Validation, limit: float) -> list[dict[str, Any]]:
    training = config.training(source)
    list(training.run(2))  # compiles
    spent, look, rows = 0.0, FIRST_LOOK, []
    while spent < limit:
        *_, last = training.run(STEPS_BETWEEN)
        spent += last.seconds
        if spent >= look or spent >= limit:
            psnr = validation.psnr(training.prior())
            rows.append({"seconds": round(spent, 1), "steps": training.done, "psnr": [round(v, 3) for v in psnr]})
            print(f"  {spent:6.1f} s {training.done:6d} steps  " + " ".join(f"{v:7.3f}" for v in psnr), flush=True)
            look *= GROWTH
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=100.0)
    arguments = parser.parse_args()
    source = PatchSource(read_images(bsds500.training(arguments.data), 7).images, 7)
    validation = Validation(read_images(bsds500.validation(arguments.data), 7).images, 7)
    results = {}
    for name, config in RUNS.items():
        print(f"{name}: validation PSNR at 255σ = {', '.join(map(str, LEVELS))}")
        results[name] = watch(config, source, validation, arguments.seconds)
    write_record(RESULT, {"seed": 0, "batch": 3200, "levels": LEVELS, "runs": results})


if __name__ == "__main__":
    main()
