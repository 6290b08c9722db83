from __future__ import annotations

import numpy as np
import pytest
from skimage.data import camera
from skimage.util import view_as_windows

import heatprior as hp
from paper import load_patch_prior
from paper.weights.handmade import CONTRAST, dct_prior


def spreads(prior: hp.PatchPrior) -> np.ndarray:
    """Standard deviation of the patch along each filter, in orthonormal coordinates."""
    experts = prior.experts
    variances = experts.weights @ experts.means**2 + experts.base_sigma**2
    return np.sqrt(variances) / prior.filters.norms


@pytest.mark.parametrize("size", [2, 3, 7, 8, 15])
def test_the_power_spectrum_falls_as_one_over_f_squared(size: int):
    down, across = np.divmod(np.arange(1, size**2), size)
    frequencies = np.hypot(down, across) / (2 * size)  # cycles per pixel
    np.testing.assert_allclose(spreads(dct_prior(size)) * frequencies, CONTRAST, rtol=1e-12)


def test_patches_of_any_size_have_the_same_spectrum():
    small, large = spreads(dct_prior(4)), spreads(dct_prior(8))
    assert small[0] == pytest.approx(large[1])  # one eighth of a cycle per pixel, across


def test_experts_are_symmetric_sparse_and_end_within_their_reach():
    experts = dct_prior(7).experts
    np.testing.assert_allclose(experts.weights, experts.weights[:, ::-1], rtol=1e-12)
    variance, fourth = experts.weights @ experts.means**2, experts.weights @ experts.means**4
    assert (fourth / variance**2 > 6).all()  # more kurtosis than a Laplacian's
    assert (experts.weights[:, 0] < 1e-4).all()


def test_samples_are_smooth():
    patches = dct_prior(7).sample(5000, rng=np.random.default_rng(0)).reshape(-1, 7, 7)
    assert np.corrcoef(patches[:, :, :-1].ravel(), patches[:, :, 1:].ravel())[0, 1] > 0.5


def test_denoises_a_photograph():
    clean = view_as_windows(camera() / 255.0, (7, 7), step=11).reshape(-1, 49)
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    denoised = dct_prior(7).posterior(noisy, 0.1).mean
    gain = 10 * np.log10(((noisy - clean) ** 2).mean() / ((denoised - clean) ** 2).mean())
    assert gain > 5  # decibels


def test_the_exhibit_is_the_one_the_script_makes():
    shipped, made = load_patch_prior("dct7"), dct_prior(7)
    np.testing.assert_allclose(shipped.filters.matrix, made.filters.matrix, atol=1e-6)
    np.testing.assert_allclose(shipped.experts.log_weights, made.experts.log_weights, rtol=1e-6)
    assert shipped.card == made.card


@pytest.mark.parametrize("size", [1, 0, -3])
def test_refuses_patches_without_structure(size: int):
    with pytest.raises(hp.InvalidInputError, match="at least 2×2"):
        dct_prior(size)
