"""Fine-tune a shipped prior, with its schedules of splitting, to denoise images; put the result among the shipped ones.

    python -m paper.weights.finetune SOURCE NAME [--averaging-steps 2000] [--splitting-steps 400] [--last-steps 0]
                                   [--side 48] [--crops 4] [--data DIR] [--state FILE]

Learns from the training images, and is judged on crops of the 32 validation images; BSD68 plays no role. The loss is
that of `paper.learning.denoising_loss`. With --state the run is saved every minute, and goes on from there if the
file exists.
Writes records/finetune-NAME.json.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from heatprior import PatchPrior
from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, read_images
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.files import replacing
from heatprior.images import read_grey
from paper import RECORDS, bsds500, load_patch_prior, prior_file
from paper.learning.finetuning import SIGMAS, FineTuning, FineTuningConfig
from paper.methods import METHODS
from paper.records import write_record

CROP = slice(80, 240)
BETWEEN_SAVES = 60.0  # seconds
REPORT = 100  # steps


def validation(prior: PatchPrior, crops: list[FloatArray]) -> dict[str, list[float]]:
    """Mean PSNR over the crops for each of LEVELS: one step, and splitting with the schedules of the card."""
    rows: dict[str, list[float]] = {"eb": [], "hqs": []}
    for level in LEVELS:
        sigma = level / 255
        pairs = [(with_noise(clean, i, sigma), clean) for i, clean in enumerate(crops)]
        for name, method in METHODS.items():
            values = [psnr(method(noisy, sigma, prior), clean) for noisy, clean in pairs]
            rows[name].append(round(float(np.mean(values)), 3))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("name")
    for field in ("averaging_steps", "splitting_steps", "last_steps", "side", "crops"):
        parser.add_argument(f"--{field.replace('_', '-')}", type=int, default=getattr(FineTuningConfig, field))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--state", type=Path)
    options = parser.parse_args()
    source = load_patch_prior(options.source)
    config = FineTuningConfig(
        averaging_steps=options.averaging_steps,
        splitting_steps=options.splitting_steps,
        last_steps=options.last_steps,
        side=options.side,
        crops=options.crops,
    )
    images = read_images(bsds500.training(options.data), config.side).images
    begun = source.schedules
    levels, weights = (
        [[float(at(step, sigma)) for step in range(begun.steps)] for sigma in SIGMAS]
        for at in (begun.level, begun.weight)
    )
    tuning = FineTuning(config, source, PatchSource(images, config.side), levels, weights)
    if options.state and options.state.exists():
        tuning.restore(load_file(options.state))
    crops = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in bsds500.validation(options.data)]
    saved = time.monotonic()
    for progress in tuning.run(config.steps):
        last = progress.step == config.steps
        if options.state and (last or time.monotonic() - saved > BETWEEN_SAVES):
            with replacing(options.state) as temporary:
                save_file({name: np.ascontiguousarray(x) for name, x in tuning.state().items()}, str(temporary))
            saved = time.monotonic()
        if last or progress.step % REPORT == 0:
            print(f"step {progress.step}, {progress.seconds:.0f} s: loss {progress.loss:.5f}", end=" ")
            print(validation(tuning.prior(), crops[:4]), flush=True)
    card = {"name": options.name, "fine-tuned from": options.source}
    tuned = tuning.prior(card)
    tuned.save(prior_file(options.name))
    rows = {name: validation(prior, crops) for name, prior in ((options.source, source), (options.name, tuned))}
    print(f"mean PSNR in dB of {len(crops)} crops, 255 sigma =".ljust(44) + "".join(f"{level:9d}" for level in LEVELS))
    for name, row in rows.items():
        for method, values in row.items():
            print(f"{name}, {method}".ljust(44) + "".join(f"{value:9.2f}" for value in values))
    settings = {name: value for name, value in vars(options).items() if name not in ("data", "state")}
    record = {"settings": settings, "images": len(crops), "levels": LEVELS, "psnr": rows}
    write_record(RECORDS / f"finetune-{options.name}.json", record)


if __name__ == "__main__":
    main()
