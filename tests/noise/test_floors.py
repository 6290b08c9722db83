"""Noise that was cut off at a floor is told from counts, which have none below it."""

import numpy as np
import pytest
import skimage.data

import heatprior as hp
from heatprior.noise.photon_noise import log_sigma_at_floor, may_be_whole_counts

SCENE = skimage.data.camera()[100:292, 150:342] / 255.0


@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.7, 3.0])
def test_noise_at_a_floor_follows_from_its_mean(shift):
    values = np.maximum(5.0 * (shift + np.random.default_rng(0).standard_normal(1_000_000)), 0.0)
    found = float(np.exp(log_sigma_at_floor(np.array(values.mean()), 5.0)))
    assert found == pytest.approx(values.std(), rel=0.01)  # chance has 0.1 %


@pytest.mark.parametrize("peak", [1, 5, 20])
def test_counts_near_none_are_no_clipping(peak):
    image = np.random.default_rng(0).poisson(peak * SCENE).astype(np.float64)
    report = hp.estimate_noise(image)
    line = report.channels[0].affine
    assert report.models == ("affine",)
    assert line.gain * report.white == pytest.approx(1.0, abs=0.15)
    assert line.offset * report.white**2 == pytest.approx(0.0, abs=0.05 * peak)


def test_noise_that_was_cut_off_is_no_counts():
    noise = 50.0 * np.random.default_rng(0).standard_normal(SCENE.shape)
    image = np.clip(np.rint(160.0 * SCENE + noise), 0, 255).astype(np.uint8)
    report = hp.estimate_noise(image)
    assert report.models == ("constant",)
    assert report.channels[0].level.sigma * report.white == pytest.approx(50.0, rel=0.15)


def test_whole_counts_are_told_by_their_step_and_grey_levels_are_none():
    counted, posterised = np.random.default_rng(0).poisson(15 * SCENE).astype(np.float64), np.rint(15 * SCENE)
    assert may_be_whole_counts(counted)
    assert may_be_whole_counts(posterised)
    report = hp.estimate_noise(counted)
    found = report.channels[0].counts.scale(report.white)
    assert found.gain == pytest.approx(1.0, abs=1e-4)
    assert (found.read_noise, found.black) == (0.0, 0.0)
    assert hp.estimate_noise(posterised).channels[0].counts is None
