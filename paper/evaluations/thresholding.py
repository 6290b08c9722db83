"""What averaging wants: the posterior mean of every patch beside hard thresholding in the same filters.

    python -m paper.evaluations.thresholding [--data DIR] [PRIOR ...]

The posterior mean is the best that can be done for each patch by itself. Averaged over overlapping patches it need not
be: keeping a response or setting it to zero, at a multiple of the noise, errs more on each patch but less alike on
neighbouring ones. Mean PSNR on crops of eight validation images; writes records/thresholding.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.kernels.patches import average, extract
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import denoise_once
from paper import RECORDS, bsds500, load_patch_prior
from paper.records import write_record

CROP = slice(80, 240)
IMAGES = 8
MULTIPLES = (2.0, 2.5, 3.0)  # of the noise of a response
RESULT = RECORDS / "thresholding.json"


def thresholded(prior: PatchPrior, image: FloatArray, threshold: float) -> FloatArray:
    """Responses of unit filters below the threshold are set to zero in every patch."""
    directions = (prior.filters.matrix / prior.filters.norms[:, None]).astype(np.float32)
    responses = extract(image, prior.filters.size) @ directions.T
    changes = np.where(np.abs(responses) < threshold, -responses, np.float32(0.0)) @ directions
    return image + average(changes, (image.shape[0], image.shape[1]), prior.filters.size)


def denoised(prior: PatchPrior, noisy: FloatArray, sigma: float, multiple: float | None) -> FloatArray:
    if multiple is None:
        return denoise_once(prior, noisy, sigma)
    return thresholded(prior, noisy, multiple * sigma)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("priors", nargs="*", default=["patch7", "patch15"], metavar="PRIOR")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    files = bsds500.validation(arguments.data)[:IMAGES]
    crops = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in files]
    rows = {}
    print(f"mean PSNR in dB of {len(crops)} crops, 255 sigma =".ljust(44) + "".join(f"{level:9d}" for level in LEVELS))
    for name in arguments.priors:
        prior = load_patch_prior(name)
        for multiple in (None, *MULTIPLES):
            means = []
            for level in LEVELS:
                sigma = level / 255
                values = []
                for i, clean in enumerate(crops):
                    noisy = with_noise(clean, i, sigma)
                    values.append(psnr(denoised(prior, noisy, sigma, multiple), clean))
                means.append(round(float(np.mean(values)), 3))
            label = f"{name}, " + ("posterior mean" if multiple is None else f"threshold {multiple} sigma")
            rows[label] = means
            print(f"{label:44}" + "".join(f"{value:9.2f}" for value in means), flush=True)
    write_record(RESULT, {"images": len(crops), "levels": LEVELS, "psnr": rows})


if __name__ == "__main__":
    main()
