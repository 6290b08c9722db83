"""Tune a mixture, with its schedules of splitting, for the denoised image, and put it among the shipped ones.

    python experiments/tune_mixture.py SOURCE NAME --run FOLDER [--steps 2000] [--crops 6] [--seed 0] … [--data DIR]

SOURCE is a mixture by name or path; one that was tuned before begins with its schedules. Learns from the training
images, and is judged, as the library denoises, on crops of validation images; BSD68 plays no role. The run is saved
every two minutes in FOLDER and goes on from there: the same bits as without a break. Every setting of `TuningConfig`
has its option. `--ship` writes what the run has reached among the shipped priors, in float16, and
experiments/results/tune-NAME.json. Needs torch (the extra), of which it takes one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from heatprior import GaussianMixturePrior, denoise, load
from heatprior.arrays import FloatArray
from heatprior.data import bsds500
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.files import replacing
from heatprior.images import read_grey
from heatprior.priors.protocol import DiffusedPrior
from heatprior.records import write_record
from heatprior.torch.tuning.run import Tuning, TuningConfig
from heatprior.zoo import FOLDER

CROP = slice(60, 260)
BETWEEN_SAVES = 120.0  # seconds
BETWEEN_VALIDATIONS = 250  # steps


def validation(prior: DiffusedPrior, crops: list[FloatArray]) -> list[float]:
    """Mean PSNR over the crops for each of LEVELS."""
    return [
        round(
            float(
                np.mean(
                    [
                        psnr(denoise(with_noise(x, i, level / 255), level / 255, prior=prior, white=1.0), x)
                        for i, x in enumerate(crops)
                    ]
                )
            ),
            3,
        )
        for level in LEVELS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("name")
    parser.add_argument("--run", type=Path, required=True)
    for field in fields(TuningConfig):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ship", action="store_true", help="ship what the run has reached, and train no further")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.run.mkdir(parents=True, exist_ok=True)
    config = TuningConfig(**{field.name: getattr(options, field.name) for field in fields(TuningConfig)})
    source = load(options.source)
    if not isinstance(source, GaussianMixturePrior):
        parser.error(f"{options.source} is no mixture")
    images = read_images(bsds500.training(options.data), config.side).images
    tuning = Tuning(config, source, PatchSource(images, config.side))
    checkpoint = options.run / "checkpoint.safetensors"
    if checkpoint.exists():
        tuning.restore(load_file(checkpoint))
    files = bsds500.validation(options.data)
    crops = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in files[::2]]
    card = {"name": options.name}
    if options.ship:
        tuned = tuning.prior(card)
        tuned.save(FOLDER / f"{options.name}.safetensors", dtype=np.float16)
        rows = {name: validation(prior, crops) for name, prior in (("before", source), ("after", load(options.name)))}
        record: dict[str, Any] = {"config": tuned.card["tuning"], "images": len(crops), "levels": LEVELS, "psnr": rows}
        write_record(Path(__file__).parent / "results" / f"tune-{options.name}.json", record)
        print(json.dumps(rows))
        return
    saved, losses = time.monotonic(), []
    for progress in tuning.run(config.steps):
        losses.append(progress.loss)
        last = progress.step == config.steps
        if last or time.monotonic() - saved > BETWEEN_SAVES:
            with replacing(checkpoint) as temporary:
                save_file({name: x.contiguous() for name, x in tuning.state().items()}, str(temporary))
            saved = time.monotonic()
        if last or progress.step % 50 == 0:
            print(f"step {progress.step}, {progress.seconds:.0f} s: loss {np.mean(losses[-50:]):.3f}", flush=True)
        if last or progress.step % BETWEEN_VALIDATIONS == 0:
            print(f"validation {validation(tuning.prior(card), crops[::4])}", flush=True)


if __name__ == "__main__":
    main()
