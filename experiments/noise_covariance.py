"""Correlated noise whose covariance is known, found again by EM: relative error by number of patches.

    python experiments/noise_covariance.py [--most 6400]

Patches are drawn from the shipped mixture, with noise of a low-pass spectrum added at two strengths, each for half of
them. EM starts from the flattest patches, as in photographs, and no constant chosen on photographs takes part. The
error is that of the covariance of a patch, in the Frobenius norm, the mean over both strengths; beside it, what is left
if the noise is taken for white of the right strength. Writes experiments/results/noise_covariance.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior.noise.correlated import SIDE, Patches, fit_noise, start_from_flat
from heatprior.noise.stationary import covariance_without_brightness
from heatprior.noise_model import NoiseSpectrum
from heatprior.priors.correlated_mixture import CorrelatedMixture
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.records import write_record
from heatprior.zoo import as_prior

SIGMAS = (0.025, 0.05)
WIDTHS, WHITE_PART = (0.2, 0.13), 0.03  # of the spectrum in cycles per pixel, down and across; of the power, white
FEWEST = 200
ROUNDS = 15
RESULT = Path(__file__).parent / "results" / "noise_covariance.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=6400, help="patches")
    arguments = parser.parse_args()
    prior = as_prior("mixture")
    if not isinstance(prior, GaussianMixturePrior):
        raise TypeError("the shipped mixture is no mixture")
    f = np.fft.fftfreq(SIDE)
    spectrum = NoiseSpectrum(np.exp(-np.add.outer((f / WIDTHS[0]) ** 2, (f / WIDTHS[1]) ** 2)) + WHITE_PART)
    true = covariance_without_brightness(spectrum.power, prior.size)
    white = np.eye(len(true)) * np.trace(true) / len(true)
    model = CorrelatedMixture(prior, spectrum)
    errors: dict[str, float] = {}
    least_gain = np.inf
    count = FEWEST
    while count <= arguments.most:
        rng = np.random.default_rng(0)
        levels = [(model.sample(count // 2, sigma, rng=rng) @ prior.basis.T).astype(np.float32) for sigma in SIGMAS]
        patches = Patches(levels, np.array([0.2, 0.8]), prior.size, 1.0)
        fit = fit_noise(prior, patches, *start_from_flat(patches), rounds=ROUNDS)
        found = [
            v / sigma**2 * covariance_without_brightness(fit.power, prior.size)
            for v, sigma in zip(fit.variances, SIGMAS, strict=True)
        ]
        errors[str(count)] = round(float(np.mean([np.linalg.norm(c - true) for c in found]) / np.linalg.norm(true)), 4)
        least_gain = min(least_gain, float(np.diff(fit.log_posterior).min()) / count)
        print(count, errors[str(count)], flush=True)
        count *= 2
    if_white = round(float(np.linalg.norm(white - true) / np.linalg.norm(true)), 4)
    print("white", if_white, "least gain of a round, for each patch", least_gain)
    about = {"seed": 0, "sigmas": SIGMAS, "rounds": ROUNDS, "least_gain_of_a_round_per_patch": least_gain}
    write_record(RESULT, {**about, "relative_error": errors, "relative_error_if_white": if_white})


if __name__ == "__main__":
    main()
