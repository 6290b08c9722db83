"""`prior="auto"`: the weight of a blend is the best one without the truth, and chance moves nothing."""

import numpy as np
import pytest
from synthetic import landscape

import heatprior as hp
from heatprior.errors import InvalidInputError
from heatprior.noise_model import ConstantNoise
from heatprior.restoration.blending import best_weight, blended

SHAPE = (80, 90)
SIGMA = 0.1


def shrinking(factor):
    """A denoiser that is linear."""
    return lambda image, *_, **__: np.asarray(factor * image, np.float32)


def trial(seed=0):
    rng = np.random.default_rng(seed)
    clean = 0.15 * rng.standard_normal(SHAPE)
    return clean, (clean + SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.2), (0.3, 0.9)])
def test_the_blend_is_the_best_one(first, second):
    """Both shrink; Wiener's factor lies between them, and the blend shrinks by it."""
    clean, noisy = trial()
    result = blended(shrinking(first), shrinking(second))(noisy, ConstantNoise(SIGMA))
    wiener = 0.15**2 / (0.15**2 + SIGMA**2)
    assert float(np.mean(result / noisy)) == pytest.approx(wiener, abs=0.02)
    errors = [np.mean((values - clean) ** 2) for values in (result, first * noisy, second * noisy)]
    assert errors[0] < 0.9 * min(errors[1:])


def test_what_does_worse_has_no_weight():
    """The control: the first is Wiener's already, or the second leads away from it."""
    noisy = trial()[1]
    for second in (0.2, 1.0):
        found = blended(shrinking(0.69), shrinking(second))(noisy, ConstantNoise(SIGMA))
        np.testing.assert_allclose(found, 0.69 * noisy, atol=0.02)
    np.testing.assert_array_equal(blended(shrinking(0.3), shrinking(0.1))(noisy, ConstantNoise(SIGMA)), 0.3 * noisy)


def test_a_gain_that_chance_explains_is_left_alone():
    rng = np.random.default_rng(0)
    drawn = SIGMA * rng.choice([-1.0, 1.0], SHAPE)
    weights = []
    for _ in range(40):
        noise, step = SIGMA * rng.standard_normal(SHAPE), 0.01 * rng.standard_normal(SHAPE)
        weights.append(best_weight(-noise, step, drawn, np.zeros(SHAPE)))
    assert np.mean(weights) < 0.1
    assert best_weight(np.full(SHAPE, -0.1), np.full(SHAPE, 0.2), drawn, np.zeros(SHAPE)) == pytest.approx(
        0.5, abs=0.01
    )
    assert best_weight(-noise, np.zeros(SHAPE), drawn, np.zeros(SHAPE)) == 0.0


def test_missing_pixels_do_not_count():
    rng = np.random.default_rng(1)
    values = [rng.standard_normal(SHAPE) for _ in range(4)]
    values[0] = -0.4 * values[1]
    expected = best_weight(*(one[:, 5:] for one in values))
    values[0][:, :5] = np.nan
    assert best_weight(*values) == expected > 0.0


def test_of_several_each_is_taken_as_far_as_it_helps():
    noisy = trial()[1]
    expected = blended(shrinking(0.3), shrinking(0.9))(noisy, ConstantNoise(SIGMA))
    found = blended(shrinking(0.3), shrinking(0.1), shrinking(0.9))(noisy, ConstantNoise(SIGMA))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_auto_lies_between_the_default_the_adapted_mixture_and_the_default_at_one_scale():
    clean = landscape((64, 64), np.random.default_rng(0)).astype(np.float32)
    noisy = (clean + SIGMA * np.random.default_rng(1).standard_normal(clean.shape)).astype(np.float32)
    options = ({}, {"adapt": True}, {"scales": 1}, {"prior": "auto"})
    usual, fitted, fine, auto = (hp.denoise(noisy, SIGMA, **one).astype(np.float64).ravel() for one in options)
    steps = np.stack([fitted - usual, fine - usual], axis=1)
    weights = np.linalg.lstsq(steps, auto - usual, rcond=None)[0]
    assert (weights > -1e-4).all()
    assert weights.sum() < 1.0 + 1e-4
    np.testing.assert_allclose(auto, usual + steps @ weights, atol=1e-5)
    with pytest.raises(InvalidInputError, match="leave out adapt"):
        hp.denoise(noisy, SIGMA, prior="auto", adapt=True)
