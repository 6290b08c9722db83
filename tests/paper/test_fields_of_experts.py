"""The field of experts of Table 1: its score, its loss and its estimate are what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import folder_of_images

from heatprior.data.datasets import PatchSource, folder_files, read_images
from heatprior.errors import InvalidInputError
from paper.fields_of_experts import (
    MARGIN,
    MODEL_FILE,
    ROWS_AT_ONCE,
    SIZE,
    FieldConfig,
    FieldOfExperts,
    FieldTraining,
    add_up,
    cut,
    denoise,
    match_scores,
)

COUNT = 6


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def some_point():
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=(COUNT, SIZE**2)),
        np.log(rng.uniform(0.05, 0.3, COUNT)),
        np.log(rng.uniform(0.1, 1.0, COUNT)),
    ]


MODEL = FieldOfExperts.of_point(some_point())
IMAGE = np.cumsum(normal(ROWS_AT_ONCE + 9, 14), axis=1) / 10.0  # its patches come in two bands of rows


def relative_error_of_score(model, of_score, step=1e-5):
    """Between the slope of log f in a random direction, by differences, and the one that the score says."""
    direction = normal(*IMAGE.shape, seed=1)
    ahead, behind = (model.log_density(IMAGE + sign * step * direction) for sign in (1, -1))
    slope = (ahead - behind) / (2.0 * step)
    return abs(np.vdot(of_score.score(IMAGE), direction) / slope - 1.0)


def test_score_is_the_gradient_of_the_log_density():
    assert relative_error_of_score(MODEL, MODEL) < 1e-6  # differences are right to the square of their step
    other = replace(MODEL, scales=1.1 * MODEL.scales)
    assert relative_error_of_score(MODEL, other) > 1e-3


def test_second_derivatives_stay_below_the_bound():
    directions, step = normal(5, *IMAGE.shape, seed=1), 1e-6
    at_zero = [-np.vdot(d, MODEL.score(step * d)) / (step * np.vdot(d, d)) for d in directions]
    assert 0.0 < max(at_zero) <= MODEL.steepness()  # where the experts curve most


@pytest.mark.parametrize("block", range(3))
def test_gradient_of_score_matching_is_that_of_its_loss(block):
    clean, noise = 0.3 * normal(2, 14, 13), normal(2, 14, 13, seed=1)
    point, step = some_point(), 1e-6
    direction = normal(*point[block].shape, seed=2)
    gradient = match_scores(point, clean, noise, 0.1)[1]

    def loss(move):
        moved = [x + move * direction if k == block else x for k, x in enumerate(point)]
        return match_scores(moved, clean, noise, 0.1)[0]

    slope = (loss(step) - loss(-step)) / (2.0 * step)
    assert np.vdot(gradient[block], direction) == pytest.approx(slope, rel=1e-5)
    assert np.vdot(gradient[block] + 0.01 * direction, direction) != pytest.approx(slope, rel=1e-5)


def test_loss_is_the_error_of_the_score_inside():
    clean, noise, sigma, point = IMAGE[None], normal(1, *IMAGE.shape, seed=1), 0.2, some_point()
    error = noise[0] + sigma * FieldOfExperts.of_point(point).score(clean[0] + sigma * noise[0])
    inside = slice(SIZE - 1, 1 - SIZE)
    loss = match_scores(point, clean, noise, sigma)[0]
    assert loss == pytest.approx(np.mean(np.square(error[inside, inside])), rel=1e-12)
    assert loss != pytest.approx(np.mean(np.square(error)), rel=1e-3)


def test_adding_patches_up_is_the_adjoint_of_cutting_them():
    images = normal(2, 9, 8)
    patches = normal(*cut(images).shape, seed=1)
    assert np.vdot(cut(images), patches) == pytest.approx(np.vdot(images, add_up(patches, images.shape)), rel=1e-12)


def test_estimate_is_where_the_gradient_of_the_posterior_vanishes():
    sigma, weight = 0.1, 0.5
    noisy = np.full((40, 30), 0.5) + sigma * normal(40, 30)
    found = denoise(MODEL, noisy, sigma, weight)
    inside = slice(2 * SIZE, -2 * SIZE)  # beyond the reach of pixels outside, which are mirrored ones

    def gradient(x):
        return ((x - noisy) - weight * sigma**2 * MODEL.score(x))[inside, inside]

    assert np.abs(gradient(found)).max() < 0.02 * np.abs(gradient(noisy)).max()
    assert np.std(found) < np.std(noisy)


def test_weight_none_is_that_of_the_card_and_no_weight_changes_nothing():
    model = replace(MODEL, card={"weights": {"sigmas": [0.05, 0.2], "values": [1.0, 0.5]}})
    assert model.weight(0.1) == pytest.approx(0.75)
    assert model.weight(0.5) == 0.5
    noisy = IMAGE[:, : 2 + MARGIN]
    np.testing.assert_array_equal(denoise(model, noisy, 0.1), denoise(model, noisy, 0.1, 0.75))
    np.testing.assert_allclose(denoise(model, noisy, 0.1, 0.0), noisy, rtol=0, atol=1e-12)


def test_training_lowers_the_loss_and_is_a_function_of_the_seed(tmp_path: Path):
    folder_of_images(tmp_path / "images", 3, (60, 50))
    config = FieldConfig(sigma=0.05, steps=60, crops=8, warm_up=5, averaged=10)
    source = PatchSource(read_images(folder_files(tmp_path / "images"), config.side).images, config.side)

    def learn(**changes):
        training = FieldTraining(replace(config, **changes), source)
        return [report.loss for report in training.run(60)], training.model()

    losses, model = learn()
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    np.testing.assert_array_equal(model.filters, learn()[1].filters)
    assert np.abs(model.filters - learn(seed=1)[1].filters).max() > 1e-3
    model.save(tmp_path / "model.safetensors")
    again = FieldOfExperts.load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(again.scales, model.scales, rtol=1e-6)
    assert again.card == model.card


def test_the_model_of_the_table_has_as_many_parameters_as_the_paper_says_and_tells_its_making():
    model = FieldOfExperts.load(MODEL_FILE)
    assert model.parameters == 648
    np.testing.assert_allclose(np.linalg.norm(model.filters, axis=1), 1.0, atol=1e-6)
    assert model.card["trained on"] == "BSDS500, train and test"
    assert model.card["training"]["seed"] == 0


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInputError, match="expected at least"):
        FieldConfig(side=8)
