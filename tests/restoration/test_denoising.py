"""Empirical Bayes and half-quadratic splitting on grey images: what must hold whatever the prior."""

from dataclasses import dataclass

import numba
import numpy as np
import pytest
from pipelines import empirical_bayes, half_quadratic_splitting

from examples import patch_prior
from heatprior import InvalidInputError, load, tweedie
from heatprior.border.gaps import Mirrored
from heatprior.kernels.patches import BAND, average, extract
from heatprior.priors.protocol import complete, denoise_once
from heatprior.priors.schedules import Schedules
from paper.weights.handmade import dct_prior

PRIOR = load("patch7")
METHODS = [empirical_bayes, half_quadratic_splitting]
both_methods = pytest.mark.parametrize("method", METHODS)


def clean_picture(shape):
    """Smooth shades and an edge."""
    row, column = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return (0.5 + 0.2 * np.sin(row + 2 * column) + 0.2 * (row > column)).astype(np.float32)


def noisy_picture(shape, sigma=0.1, seed=0):
    return clean_picture(shape) + np.float32(sigma) * np.random.default_rng(seed).standard_normal(shape, np.float32)


def psnr(image, clean):
    return -10 * np.log10(np.mean((image - clean) ** 2))


@dataclass(frozen=True)
class Foreign:
    """A prior that is known through the protocol only."""

    inner: object

    def log_prob(self, y, sigma):
        return self.inner.log_prob(y, sigma)

    def score(self, y, sigma):
        return self.inner.score(y, sigma)

    def sample(self, count, sigma=0.0, *, rng):
        return self.inner.sample(count, sigma, rng=rng)


@both_methods
def test_noise_is_removed(method):
    clean, noisy = clean_picture((80, 90)), noisy_picture((80, 90))
    assert psnr(method(noisy, 0.1, prior=PRIOR), clean) > psnr(noisy, clean) + 8.0


def test_splitting_is_better_than_one_step():
    clean, noisy = clean_picture((80, 90)), noisy_picture((80, 90))
    one, many = (psnr(method(noisy, 0.1, prior=PRIOR), clean) for method in METHODS)
    assert many > one + 0.2


@both_methods
def test_without_noise_the_image_stays(method):
    image = noisy_picture((30, 31))
    np.testing.assert_allclose(method(image, 1e-6, prior=PRIOR), image, atol=1e-6)
    assert np.abs(method(image, 0.05, prior=PRIOR) - image).max() > 0.01


@both_methods
def test_a_constant_image_stays_constant(method):
    np.testing.assert_allclose(method(np.full((20, 25), 0.7), 0.1, prior=dct_prior(7)), 0.7, atol=1e-5)
    # learnt experts are not quite symmetric: the posterior mean of a response of zero is not quite zero
    np.testing.assert_allclose(method(np.full((20, 25), 0.7), 0.1, prior=PRIOR), 0.7, atol=5e-4)


@both_methods
def test_it_commutes_with_adding_a_constant(method):
    image = noisy_picture((30, 33))
    expected = method(image, 0.1, prior=PRIOR) + 0.25
    np.testing.assert_allclose(method(image + np.float32(0.25), 0.1, prior=PRIOR), expected, atol=1e-5)


@pytest.mark.parametrize("move", [np.fliplr, np.flipud, np.transpose])
@both_methods
def test_it_commutes_with_the_symmetries_of_the_cosine_filters(method, move):
    image, prior = noisy_picture((30, 33)), dct_prior(7)
    np.testing.assert_allclose(method(move(image), 0.1, prior=prior), move(method(image, 0.1, prior=prior)), atol=1e-5)


def test_one_step_of_splitting_is_the_formula():
    y, schedule = noisy_picture((30, 24)), Schedules.constant((0.7,), (0.2,))
    padded = np.pad(y, 6, mode="reflect")
    z = denoise_once(PRIOR, padded, 0.07)[6:-6, 6:-6]
    result = half_quadratic_splitting(y, 0.1, prior=PRIOR, schedule=schedule)
    np.testing.assert_allclose(result, 0.2 * y + 0.8 * z, atol=1e-6)


def test_steps_of_splitting_follow_each_other():
    y, levels, weights = noisy_picture((2 * BAND + 5, 24)), (0.7, 0.4), (0.2, 0.05)
    y_padded = np.pad(y, 6, mode="reflect")
    x = y_padded
    for level, weight in zip(levels, weights, strict=True):
        x = weight * y_padded + (1 - weight) * denoise_once(PRIOR, x, level * 0.1)
    result = half_quadratic_splitting(y, 0.1, prior=PRIOR, schedule=Schedules.constant(levels, weights))
    np.testing.assert_allclose(result, x[6:-6, 6:-6], atol=1e-6)
    other = half_quadratic_splitting(y, 0.1, prior=PRIOR, schedule=Schedules.constant((0.7, 0.4), (0.2, 0.1)))
    assert np.abs(other - result).max() > 1e-3


@both_methods
def test_a_constant_map_is_a_number(method):
    image = noisy_picture((40, 33))
    expected = method(image, 0.1, prior=PRIOR)
    np.testing.assert_allclose(method(image, np.full(image.shape, 0.1), prior=PRIOR), expected, atol=1e-6)


@both_methods
def test_far_from_its_edge_a_map_of_two_levels_is_each_of_them(method):
    image, shape = noisy_picture((30, 110)), (30, 110)
    sigma = np.broadcast_to(np.where(np.arange(110) < 55, 0.05, 0.1), shape)
    result = method(image, sigma, prior=PRIOR)
    np.testing.assert_allclose(result[:, :25], method(image, 0.05, prior=PRIOR)[:, :25], atol=1e-4)
    np.testing.assert_allclose(result[:, 85:], method(image, 0.1, prior=PRIOR)[:, 85:], atol=1e-4)


def test_a_map_that_knows_more_denoises_better():
    shape = (90, 100)
    sigma = np.broadcast_to(np.linspace(0.02, 0.2, 100), shape).astype(np.float32)
    clean = clean_picture(shape)
    noisy = clean + sigma * np.random.default_rng(0).standard_normal(shape, np.float32)
    constant = half_quadratic_splitting(noisy, float(np.sqrt(np.mean(sigma**2))), prior=PRIOR)
    assert psnr(half_quadratic_splitting(noisy, sigma, prior=PRIOR), clean) > psnr(constant, clean) + 1.0


@pytest.mark.parametrize("level", [0.05, "map"])
@both_methods
def test_a_prior_known_through_the_protocol_gives_the_same(method, level):
    prior = patch_prior(3, 8, 9)
    image = noisy_picture((BAND + 8, 21))
    sigma = np.broadcast_to(np.linspace(0.04, 0.06, 21), image.shape) if level == "map" else level
    assert complete(Foreign(prior)).patch_shape == (3, 3)
    np.testing.assert_allclose(method(image, sigma, prior=Foreign(prior)), method(image, sigma, prior=prior), atol=1e-4)


def test_any_prior_is_tweedies_formula_averaged():
    prior, image = patch_prior(3, 4, 9), noisy_picture((12, 21))
    patches = extract(image, 3)
    expected = average(tweedie(prior, patches, 0.1), image.shape, 3)
    np.testing.assert_allclose(empirical_bayes(image, 0.1, prior=Foreign(prior)), expected, atol=1e-6)


def test_a_prior_on_patches_that_are_not_square_is_refused():
    class Oblong(Foreign):
        def sample(self, count, sigma=0.0, *, rng):
            return rng.normal(size=(count, 12)) + sigma

    with pytest.raises(InvalidInputError, match="12 pixels; patches must be square"):
        empirical_bayes(noisy_picture((20, 20)), 0.1, prior=Oblong(PRIOR))


@both_methods
def test_a_part_of_an_image_is_denoised_as_in_the_whole(method):
    image = noisy_picture((3 * BAND, 90))
    whole = method(image, 0.1, prior=PRIOR)
    part = method(image[20:], 0.1, prior=PRIOR)
    np.testing.assert_allclose(part[40:], whole[60:], atol=1e-6)  # four steps of six pixels see 24 pixels far


@both_methods
def test_the_number_of_threads_changes_no_bit(method):
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    image = noisy_picture((4 * BAND, 50))
    results = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            results.append(method(image, 0.1, prior=PRIOR))
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(*results)


@both_methods
def test_the_image_given_is_left_alone(method):
    image = noisy_picture((30, 30))
    image[3, 4] = np.nan
    before = image.copy()
    method(image, 0.1, prior=PRIOR)
    np.testing.assert_array_equal(image, before)


@both_methods
def test_an_image_that_holds_no_patch_is_refused(method):
    method(noisy_picture((7, 7)), 0.1, prior=PRIOR)
    with pytest.raises(InvalidInputError, match=r"shape \(6, 40\) but the prior acts on patches of 7×7 pixels"):
        method(noisy_picture((6, 40)), 0.1, prior=PRIOR)


@pytest.mark.parametrize(("shape", "margin"), [((7, 9), 6), ((7, 9), 20), ((3, 30), 2)])
def test_mirroring_is_that_of_numpy(shape, margin):
    array = np.random.default_rng(0).normal(size=shape)
    mirrored = Mirrored(shape, margin)
    expected = np.pad(array, [(min(margin, n - 1),) * 2 for n in shape], mode="reflect")
    assert mirrored.shape == expected.shape
    np.testing.assert_array_equal(mirrored.rows(array.__getitem__, slice(1, 5)), expected[1:5])
    np.testing.assert_array_equal(expected[mirrored.inside], array)
