"""`quality`: which prior, and the mean over the symmetries of the square."""

import numpy as np
import pytest
from synthetic import oriented_mixture

import heatprior as hp
from heatprior.noise_value import as_noise
from heatprior.presets import PRESETS, Preset
from heatprior.restoration import denoising as presets
from heatprior.restoration.symmetries import apply_symmetry, average_symmetries, undo_symmetry

IMAGE = np.random.default_rng(0).uniform(size=(20, 27)).astype(np.float32)
SIGMA = np.linspace(0.05, 0.2, IMAGE.size).reshape(IMAGE.shape)


@pytest.mark.parametrize("number", range(8))
def test_a_symmetry_is_undone(number):
    turned = apply_symmetry(IMAGE, number)
    np.testing.assert_array_equal(undo_symmetry(turned, number), IMAGE)
    assert number == 0 or not np.array_equal(turned, IMAGE)


def test_the_eight_symmetries_are_different():
    square = IMAGE[:20, :20]
    assert len({apply_symmetry(square, number).tobytes() for number in range(8)}) == 8


def test_a_denoiser_that_prefers_no_direction_is_its_own_mean():
    """And the noise turns with the image: both are handed out pixel by pixel."""

    def pointwise(planes, noises, **_):
        return [plane * noise.rows(slice(0, len(plane))) for plane, noise in zip(planes, noises, strict=True)]

    def to_the_left(planes, _, **__):
        return [np.roll(plane, -1, axis=1) for plane in planes]

    planes, noises = [IMAGE, IMAGE[::-1]], [as_noise(SIGMA), as_noise(SIGMA[:, ::-1])]
    np.testing.assert_allclose(average_symmetries(pointwise, 8)(planes, noises), pointwise(planes, noises), rtol=1e-5)
    shifted = to_the_left(planes, noises)
    assert np.abs(np.subtract(average_symmetries(to_the_left, 8)(planes, noises), shifted)).max() > 0.1
    np.testing.assert_array_equal(average_symmetries(to_the_left, 1)(planes, noises), shifted)


def test_the_best_quality_does_not_depend_on_the_side_from_which_one_looks(monkeypatch):
    three = oriented_mixture()
    prior = hp.GaussianMixturePrior(three.covariances[:1], three.log_weights[:1], three.contrasts)  # along rows alone
    monkeypatch.setitem(presets.PRESETS, "best", Preset("unused", 8))
    sides = (IMAGE, IMAGE[:, ::-1].T.copy())
    results = [hp.denoise(image, 0.1, prior=prior, quality="best", white=1.0) for image in sides]
    np.testing.assert_allclose(results[0], results[1].T[:, ::-1], atol=1e-5)
    plain = [hp.denoise(image, 0.1, prior=prior, white=1.0) for image in sides]
    assert np.abs(plain[0] - plain[1].T[:, ::-1]).max() > 1e-4


def test_a_quality_stands_for_a_shipped_prior():
    for name, quality in PRESETS.items():
        if quality.symmetries == 1:
            expected = hp.denoise(IMAGE, 0.1, prior=quality.prior)
            np.testing.assert_array_equal(hp.denoise(IMAGE, 0.1, quality=name), expected)
    fast, default = (hp.denoise(IMAGE, 0.1, quality=name) for name in ("fast", "default"))
    assert np.abs(fast - default).max() > 0.01


def test_an_unknown_quality_is_refused():
    with pytest.raises(hp.InvalidInputError, match="quality is 'good'; expected 'fast', 'default', 'best'"):
        hp.denoise(IMAGE, 0.1, quality="good")
