"""`quality`: which prior, and the symmetries of the square."""

import numpy as np
import pytest

import heatprior as hp
from heatprior.noise_value import as_noise
from heatprior.presets import PRESETS
from heatprior.restoration.symmetries import apply_symmetry, denoise_turned, undo_symmetry

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


def test_a_denoiser_that_prefers_no_direction_may_be_turned():
    """And the noise turns with the image: both are handed out pixel by pixel."""

    def pointwise(planes, noises, **_):
        return [plane * noise.rows(slice(0, len(plane))) for plane, noise in zip(planes, noises, strict=True)]

    def to_the_left(planes, _, **__):
        return [np.roll(plane, -1, axis=1) for plane in planes]

    planes, noises = [IMAGE, IMAGE[::-1]], [as_noise(SIGMA), as_noise(SIGMA[:, ::-1])]
    for number in range(1, 8):
        turned = denoise_turned(pointwise, planes, noises, number)
        np.testing.assert_allclose(turned, pointwise(planes, noises), rtol=1e-5)
    mirrored = denoise_turned(to_the_left, planes, noises, 2)
    assert np.abs(np.subtract(mirrored, to_the_left(planes, noises))).max() > 0.1


def test_a_quality_stands_for_a_shipped_prior():
    for name, quality in PRESETS.items():
        if not quality.adapts:
            expected = hp.denoise(IMAGE, 0.1, prior=quality.prior)
            np.testing.assert_array_equal(hp.denoise(IMAGE, 0.1, quality=name), expected)
    fast, default = (hp.denoise(IMAGE, 0.1, quality=name) for name in ("fast", "default"))
    assert np.abs(fast - default).max() > 0.01


def test_an_unknown_quality_is_refused():
    with pytest.raises(hp.InvalidInputError, match=f"quality is 'good'; expected {', '.join(map(repr, PRESETS))}"):
        hp.denoise(IMAGE, 0.1, quality="good")
