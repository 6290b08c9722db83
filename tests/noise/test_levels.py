"""One noise level: unbiased where the prior is right, honest about its error, and sensible on odd images."""

import numpy as np
import pytest
from noise_levels import level_of_patches, noise_map
from skimage import data
from synthetic import landscape

import heatprior as hp
from heatprior.kernels.noise_estimation import patch_log_densities
from heatprior.noise.likelihood import find_peak, repetition, values_at, weak_directions
from heatprior.priors.patch import CONTRASTS, level_tables
from paper.claims.explicit_mixture import ExplicitMixture

PRIOR = hp.load("patch7")
SIGMAS = (0.01, 0.1, 0.4)
PATCHES, REPEATS = 500, 40


def noisy_landscape(sigma, shape=(160, 200), seed=0):
    rng = np.random.default_rng(seed)
    return (0.25 + 0.5 * landscape(shape, rng) + sigma * rng.standard_normal(shape)).astype(np.float32)


def errors_over_stated(sigma, factor=1.0):
    """(estimate − sigma) / stderr for patches of the prior itself, times a factor that makes them wrong."""
    rng = np.random.default_rng(round(1000 * sigma))
    draws = (factor * PRIOR.sample(PATCHES, sigma, rng=rng) for _ in range(REPEATS))
    estimates = np.array([level_of_patches(patches, PRIOR.noise_likelihood) for patches in draws])
    return (estimates[:, 0] - sigma) / estimates[:, 1]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_on_patches_of_the_prior_the_estimate_is_unbiased_and_its_interval_honest(sigma):
    errors = errors_over_stated(sigma)
    assert abs(errors.mean()) < 3.5 / np.sqrt(REPEATS)  # four of 10 000 sets of seeds miss this by chance
    covered = (np.abs(errors) < 1.645).mean()
    assert 0.77 <= covered <= 0.98


def test_patches_of_more_noise_than_stated_are_noticed():
    assert errors_over_stated(0.1, factor=1.1).mean() > 3


@pytest.mark.parametrize("contrast", range(len(CONTRASTS)))
def test_tables_hold_the_density_of_patches_of_that_contrast(contrast):
    c, sigma, every = CONTRASTS[contrast], 0.07, np.arange(48)
    rng = np.random.default_rng(0)
    patches = c * PRIOR.sample(50, rng=rng) + sigma * rng.standard_normal((50, 49))
    image = patches.reshape(-1, 7, 7).swapaxes(0, 1).reshape(7, -1)
    found = patch_log_densities(image, PRIOR.filters.matrix, level_tables(PRIOR, np.array([sigma]), every), 7)
    volume = np.log(PRIOR.filters.norms).sum()
    exact = PRIOR.log_prob(patches / c, sigma / c) - 48 * np.log(c) - volume
    np.testing.assert_allclose(found[0, contrast, 0], exact, atol=0.02)  # 48 tables of 1024 lines, in float32
    other = found[0, (contrast + 1) % len(CONTRASTS), 0]
    assert np.abs(other - exact).max() > 1


def test_stronger_noise_lets_more_filters_be_used():
    counts = [len(weak_directions(PRIOR.noise_likelihood.directions, sigma)) for sigma in (0.0, 0.1, 0.2, 0.4)]
    assert counts == sorted(counts)
    assert counts[0] == 4
    assert counts[-1] > 20


def test_repetition_is_the_variance_of_the_score_over_its_mean_curvature():
    filters, rng = weak_directions(PRIOR.noise_likelihood.directions, 0.0), np.random.default_rng(0)
    assert repetition(PRIOR.noise_likelihood.directions, filters, 7) == pytest.approx(1.0)
    unit = (PRIOR.filters.matrix / PRIOR.filters.norms[:, None])[filters]
    sums = []
    for _ in range(400):
        windows = np.lib.stride_tricks.sliding_window_view(rng.standard_normal((46, 46)), (7, 7))[::3, ::3]
        responses = windows.reshape(-1, 49) @ unit.T
        sums.append((responses**2 - 1).sum() / np.sqrt(2 * responses.size))
    assert np.var(sums) == pytest.approx(
        repetition(PRIOR.noise_likelihood.directions, filters, 3), rel=0.25
    )  # edges, and 400 draws


def test_variances_add_up():
    first, second, both = 0.05, 0.08, np.hypot(0.05, 0.08)
    image = noisy_landscape(first)
    more = image + second * np.random.default_rng(9).standard_normal(image.shape).astype(np.float32)
    assert float(hp.estimate_sigma(image)) == pytest.approx(first, rel=0.03)
    assert float(hp.estimate_sigma(more)) == pytest.approx(both, rel=0.03)


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1, 0.3, 0.5])
def test_noise_on_a_landscape_is_found(sigma):
    found = hp.estimate_sigma(noisy_landscape(sigma))
    assert found.sigma == pytest.approx(sigma, rel=0.04)
    assert 0 < found.stderr < 0.05 * sigma


@pytest.mark.parametrize(
    "image",
    [
        np.full((64, 64), 100, np.uint8),
        np.zeros((30, 40)),
        np.ones((30, 40), np.float32),
        np.tile(np.linspace(0, 1, 96, dtype=np.float32), (80, 1)),
    ],
)
def test_an_image_without_noise_has_none(image):
    found = hp.estimate_sigma(image)
    assert found.sigma == 0.0
    assert found.model_error == 0.0
    assert 0 < found.stderr <= 0.001 * (255 if image.dtype == np.uint8 else 1)
    with pytest.warns(UserWarning, match="no noise found"):
        np.testing.assert_allclose(hp.denoise(image), image, atol=1e-3)
    assert noise_map(image).sigma.max() < 0.01 * (255 if image.dtype == np.uint8 else 1)


def test_units_are_those_of_the_image():
    image = noisy_landscape(0.05)
    one = hp.estimate_sigma(image, white=1.0)
    for scale in (4095.0, 1e-3):
        other = hp.estimate_sigma(image * np.float32(scale), white=scale)
        np.testing.assert_allclose(other, np.array(one) * scale, rtol=1e-3)
    eight = hp.estimate_sigma(np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8), white=255)
    assert eight.sigma == pytest.approx(255 * one.sigma, rel=0.02)


def test_every_channel_of_every_image_has_its_own_level():
    sigmas = np.array([[0.02, 0.1, 0.05], [0.1, 0.02, 0.2]])
    stack = np.stack([[noisy_landscape(sigma, (90, 100)) for sigma in row] for row in sigmas])
    found = hp.estimate_sigma(stack, channel_axis=1)
    np.testing.assert_allclose(found.sigma, sigmas, rtol=0.08)
    np.testing.assert_array_equal(hp.estimate_sigma(np.moveaxis(stack, 1, -1), channel_axis=-1).sigma, found.sigma)
    assert hp.estimate_sigma(stack[:, 0]).sigma.shape == (2,)


def test_missing_pixels_do_not_count():
    image = noisy_landscape(0.05)
    holes = image.copy()
    holes[40:100, 50:120] = np.nan
    holes[::31, ::17] = np.nan
    assert float(hp.estimate_sigma(holes)) == pytest.approx(0.05, rel=0.05)
    assert noise_map(holes).sigma.mean() == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("shape", [(40, 50), (160, 200)])
def test_scattered_missing_pixels_leave_enough(shape):
    image = noisy_landscape(0.1, shape)
    image[np.random.default_rng(1).random(shape) < 0.05] = np.nan
    assert float(hp.estimate_sigma(image)) == pytest.approx(0.1, rel=0.15)
    assert np.median(noise_map(image).sigma) == pytest.approx(0.1, rel=0.25)


def test_a_small_image_with_some_clipped_pixels_has_its_noise():
    image = noisy_landscape(0.1, (48, 48), seed=2)
    image = np.clip(image, *np.quantile(image, [0.025, 0.975]))
    assert float(hp.estimate_sigma(image)) == pytest.approx(0.1, rel=0.15)


def test_clipped_regions_do_not_count():
    image = noisy_landscape(0.08)
    image[:, :90] += 0.6  # beyond white
    clipped = np.clip(image, 0.0, 1.0)
    assert (clipped == 1).mean() > 0.2
    assert float(hp.estimate_sigma(clipped)) == pytest.approx(0.08, rel=0.05)


def test_the_peak_of_a_curve_is_found_between_its_points():
    x = np.log(0.1) + np.arange(9) * np.log(2) / 8
    tops = np.array([x[4] + 0.03, x[2] - 0.02, x[0] - 1.0, x[-1] + 1.0])
    curves = -50 * ((x[:, None] - tops) + 0.5 * np.exp(-2 * (x[:, None] - tops)))  # of a Gaussian's log-likelihood
    peak = find_peak(x, curves)
    np.testing.assert_allclose(peak.log_sigma[:2], tops[:2], atol=2e-4)
    np.testing.assert_allclose(peak.curvature[:2], 100, rtol=0.05)
    assert peak.at_bottom.tolist() == [False, False, True, False]
    assert peak.at_top.tolist() == [False, False, False, True]
    np.testing.assert_allclose(values_at(x, x[:, None] ** 3 * np.ones(4), tops[:1].repeat(4)), tops[0] ** 3, rtol=1e-9)


def test_what_cannot_be_estimated_is_refused():
    with pytest.raises(hp.InvalidInputError, match="give a larger image"):
        hp.estimate_sigma(np.zeros((6, 30)))
    with pytest.raises(hp.InvalidInputError, match="nothing but NaN"):
        hp.estimate_sigma(np.full((30, 30), np.nan))
    with pytest.raises(hp.InvalidInputError, match="nothing but NaN"):
        hp.estimate_noise(np.full((30, 30), np.nan))
    with pytest.raises(
        hp.InvalidInputError, match=r"patch prior such as patch7, not with this one \(ExplicitMixture\)"
    ):
        hp.estimate_sigma(np.zeros((9, 9)), prior=ExplicitMixture(np.zeros(1), np.zeros((1, 1)), np.eye(1)))
    for estimate in (hp.estimate_sigma, hp.estimate_noise):
        with pytest.raises(hp.InvalidInputError, match="too many pixels are missing to estimate the noise; give sigma"):
            estimate(np.where(np.arange(900).reshape(30, 30) % 5, 0.5, np.nan))
        with pytest.raises(hp.InvalidInputError, match="beyond full scale; give the value of full scale"):
            estimate(noisy_landscape(0.1, (40, 50)), white=1e-3)
    with pytest.raises(hp.InvalidInputError, match="noise is 'some'"):
        hp.denoise(np.zeros((9, 9)), noise="some")


def test_weak_noise_is_told_from_texture_better_than_by_filters():
    errors = []
    for number, picture in enumerate((data.coffee, data.astronaut, data.chelsea, data.coins, data.gravel, data.rocket)):
        clean = np.asarray(picture(), np.float32)[-200:, -240:] / 255.0
        clean = clean if clean.ndim == 2 else clean[..., 1]
        noisy = clean + 5 / 255 * np.random.default_rng(number).standard_normal(clean.shape).astype(np.float32)
        found = [hp.estimate_sigma(noisy, white=1.0, prior=prior) for prior in (None, "patch7")]
        errors.append([abs(level.sigma * 255 - 5) for level in found])
        channel = hp.estimate_noise(noisy, "constant", white=1.0).channels[0]
        assert channel.level.sigma == pytest.approx(found[0].sigma)
    usual, by_filters = np.mean(errors, axis=0)
    assert usual < 0.7 * by_filters  # 0.3 and 0.5 grey levels


def test_gaps_that_leave_no_patch_to_the_finer_prior_leave_the_level_of_the_first():
    noisy = np.random.default_rng(0).normal(0.5, 0.03, (80, 80))
    noisy[::8], noisy[:, ::8] = np.nan, np.nan
    assert hp.estimate_sigma(noisy, white=1.0) == hp.estimate_sigma(noisy, white=1.0, prior="patch7")


def test_stronger_noise_needs_no_second_look():
    noisy = noisy_landscape(0.1)
    assert hp.estimate_sigma(noisy, white=1.0) == hp.estimate_sigma(noisy, white=1.0, prior="patch7")
