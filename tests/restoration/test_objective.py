"""What restoring minimises at a fixed noise level: ‖A x − y‖² / (2 sigma²) − TRUST · mean log f, of patches or shifts.

The mean is over the patches that hold a pixel, or over the shifts of a wavelet basis: by Tweedie, the prior's step is a
step of gradient descent on it, of length level², and −log f(·, level) curves no more than 1 / level² allows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from synthetic import landscape
from whole_images import wavelet_prior

import heatprior as hp
from heatprior.kernels.patches import extract
from heatprior.priors.handmade import dct_prior
from heatprior.priors.one_step import denoised_once
from heatprior.restoration.operators.point_spreads import gaussian_kernel
from heatprior.restoration.operators.tikhonov import drawn_to_data
from heatprior.restoration.plug_and_play import TRUST

SHAPE = (24, 28)
SIGMA, LEVEL = 0.02, 0.04
SIZE = 3
PATCHES = dct_prior(SIZE)
WAVELETS = wavelet_prior(2, 1)


def step_of_patches(x):
    return denoised_once(PATCHES, np.pad(x, SIZE - 1, mode="wrap"), LEVEL)[SIZE - 1 : 1 - SIZE, SIZE - 1 : 1 - SIZE]


def mean_log_of_patches(x):
    rows = np.pad(x, (0, SIZE - 1), mode="wrap")
    patches = [extract(np.ascontiguousarray(rows[i : i + SIZE]), SIZE) for i in range(SHAPE[0])]
    return PATCHES.log_prob(np.concatenate(patches), LEVEL).sum() / SIZE**2


def step_of_wavelets(x):
    return WAVELETS.denoised(x, LEVEL)


def mean_log_of_wavelets(x):
    shifts = [(i, j) for i in range(WAVELETS.unit) for j in range(WAVELETS.unit)]
    return np.mean([WAVELETS.log_prob(np.roll(x, shift, axis=(0, 1)), LEVEL) for shift in shifts])


KINDS = {"patches": (step_of_patches, mean_log_of_patches), "wavelets": (step_of_wavelets, mean_log_of_wavelets)}


def objective(x, mean_log, measurement, y, trust=TRUST):
    return np.square(measurement.forward(x) - y).sum() / (2 * SIGMA**2) - trust * mean_log(x)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_at_one_level_descend_on_a_known_objective(kind):
    prior_step, mean_log = KINDS[kind]
    rng = np.random.default_rng(0)
    measurement = hp.Blur(gaussian_kernel(0.5), edges="cyclic").on(SHAPE)
    y = measurement.forward(landscape(SHAPE, rng).astype(np.float64)) + SIGMA * rng.standard_normal(SHAPE)
    value = partial(objective, mean_log=mean_log, measurement=measurement, y=y)
    x, values = y, []
    for _ in range(60):
        z = prior_step(x).astype(np.float64)
        x = drawn_to_data(measurement, z, y - measurement.forward(z), TRUST * (SIGMA / LEVEL) ** 2, 0.0)
        values.append(value(x))
    rounding = 1e-4 * abs(values[0] - values[-1])  # steps are in float32, and by tables
    assert (np.diff(values) < rounding).all()
    assert values[0] - values[-1] > 1.0

    direction = x - prior_step(x)
    direction /= np.linalg.norm(direction)
    slopes = {
        trust: (value(x + 1e-4 * direction, trust=trust) - value(x - 1e-4 * direction, trust=trust)) / 2e-4
        for trust in (TRUST, 1.3 * TRUST)
    }
    assert abs(slopes[TRUST]) < 0.1 * abs(slopes[1.3 * TRUST])  # with another weight it is not stationary
