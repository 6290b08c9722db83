"""A prior of one's own kind of image against that of natural images: CT and MRI of the Shepp–Logan phantom.

    python -m paper.evaluations.own_kind [--side 128]

The own kind is random ellipses of constant grey, none of which is the phantom. A mixture is trained on forty of them
by `hp.train`, as `heatprior train --kind mixture` does (ellipses.py); "adapted" is that prior fitted by `hp.adapt` to
the image that it reconstructed from these very data, and used again; "natural adapted" is the shipped mixture fitted to
eight noisy images of the own kind. All are told the same data. Writes records/own_kind.json.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from skimage import data as skimage_data
from skimage import transform as skimage_transform

import heatprior as hp
from heatprior.data.trials import psnr
from paper import RECORDS
from paper.evaluations.ellipses import own_prior, random_ellipses
from paper.evaluations.inverse_trials import lines_seen
from paper.evaluations.tomography import projection_matrix
from paper.records import write_record

RESULT = RECORDS / "own_kind.json"
SIGMA = 2.55 / 255  # of MRI
NOISE = 0.005  # of CT, over the largest sum along a ray
VIEWS = (60, 20)
data: Any = skimage_data  # which has no types
transform: Any = skimage_transform


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=128)
    side = parser.parse_args().side
    truth = transform.resize(data.shepp_logan_phantom(), (side, side), anti_aliasing=True)
    start = time.perf_counter()
    own = own_prior(side)
    seconds = round(time.perf_counter() - start, 1)
    rng = np.random.default_rng(0)
    problems: dict[str, tuple[Any, Any, float, dict[str, Any]]] = {}
    for views in VIEWS:
        matrix = projection_matrix(side, np.arange(views) * 180.0 / views)
        sinogram = matrix @ truth.reshape(-1)
        sigma = NOISE * float(sinogram.max())
        y = sinogram + sigma * rng.standard_normal(sinogram.shape)
        problems[f"ct-{views}-views"] = (y, matrix, sigma, {"shape": (side, side)})
    seen = lines_seen(side, 0.25, 0)
    spread = SIGMA * (rng.standard_normal(truth.shape) + 1j * rng.standard_normal(truth.shape))
    problems["mri-4-fold"] = (seen * (np.fft.fft2(truth, norm="ortho") + spread), hp.operators.Fourier(seen), SIGMA, {})
    some = np.stack([random_ellipses(side, np.random.default_rng(100 + n)) for n in range(8)])
    natural = hp.adapt("mixture", some + SIGMA * rng.standard_normal(some.shape), SIGMA)
    figures: dict[str, dict[str, float]] = {}
    for name, (y, operator, sigma, options) in problems.items():
        again = hp.adapt(own, hp.restore(y, operator, sigma, prior=own, **options), SIGMA)
        priors: dict[str, str | hp.DiffusedPrior] = {
            "natural": "tuned",
            "natural density": "mixture",
            "natural adapted": natural,
            "own kind": own,
            "own kind adapted": again,
        }
        restored = {kind: hp.restore(y, operator, sigma, prior=prior, **options) for kind, prior in priors.items()}
        figures[name] = {kind: round(float(psnr(image, truth)), 2) for kind, image in restored.items()}
        print(name, figures[name], flush=True)
    write_record(RESULT, {"side": side, "training seconds": seconds, "psnr": figures})


if __name__ == "__main__":
    main()
