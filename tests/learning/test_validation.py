"""Validation is the evaluation protocol of the denoising literature, on crops."""

import numpy as np
import pytest
from synthetic import landscape

from examples import gaussian_mixture
from heatprior import InvalidInputError
from heatprior.data.datasets import PatchSource
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.kernels.patches import average, extract
from heatprior.learning.training import Validation, choose_held_out
from heatprior.priors.protocol import denoise_once
from paper.weights.handmade import dct_prior


def test_psnr_is_that_of_clipped_images_with_peak_one():
    reference = np.random.default_rng(0).random((20, 20)).astype(np.float32)
    assert psnr(reference + 0.1, reference) >= 20.0
    inside = np.full((20, 20), 0.5)
    assert psnr(inside + 0.1, inside) == pytest.approx(20.0)
    assert psnr(np.full((4, 4), 7.0), np.ones((4, 4)) - 0.1) == pytest.approx(20.0)


def test_values_are_those_of_the_protocol():
    """Written out: image i has the noise of seed 1000 + i at every level, on the centre of the image."""
    prior, rng = dct_prior(7), np.random.default_rng(1)
    images = [np.uint8(255 * landscape((170, 40), rng)), np.uint8(255 * landscape((30, 31), rng))]
    expected = []
    for i, clean in enumerate((images[0][5:165] / np.float32(255), images[1] / np.float32(255))):
        draw = np.random.default_rng(1000 + i).standard_normal(clean.shape)
        row = []
        for level in (15, 25, 50, 100):
            noisy = np.float32(clean + level / 255 * draw)
            denoised = np.clip(denoise_once(prior, noisy, level / 255), 0, 1)
            row.append(-10 * np.log10(np.mean((denoised - clean) ** 2, dtype=np.float64)))
        expected.append(row)
    np.testing.assert_allclose(Validation(images, 7).psnr(prior), np.mean(expected, axis=0), rtol=1e-6)


def test_at_most_eight_images_count_and_small_ones_do_not():
    flat = np.zeros((20, 20), np.uint8)
    assert len(Validation([flat] * 12, 7).images) == 8
    assert len(Validation([flat[:3], flat], 7).images) == 1
    assert len(Validation([flat], 7).psnr(dct_prior(7))) == len(LEVELS)
    with pytest.raises(InvalidInputError, match="none of 1 validation images"):
        Validation([flat[:3]], 7)


@pytest.mark.parametrize(
    ("count", "kept"), [(1, []), (9, []), (10, [5]), (25, [6, 18]), (80, [5, 15, 25, 35, 45, 55, 65, 75])]
)
def test_one_in_ten_is_held_out_evenly(count, kept):
    assert choose_held_out(count) == kept


def test_never_more_than_eight_are_held_out():
    assert len(set(choose_held_out(5000))) == 8
    assert max(choose_held_out(5000)) < 5000


def test_the_likelihood_of_a_mixture_is_that_of_patches_of_the_images_with_their_noise():
    rng, prior = np.random.default_rng(1), gaussian_mixture(3, 2, (0.5, 2.0))
    images = [np.uint8(255 * landscape((40, 40), rng))]
    for sigma in (0.0, 0.1):
        patches = PatchSource(images, 3).draw(20_000, np.random.default_rng(0)).T
        expected = prior.log_prob(patches, sigma).mean()
        assert Validation(images, 3, sigma).log_likelihood(prior) == pytest.approx(expected, abs=1e-3)


def test_a_mixture_is_validated_by_one_step_of_empirical_bayes_as_well():
    """Against the posterior means of all patches, averaged. With one shape the fast step has none to choose from."""
    rng, prior = np.random.default_rng(1), gaussian_mixture(4, 1, (0.05, 0.5))
    clean = landscape((30, 31), rng).astype(np.float32)
    expected = []
    for level in LEVELS:
        noisy = with_noise(clean, 0, level / 255)
        patches = extract(noisy, 4)
        denoised = average(prior.posterior(patches, level / 255).mean, clean.shape, 4)
        expected.append(psnr(denoised, clean))
    np.testing.assert_allclose(Validation([clean], 4).psnr(prior), expected, rtol=0, atol=0.03)
