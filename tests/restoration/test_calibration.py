"""scikit-image's `calibrate_denoiser` (Batson and Royer 2019) chooses the arguments of `heatprior.denoise`."""

import numpy as np
from skimage.data import camera
from skimage.restoration import calibrate_denoiser

import heatprior as hp


def test_the_noise_level_is_found_by_calibration():
    clean = camera()[100:164, 150:214] / 255.0
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    choices = {"sigma": [0.03, 0.1, 0.3], "prior": ["patch7"], "steps": [1], "white": [1.0]}
    calibrated, (tested, losses) = calibrate_denoiser(noisy, hp.denoise, choices, stride=3, extra_output=True)
    best = tested[int(np.argmin(losses))]
    assert best["sigma"] == 0.1
    # What it hands back hides pixels from the denoiser in turns, and is near what the denoiser does by itself.
    denoised = calibrated(noisy)
    errors = [np.square(image - clean).mean() for image in (denoised, noisy, hp.denoise(noisy, **best))]
    assert errors[2] < errors[0] < 0.5 * errors[1]
