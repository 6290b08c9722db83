"""What restoring minimises at a fixed noise level: ‖A x − y‖² / (2 sigma²) − TRUST · mean log f, of patches or shifts.

The mean is over the patches that hold a pixel, or over the shifts of a wavelet basis: by Tweedie, the prior's step is a
step of gradient descent on it, of length level², and −log f(·, level) curves no more than 1 / level² allows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from synthetic import landscape, oriented_mixture
from whole_images import wavelet_prior

import heatprior as hp
from heatprior.kernels.patches import extract
from heatprior.priors.gaussian_mixture import Components
from heatprior.priors.protocol import denoise_once
from heatprior.restoration.operators.convolution import gaussian_kernel
from heatprior.restoration.operators.measurement import draw_to_data
from heatprior.restoration.plug_and_play import TRUST
from heatprior.scipy_subset import log_sum_exp
from paper.weights.handmade import dct_prior

SHAPE = (24, 28)
SIGMA, LEVEL = 0.02, 0.04
SIZE = 3
PATCHES = dct_prior(SIZE)
MIXTURE = oriented_mixture(SIZE)
WAVELETS = wavelet_prior(2, 1)


def all_patches(x):
    rows = np.pad(x, (0, SIZE - 1), mode="wrap")
    return np.concatenate([extract(np.ascontiguousarray(rows[i : i + SIZE]), SIZE) for i in range(SHAPE[0])])


def step_of(prior, x):
    return denoise_once(prior, np.pad(x, SIZE - 1, mode="wrap"), LEVEL)[SIZE - 1 : 1 - SIZE, SIZE - 1 : 1 - SIZE]


def mean_log_of_patches(x):
    return PATCHES.log_prob(all_patches(x), LEVEL).sum() / SIZE**2


def mean_log_of_chosen_shapes(x):
    """The largest over shapes of log Σ over contrasts, in place of log Σ over both."""
    patches = all_patches(x)
    components = Components(MIXTURE, patches, np.full(len(patches), LEVEL))
    return log_sum_exp(components.log_densities, axis=1).max(axis=0).sum() / SIZE**2


def step_of_wavelets(x):
    return WAVELETS.denoise(x, LEVEL)


def mean_log_of_wavelets(x):
    shifts = [(i, j) for i in range(WAVELETS.unit) for j in range(WAVELETS.unit)]
    return np.mean([WAVELETS.log_prob(np.roll(x, shift, axis=(0, 1)), LEVEL) for shift in shifts])


KINDS = {
    "patches": (partial(step_of, PATCHES), mean_log_of_patches),
    "mixture": (partial(step_of, MIXTURE), mean_log_of_chosen_shapes),
    "wavelets": (step_of_wavelets, mean_log_of_wavelets),
}
ROUNDING = {"patches": 1e-4, "mixture": 1e-3, "wavelets": 1e-4}  # float32 and tables; a mixture leaves faint axes out


def objective(x, mean_log, measurement, y, trust=TRUST):
    return np.square(measurement.forward(x) - y).sum() / (2 * SIGMA**2) - trust * mean_log(x)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_at_one_level_descend_on_a_known_objective(kind):
    prior_step, mean_log = KINDS[kind]
    rng = np.random.default_rng(0)
    measurement = hp.operators.Blur(gaussian_kernel(0.5), edges="cyclic").on(SHAPE)
    y = measurement.forward(landscape(SHAPE, rng).astype(np.float64)) + SIGMA * rng.standard_normal(SHAPE)
    value = partial(objective, mean_log=mean_log, measurement=measurement, y=y)
    x, values = y, []
    for _ in range(60):
        z = prior_step(x).astype(np.float64)
        x = draw_to_data(measurement, z, y - measurement.forward(z), TRUST * (SIGMA / LEVEL) ** 2, 0.0)
        values.append(value(x))
    rounding = ROUNDING[kind] * abs(values[0] - values[-1])
    assert (np.diff(values) < rounding).all()
    assert values[0] - values[-1] > 1.0

    direction = x - prior_step(x)
    direction /= np.linalg.norm(direction)
    slopes = {
        trust: (value(x + 1e-4 * direction, trust=trust) - value(x - 1e-4 * direction, trust=trust)) / 2e-4
        for trust in (TRUST, 1.3 * TRUST)
    }
    assert abs(slopes[TRUST]) < 0.1 * abs(slopes[1.3 * TRUST])  # with another weight it is not stationary
