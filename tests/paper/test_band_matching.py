"""Score matching of whole images: the gradient, what it has in common with the priors, and that learning lowers it."""

import numpy as np
import pytest

from heatprior import InvalidInputError
from heatprior.data.datasets import PatchSource
from heatprior.learning.patch_training import NoisyBatch, match_scores
from heatprior.priors.convolutional import ConvolutionalPrior, Tiling
from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper.learning.band_training import (
    LOGITS,
    NORMS,
    BandConfig,
    BandMatching,
    NoisyImages,
    draw_mirrored,
    learn_coefficients,
    learn_images,
    start,
)
from paper.wavelets import daubechies

BANDS = {"tiling": Tiling(2, 3), "Haar": WaveletBasis(daubechies(1), 2), "split": WaveletBasis(daubechies(2), 2, 1)}
every_kind = pytest.mark.parametrize("bands", BANDS.values(), ids=BANDS)
CONFIG = BandConfig(components=15, coefficients=200, batch=2, pieces=2, averaged=5)


def batch(shape=(8, 12), count=2, seed=0):
    rng = np.random.default_rng(seed)
    clean, noise = 0.3 * rng.standard_normal((count, *shape)), rng.standard_normal((count, *shape))
    return NoisyImages(clean, noise, rng.uniform(0.1, 0.5, count))


def point(bands, components=9, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2.0, bands.count), rng.standard_normal((bands.count, components))]


def source(size=16):
    rng = np.random.default_rng(3)
    blocks = [np.kron(rng.uniform(size=(12, 12)), np.ones((4, 4))) for _ in range(4)]
    return PatchSource([(255 * block).astype(np.uint8) for block in blocks], size)


@every_kind
@pytest.mark.parametrize("block", [NORMS, LOGITS])
def test_the_gradient_is_the_slope_of_the_loss(bands, block):
    loss, place = BandMatching([batch(), batch(seed=2)], bands, 1.0), point(bands)
    direction = np.random.default_rng(4).standard_normal(place[block].shape)
    value, (gradient,) = loss.gradient(place, block)

    def along(step):
        return loss.value([x + step * direction if i == block else x for i, x in enumerate(place)])

    assert value == loss.value(place)
    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    np.testing.assert_allclose(np.vdot(gradient, direction), slope, rtol=1e-6, atol=1e-9)
    assert all(np.array_equal(a, b) for a, b in zip(loss.gradient(place, None)[1][block], gradient, strict=True))


def test_of_a_tiling_the_loss_is_that_of_tweedies_formula():
    bands, images, place = BANDS["tiling"], batch(), point(BANDS["tiling"])
    prior = ConvolutionalPrior(bands, place[0], Experts(place[1]))
    noisy = images.clean + images.sigma[:, None, None] * images.noise
    error = images.clean - noisy - (images.sigma**2)[:, None, None] * prior.score(noisy, images.sigma)
    error -= error.mean(axis=(1, 2), keepdims=True)  # brightness is not seen
    expected = np.mean((error / images.sigma[:, None, None]) ** 2)
    np.testing.assert_allclose(BandMatching([images], bands, 1.0).value(place), expected, rtol=1e-10)


def test_of_a_basis_the_loss_is_that_of_the_mean_over_shifts():
    bands, images, place = BANDS["Haar"], batch((8, 8), 1), point(BANDS["Haar"], 125)
    prior = WaveletPrior(bands, place[0], Experts(place[1]))
    sigma = float(images.sigma[0])
    noisy = images.clean[0] + sigma * images.noise[0]
    change = prior.denoise(noisy, sigma) - noisy
    approximation = images.noise[0].reshape(2, 4, 2, 4).mean(axis=(1, 3))  # of one shift; all are averaged below
    assert approximation.shape == (2, 2)
    coarse = np.mean(
        [
            np.roll(
                np.kron(np.roll(images.noise[0], s, (0, 1)).reshape(2, 4, 2, 4).mean(axis=(1, 3)), np.ones((4, 4))),
                (-s[0], -s[1]),
                (0, 1),
            )
            for s in np.ndindex(4, 4)
        ],
        axis=0,
    )
    residual = -(images.noise[0] - coarse) - change / sigma
    np.testing.assert_allclose(BandMatching([images], bands, 1.0).value(place), np.mean(residual**2), rtol=1e-3)


def test_a_band_of_coefficients_is_a_filter_of_one_entry():
    """The loss of single coefficients is the loss of patches of one pixel."""
    rng = np.random.default_rng(5)
    clean, noise, sigma = rng.standard_normal((1, 50)), rng.standard_normal((1, 50)), rng.uniform(0.1, 1.0, 50)
    logits, xi = rng.standard_normal((1, 7)), 1.3
    value, _ = match_scores([NoisyBatch(clean, noise, sigma)], 1.0, [np.array([[xi]]), logits])
    mean, _ = Experts(logits).posterior(xi * (clean + sigma * noise).T, xi * sigma[:, None])
    np.testing.assert_allclose(value, np.mean(((clean.T - mean / xi) / sigma[:, None]) ** 2), rtol=1e-10)


@pytest.mark.parametrize("bands", [Tiling(2, 2), WaveletBasis(daubechies(1), 2)], ids=["tiling", "Haar"])
def test_learning_lowers_the_loss_and_a_seed_fixes_every_bit(bands):
    crops = source()
    first = start(bands, crops, CONFIG)
    found = [learn_images(bands, crops, first, CONFIG, 12) for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    rng = np.random.default_rng(6)
    clean = draw_mirrored(crops, 4, rng)
    fresh = NoisyImages(clean, rng.standard_normal(clean.shape), np.array([0.05, 0.1, 0.2, 0.4]))
    loss = BandMatching([fresh], bands, CONFIG.reach)
    assert loss.value(found[0]) < 0.98 * loss.value(first)
    assert (found[0][NORMS] > 0).all()


def test_learning_of_coefficients_lowers_their_loss():
    basis, crops, losses = WaveletBasis(daubechies(1), 2), source(), []
    learn_coefficients(basis, crops, start(basis, crops, CONFIG), CONFIG, 60, lambda _, loss: losses.append(loss))
    assert len(losses) == 60
    assert np.mean(losses[-20:]) < np.mean(losses[:5])


def test_crops_are_mirrored_so_that_they_have_no_seam():
    crops = draw_mirrored(source(), 3, np.random.default_rng(0))
    assert crops.shape == (3, 32, 32)
    np.testing.assert_array_equal(crops, crops[:, ::-1, ::-1])


@pytest.mark.parametrize("wrong", [{"sigma_min": 0.0}, {"sigma_min": 0.5}, {"batch": 3, "pieces": 2}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="expected"):
        BandConfig(**wrong)
