"""Shapes along their main axes: the closed form of averaged eigenvalues, and the kernels against their twin."""

import numpy as np
import pytest

from examples import gaussian_mixture
from heatprior.kernels.candidates import UNROLLED, peak, peaks, peaks_plain
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import shape_tables

PRIOR = gaussian_mixture(4, 5, (0.2, 1.0, 5.0), seed=3, narrowest=0.02)
SIGMAS = (0.05, 0.1, 0.4)
KEPT = (5, UNROLLED, 15)  # of 15 dimensions


def with_averaged_tails(kept):
    """The mixture whose variances beyond the largest few are replaced, in each shape, by their mean."""
    variances = PRIOR.variances.copy()
    if kept < variances.shape[1]:
        variances[:, kept:] = variances[:, kept:].mean(axis=1, keepdims=True)
    covariances = (PRIOR.turns.swapaxes(1, 2) * variances[:, None, :]) @ PRIOR.turns
    return GaussianMixturePrior(covariances, PRIOR.log_weights, PRIOR.contrasts)


def peaks_by_covariances(prior, y, sigma):
    """log max_g π_kg G(y; 0, c_g Σ_k + sigma² Id) / G(y; 0, sigma² Id), (K, n), from the covariances themselves."""
    u, identity = y @ prior.basis.T, sigma**2 * np.eye(len(prior.basis))
    found = np.full((len(prior.covariances), len(u)), -np.inf)
    for k, covariance in enumerate(prior.covariances):
        for g, contrast in enumerate(prior.contrasts):
            seen = contrast * covariance + identity
            squares = np.einsum("nd,nd->n", u, u / sigma**2 - np.linalg.solve(seen, u.T).T)
            volumes = np.linalg.slogdet(seen)[1] - np.linalg.slogdet(identity)[1]
            found[k] = np.maximum(found[k], prior.log_weights[k, g] + 0.5 * (squares - volumes))
    return found


def noisy_patches(sigma):
    return PRIOR.sample(70, sigma, rng=np.random.default_rng(1))


def by_twin(y, shapes, level):
    levels = np.full(len(y), level)
    return np.stack([peaks_plain(y, (y**2).sum(axis=1), shapes, k, levels) for k in range(len(shapes.axes))])


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("level", range(len(SIGMAS)))
def test_it_is_the_density_of_the_mixture_with_averaged_variances(kept, level):
    y = noisy_patches(SIGMAS[level])
    found = by_twin(y, shape_tables(PRIOR, SIGMAS, compared=kept).full, level)
    expected = peaks_by_covariances(with_averaged_tails(kept), y, SIGMAS[level])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)  # tables are in float32
    exact = peaks_by_covariances(PRIOR, y, SIGMAS[level])
    assert (np.abs(found - exact).max() > 0.1) == (kept < 15)  # nothing is averaged where all axes are kept


@pytest.mark.parametrize("kept", KEPT)
def test_the_kernels_are_their_twin(kept):
    y = np.asarray(noisy_patches(SIGMAS[1]), np.float32)
    shapes = shape_tables(PRIOR, SIGMAS, compared=kept).full
    energies = (y**2).sum(axis=1)
    for level in range(len(SIGMAS)):
        expected = by_twin(y, shapes, level)
        for k in range(len(shapes.axes)):
            squares = np.square(shapes.axes[k] @ y.T)
            gains, rest, constants = shapes.gains[level, k], shapes.rest[level, k], shapes.constants[level, k]
            highest, room = np.empty(len(y), np.float32), np.empty(len(y), np.float32)
            peaks(squares, energies, gains, rest, constants, highest, room)
            one_by_one = [
                peak(own, energy, gains, rest, constants)
                for own, energy in zip(np.ascontiguousarray(squares.T), energies, strict=True)
            ]
            np.testing.assert_allclose(highest, expected[k], rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(one_by_one, expected[k], rtol=1e-4, atol=1e-3)
        assert np.abs(expected - by_twin(y, shapes, (level + 1) % len(SIGMAS))).max() > 1.0
