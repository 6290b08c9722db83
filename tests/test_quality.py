"""Quality does not drop unnoticed: what the library makes of crops of installed pictures, beside the recorded floor."""

import json

import numpy as np
import pytest
import quality_floor

from heatprior.restoration import pipeline

TOLERANCE = 0.02  # dB; processors differ by less than a thousandth


@pytest.mark.parametrize("path", quality_floor.PATHS)
def test_quality_stays_above_the_floor(path):
    floor, found = json.loads(quality_floor.FLOOR.read_text())[path], quality_floor.measure(path)
    worse = {level: f"{found[level]} < {floor[level]}" for level in floor if found[level] < floor[level] - TOLERANCE}
    assert not worse


def test_the_floor_sees_a_small_loss(monkeypatch):
    """A noise level that is 8 % too high in every step costs a few hundredths of a decibel, and is found."""
    step = pipeline.noise_of_step

    def stronger(schedules, number, noise):
        right = step(schedules, number, noise)
        return right.change(lambda sigma: np.asarray(1.08 * sigma), 1.08 * right.lowest, 1.08 * right.highest)

    monkeypatch.setattr(pipeline, "noise_of_step", stronger)
    floor, found = json.loads(quality_floor.FLOOR.read_text())["default"], quality_floor.measure("default")
    assert any(found[level] < floor[level] - TOLERANCE for level in floor)
