"""The spectrum of correlated noise: its covariance, and the noise of a reduced image, against noise that is drawn."""

import numpy as np
import pytest

from heatprior.errors import InvalidInputError
from heatprior.noise_value import Noise, NoiseSpectrum, as_noise
from heatprior.restoration.pipeline import everything
from heatprior.restoration.pyramid import halve, halve_noise


def low_pass(side=32, width=0.2):
    f = np.fft.fftfreq(side)
    return NoiseSpectrum(np.exp(-np.add.outer(f**2, f**2) / width**2) + 0.02)


def drawn(spectrum, shape, rng):
    """A field of this spectrum, periodic, of any size: white noise filtered by the interpolated spectrum."""
    lags = np.zeros(shape)
    near = np.arange(1 - spectrum.side // 2, spectrum.side // 2)
    lags[np.ix_(near % shape[0], near % shape[1])] = spectrum.autocovariance[
        np.ix_(near % spectrum.side, near % spectrum.side)
    ]
    power = np.maximum(np.fft.fft2(lags).real, 0.0)
    return np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * np.sqrt(power)).real


def test_covariance_is_that_of_drawn_noise():
    spectrum, rng = low_pass(), np.random.default_rng(0)
    field = drawn(spectrum, (512, 512), rng)
    patches = np.lib.stride_tricks.sliding_window_view(field, (4, 4))[::2, ::2].reshape(-1, 16)
    np.testing.assert_allclose(patches.T @ patches / len(patches), spectrum.covariance(4), atol=0.03)
    assert np.linalg.eigvalsh(spectrum.covariance(8)).min() > 0
    np.testing.assert_allclose(np.diag(spectrum.covariance(8)), 1.0)


def test_white_noise_has_the_identity_as_its_covariance_and_stays_white():
    white = NoiseSpectrum(np.ones((32, 32)))
    np.testing.assert_allclose(white.covariance(8), np.eye(64), atol=1e-12)
    half, part = white.halve()
    np.testing.assert_allclose(half.power, 1.0, atol=1e-6)
    assert part == pytest.approx(1.0)
    assert white.pixels_alike == pytest.approx(1.0)
    assert low_pass().pixels_alike > 1.5


def test_noise_of_a_reduced_image_follows_from_the_spectrum():
    spectrum, rng = low_pass(), np.random.default_rng(1)
    here, half = everything((512, 512)), everything((256, 256))
    small = halve((0.1 * drawn(spectrum, (512, 512), rng)).astype(np.float32), here, half, (512, 512))
    noise = halve_noise(Noise.constant(0.1, spectrum), here, half, (512, 512))
    assert small.std() == pytest.approx(noise.lowest, rel=0.02)
    neighbours = float((small[:, 1:] * small[:, :-1]).mean() / small.var())
    assert neighbours == pytest.approx(noise.spectrum.autocovariance[0, 1], abs=0.02)
    assert noise.lowest > 1.3 * 0.05  # more than white noise would leave there


def test_noise_keeps_its_spectrum_through_what_splitting_does_to_it():
    spectrum = low_pass()
    levels = np.full((8, 8), 0.1)
    levels[4:] = 0.2
    for noise in (Noise.constant(0.1, spectrum), Noise(levels.__getitem__, 0.1, 0.2, spectrum)):
        assert as_noise(noise).spectrum is spectrum
        assert noise.change(lambda sigma: 0.5 * sigma, 0.05, 0.1).spectrum is spectrum
        assert noise.rearrange(lambda read, rows: read(rows)).spectrum is spectrum
        assert noise.halve((8, 8), 0.5).spectrum is not None
    assert Noise.constant(0.1).halve((8, 8), 0.5).spectrum is None


@pytest.mark.parametrize(
    "power", [np.ones(4), np.ones((3, 3)), -np.ones((4, 4)), np.full((4, 4), np.nan), np.zeros((4, 4))]
)
def test_what_is_no_spectrum_is_refused(power):
    with pytest.raises(InvalidInputError, match="spectrum"):
        NoiseSpectrum(power)


def test_patches_larger_than_the_torus_are_refused():
    with pytest.raises(InvalidInputError, match="16 frequencies"):
        low_pass(16).covariance(17)
