"""A mixture of Gaussians under correlated noise: the laws of diffusion along C, and that each of them can fail."""

import numpy as np
import pytest
from correlated_mixture import CorrelatedMixture

from heatprior.kernels.shapes import changes_plain
from heatprior.noise_value import Noise, NoiseSpectrum
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import shape_tables, step_of_mixture

SIGMA = 0.3


def low_pass(side=8, width=0.25):
    f = np.fft.fftfreq(side)
    return NoiseSpectrum(np.exp(-np.add.outer(f**2, (0.5 * f) ** 2) / width**2) + 0.05)


@pytest.fixture(scope="module")
def small():
    """Two shapes of 2×2 patches at two contrasts, so that integrals can be done by quadrature."""
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(2, 3, 3)) * 0.3
    covariances = roots @ roots.swapaxes(1, 2) + 0.05 * np.eye(3)
    return GaussianMixturePrior(covariances, np.log([[0.3, 0.2], [0.4, 0.1]]), np.array([0.5, 2.0]))


@pytest.fixture
def model(small):
    return CorrelatedMixture(small, low_pass())


def explicit_density(prior, covariance, y, sigma):
    """Σ π G(y; 0, c Σ + sigma² C) written out in the cosine basis, normalised, for the twin."""
    u = y @ prior.basis.T
    total = 0.0
    for k, shape in enumerate(prior.covariances):
        for g, contrast in enumerate(prior.contrasts):
            full = contrast * shape + sigma**2 * (prior.basis @ covariance @ prior.basis.T)
            scale = np.exp(prior.log_weights[k, g]) / np.sqrt(np.linalg.det(2 * np.pi * full))
            total = total + scale * np.exp(-0.5 * np.einsum("nd,nd->n", u @ np.linalg.inv(full), u))
    return total


def test_density_is_that_of_the_components_with_c_added(model, small):
    y = small.sample(20, SIGMA, rng=np.random.default_rng(0))
    expected = np.log(explicit_density(small, model.spectrum.covariance(2), y, SIGMA))
    np.testing.assert_allclose(model.log_prob(y, SIGMA), expected, rtol=1e-10)
    white = np.log(explicit_density(small, np.eye(4), y, SIGMA))
    assert np.abs(white - expected).max() > 0.05  # the control: white noise is another density


def test_score_is_the_gradient_of_log_prob(model, small):
    y, h = small.sample(5, SIGMA, rng=np.random.default_rng(1)), 1e-5
    steps = h * np.eye(4)
    slope = (model.log_prob(y[:, None] + steps, SIGMA) - model.log_prob(y[:, None] - steps, SIGMA)) / (2 * h)
    np.testing.assert_allclose(model.score(y, SIGMA), slope, atol=1e-7)  # h² times third derivatives
    assert np.abs(small.score(y, SIGMA) - slope).max() > 1e-2


def heat_residual(model, covariance, y, sigma):
    """∂_t log f − tr(C ∇² log f) − ∇ log f · C ∇ log f, with t = sigma² / 2."""
    h = 1e-4
    before, after = (model.log_prob(y, np.sqrt(sigma**2 + 2 * s * h)) for s in (-1, 1))
    score = model.score(y, sigma)
    steps = h * np.eye(4)
    hessian = (model.score(y[:, None] + steps, sigma) - model.score(y[:, None] - steps, sigma)) / (2 * h)
    along = np.einsum("ij,nij->n", covariance, hessian) + np.einsum("ni,ij,nj->n", score, covariance, score)
    return (after - before) / (2 * h) - along


def test_log_prob_solves_the_heat_equation_along_c(model, small):
    y = small.sample(10, SIGMA, rng=np.random.default_rng(2))
    largest = np.abs(model.score(y, SIGMA)).max() ** 2
    assert np.abs(heat_residual(model, model.covariance, y, SIGMA)).max() < 1e-5 * largest
    assert np.abs(heat_residual(model, np.eye(4) - 0.25, y, SIGMA)).max() > 1e-2 * largest  # not along the identity


def test_mass_is_one(model, small):
    line = np.linspace(-8.0, 8.0, 65)  # steps of 0.25, below the least width; 8 is nine of the largest
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3) @ small.basis
    cell = (line[1] - line[0]) ** 3
    np.testing.assert_allclose(np.exp(model.log_prob(points, SIGMA)).sum() * cell, 1.0, rtol=1e-5)
    stretched = points @ model.covariance  # the control: a change of coordinates without its determinant
    assert abs(np.exp(model.log_prob(stretched, SIGMA)).sum() * cell - 1.0) > 0.1


def test_tweedie_with_c_is_the_posterior_mean(model, small):
    """By Monte Carlo: clean samples weighed by their likelihood, within five standard errors."""
    rng = np.random.default_rng(4)
    y = small.sample(1, SIGMA, rng=rng)[0]
    clean = small.sample(200_000, rng=rng)
    precision = np.linalg.pinv(SIGMA**2 * model.covariance, rcond=1e-9)
    rest = y - clean
    weights = np.exp(-0.5 * np.einsum("ni,ij,nj->n", rest, precision, rest))
    weights /= weights.sum()
    mean = weights @ clean
    error = np.sqrt((weights**2) @ (clean - mean) ** 2)
    assert (np.abs(model.posterior_mean(y, SIGMA) - mean) < 5 * error).all()
    assert (np.abs(y + SIGMA**2 * model.score(y, SIGMA) - mean) > 5 * error).any()  # without C it is another


def test_samples_have_the_variance_of_image_and_noise(model, small):
    patches = model.sample(40_000, SIGMA, rng=np.random.default_rng(5))
    mean = np.einsum("kg,g,kde->de", np.exp(small.log_weights), small.contrasts, small.covariances)
    expected = small.basis.T @ mean @ small.basis + SIGMA**2 * model.covariance
    np.testing.assert_allclose(patches.T @ patches / len(patches), expected, atol=0.06 * expected.max())


def test_fast_step_whitens_and_is_its_plain_twin():
    rng = np.random.default_rng(6)
    roots = rng.normal(size=(3, 63, 63)) * 0.02
    prior = GaussianMixturePrior(
        roots @ roots.swapaxes(1, 2) + 1e-4 * np.eye(63), np.log(np.full((3, 2), 1 / 6)), [0.5, 2]
    )
    spectrum = low_pass(16)
    image = rng.normal(size=(20, 24)).astype(np.float32) * 0.1
    changes = step_of_mixture(prior, image, Noise.constant(0.05, spectrum), candidates=3, negligible=0.0) - image
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (8, 8))
    patches = windows.reshape(-1, 64)
    plain = changes_plain(patches, shape_tables(prior, (0.05,), 0.0, spectrum), 0)[0].reshape(windows.shape)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    for i, j in np.ndindex(windows.shape[:2]):
        total[i : i + 8, j : j + 8] += plain[i, j]
        count[i : i + 8, j : j + 8] += 1
    np.testing.assert_allclose(changes, total / count, atol=2e-5)  # of float32
    white = step_of_mixture(prior, image, Noise.constant(0.05)) - image
    assert np.abs(white - changes).max() > 1e-2
