"""The laws that every diffused prior obeys, each one helper over the protocol: an AssertionError if the law fails.

`Span` says where a prior lives: what is not seen by it is no part of any integral or Laplacian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import kstest

from heatprior.priors.protocol import DiffusedPrior, tweedie
from paper.claims.heat_residual import SPACE_STEP, derivative, heat_terms

# On Gaussians the trapezoidal rule errs by exp(−2π² width² / step²): by 3e-18 with steps of 0.7 widths.
QUADRATURE_STEP = 0.7


class Grid(NamedTuple):
    lines: list[np.ndarray]
    points: np.ndarray  # all of their combinations, (n, d)
    cell: float


@dataclass(frozen=True)
class Span:
    """Orthonormal axes (d, a) of the components of a density, their widths, and how far out their means lie."""

    axes: np.ndarray
    widths: np.ndarray
    radii: np.ndarray

    def narrowest(self, sigma):
        return np.sqrt(self.widths.min() ** 2 + np.square(sigma))

    def widths_at(self, sigma: float) -> np.ndarray:
        return np.hypot(self.widths, sigma)

    def grid(self, sigma: float, steps: np.ndarray) -> Grid:
        """A grid over all the mass at `sigma`: beyond nine widths 1e-18 of it is left."""
        halves = self.radii + 9.0 * self.widths_at(sigma)
        counts = np.ceil(2 * halves / steps).astype(int) + 1
        lines = [np.linspace(-half, half, count) for half, count in zip(halves, counts, strict=True)]
        points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))
        return Grid(lines, points, float(np.prod([line[1] - line[0] for line in lines])))


def score_is_the_gradient_of_log_prob(prior: DiffusedPrior, span: Span, y, sigma) -> None:
    """To 1e-6, in units of one over the width of the density: the score of a Gaussian at one standard deviation."""
    width = span.narrowest(sigma)
    pixels = np.eye(y.shape[-1])
    slope = derivative(lambda h: prior.log_prob(y[..., None, :] + h * pixels, sigma), SPACE_STEP * width)
    np.testing.assert_allclose(width * prior.score(y, sigma), width * slope, rtol=1e-6, atol=1e-6)


def log_prob_solves_the_heat_equation(prior: DiffusedPrior, span: Span, y, sigma: float) -> None:
    """∂t log f = Δ log f + |∇ log f|², t = sigma²/2, to 1e-7 of its largest term, in units of the width."""
    width = span.narrowest(sigma)
    terms = heat_terms(prior.log_prob, prior.score, y, span.axes, sigma, span.widths.min())
    largest = width**2 * np.max(np.abs(terms), axis=0)
    np.testing.assert_array_less(width**2 * np.abs(terms.residual), 1e-7 * np.maximum(1.0, largest))


def mass_is_one(prior: DiffusedPrior, span: Span, sigma: float) -> None:
    """∫ f = 1 over the span, to the 1e-12 that the sum of up to 1e5 roundings leaves."""
    grid = span.grid(sigma, QUADRATURE_STEP * span.widths_at(sigma))
    mass = np.exp(prior.log_prob(grid.points @ span.axes, sigma)).sum() * grid.cell
    np.testing.assert_allclose(mass, 1.0, rtol=1e-12)


def diffusion_is_a_semigroup(prior: DiffusedPrior, span: Span, y, first: float, second: float) -> None:
    """f(·, first) convolved with a Gaussian of deviation `second` is f(·, √(first² + second²))."""
    grid = span.grid(first, QUADRATURE_STEP * _width_of_product(span.widths_at(first), second))
    density = np.exp(prior.log_prob(grid.points @ span.axes, first))
    convolved = _heat_kernel(y @ span.axes.T, grid.points, second) @ density * grid.cell
    np.testing.assert_allclose(convolved, np.exp(prior.log_prob(y, np.hypot(first, second))), rtol=1e-10)


def tweedie_is_the_posterior_mean(prior: DiffusedPrior, span: Span, y, sigma: float) -> None:
    """y + sigma² score = E[X | Y = y] by quadrature of the prior times the likelihood."""
    mean, _ = posterior_by_quadrature(prior, span, y, sigma)
    scale = span.radii.max() + span.widths_at(sigma).max()
    np.testing.assert_allclose(tweedie(prior, y, sigma), mean, rtol=1e-9, atol=1e-9 * scale)


def tweedie_is_the_posterior_mean_of_samples(prior: DiffusedPrior, span: Span, y, sigma: float, *, rng) -> None:
    """The same for one patch by Monte Carlo: clean samples weighed by their likelihood, within five standard errors."""
    mean, _, standard_error, _ = posterior_by_monte_carlo(prior, span, y, sigma, rng=rng)
    np.testing.assert_array_less(np.abs(tweedie(prior, y, sigma) - mean), 5.0 * standard_error + 1e-12)


def variance_is_tweedies_second_formula(prior, span: Span, y, sigma: float) -> None:
    """Var[X_i | Y = y] = sigma² + sigma⁴ ∂²_i log f, pixel by pixel, to 1e-7 of sigma²: the error of the difference."""
    pixels = np.eye(y.shape[-1])
    step = SPACE_STEP * span.narrowest(sigma)
    curvature = derivative(lambda h: np.sum(prior.score(y[..., None, :] + h * pixels, sigma) * pixels, axis=-1), step)
    expected = sigma**2 + sigma**4 * curvature
    np.testing.assert_allclose(prior.posterior(y, sigma).variance, expected, atol=1e-7 * sigma**2, rtol=0)


def variance_is_the_posterior_variance(prior, span: Span, y, sigma: float) -> None:
    """Var[X_i | Y = y] by quadrature."""
    _, variance = posterior_by_quadrature(prior, span, y, sigma)
    np.testing.assert_allclose(prior.posterior(y, sigma).variance, variance, rtol=1e-9)


def variance_is_the_posterior_variance_of_samples(prior, span: Span, y, sigma: float, *, rng) -> None:
    """The same for one patch by Monte Carlo."""
    _, variance, _, standard_error = posterior_by_monte_carlo(prior, span, y, sigma, rng=rng)
    np.testing.assert_array_less(np.abs(prior.posterior(y, sigma).variance - variance), 5.0 * standard_error + 1e-12)


def posterior_by_quadrature(prior: DiffusedPrior, span: Span, y, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance, pixel by pixel, of X given y; off the span X is known through y only, with variance sigma²."""
    grid = span.grid(0.0, QUADRATURE_STEP * _width_of_product(span.widths, sigma))
    patches, seen = grid.points @ span.axes, y @ span.axes.T
    weights = _heat_kernel(seen, grid.points, sigma) * np.exp(prior.log_prob(patches, 0.0))
    weights /= weights.sum(axis=-1, keepdims=True)
    mean = weights @ patches
    variance = np.array([w @ (patches - m) ** 2 for w, m in zip(weights, mean, strict=True)])
    unseen = 1.0 - (span.axes**2).sum(axis=0)
    return mean + y - seen @ span.axes, variance + sigma**2 * unseen


def posterior_by_monte_carlo(prior: DiffusedPrior, span: Span, y, sigma: float, *, rng) -> tuple[np.ndarray, ...]:
    """Mean, variance and the standard error of both, pixel by pixel, for one patch y; as `posterior_by_quadrature`."""
    samples = prior.sample(200_000, rng=rng)
    exponents = -0.5 * (((y - samples) @ span.axes.T) ** 2).sum(axis=-1) / sigma**2
    weights = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 200, "too few samples near y for a Monte Carlo mean"
    mean = weights @ samples
    squares = (samples - mean) ** 2
    variance = weights @ squares
    errors = (np.sqrt(weights**2 @ deviation**2) for deviation in (samples - mean, squares - variance))
    off_span = np.eye(len(y)) - span.axes.T @ span.axes
    return mean + off_span @ y, variance + sigma**2 * np.diag(off_span), *errors


def samples_follow_the_density(prior: DiffusedPrior, span: Span, sigma: float, *, rng) -> None:
    """Kolmogorov–Smirnov along each axis, against the marginal by quadrature; by chance one seed in 1000 fails."""
    dimension = len(span.axes)
    samples = prior.sample(10_000, sigma, rng=rng) @ span.axes.T
    grid = span.grid(sigma, span.widths_at(sigma) / 8.0)  # so fine that interpolating the cdf linearly errs by 1e-3
    mass = (
        np.exp(prior.log_prob(grid.points @ span.axes, sigma)).reshape([len(line) for line in grid.lines]) * grid.cell
    )
    for axis in range(dimension):
        marginal = mass.sum(axis=tuple(other for other in range(dimension) if other != axis))
        cdf = np.cumsum(marginal) - 0.5 * marginal
        result = kstest(samples[:, axis], lambda z, line=grid.lines[axis], cdf=cdf: np.interp(z, line, cdf))
        assert result.pvalue > 1e-3, f"axis {axis}: p = {result.pvalue:.2g}"


def samples_obey_steins_identity(prior: DiffusedPrior, span: Span, sigma: float, *, rng) -> None:
    """E[score(Y) Yᵀ] = −Id on the span, in any dimension, within five standard errors."""
    samples = prior.sample(20_000, sigma, rng=rng)
    scores, coordinates = prior.score(samples, sigma) @ span.axes.T, samples @ span.axes.T
    mean = scores.T @ coordinates / len(samples)
    second_moment = (scores**2).T @ coordinates**2 / len(samples)
    standard_error = np.sqrt((second_moment - mean**2) / len(samples))
    np.testing.assert_array_less(np.abs(mean + np.eye(len(span.axes))), 5.0 * standard_error)


def sigma_per_patch_is_patch_by_patch(prior: DiffusedPrior, y, sigmas) -> None:
    """One call with one sigma per patch equals one call per patch, to the roundings of a reordered matrix product."""
    together = prior.log_prob(y, sigmas), prior.score(y, sigmas)
    alone = (np.array([f(p, s) for p, s in zip(y, sigmas, strict=True)]) for f in (prior.log_prob, prior.score))
    for all_at_once, one_by_one in zip(together, alone, strict=True):
        np.testing.assert_allclose(all_at_once, one_by_one, rtol=1e-12, atol=1e-12 * np.abs(one_by_one).max())


def _heat_kernel(y, x, sigma: float) -> np.ndarray:
    """Gaussian of deviation sigma at the differences of y (n, d) and x (m, d): (n, m)."""
    square = ((y[:, None, :] - x) ** 2).sum(axis=-1)
    return np.exp(-0.5 * square / sigma**2) / (2.0 * np.pi * sigma**2) ** (x.shape[1] / 2)


def _width_of_product(one, other):
    return (one**-2.0 + other**-2.0) ** -0.5
