"""Log entries sum up the steps between them, with and without a break; `train` is the whole of it in one call."""

import numpy as np
import pytest
from PIL import Image
from synthetic import folder_of_images, landscape

import heatprior as hp
from heatprior.data.datasets import PatchSource
from heatprior.learning import training as module
from heatprior.learning.patch_training import Training
from heatprior.learning.training import LogEntry, Loop, StepReport, Validation

CONFIG = hp.TrainingConfig(size=3, components=11, batch=40, steps=23)


@pytest.fixture
def often(monkeypatch):
    """Few log entries in a run, and a validation with every second."""
    monkeypatch.setattr(module, "LOG_ENTRIES", 5)  # one every 4 steps
    monkeypatch.setattr(module, "VALIDATIONS", 3)
    monkeypatch.setattr(hp.TrainingConfig, "steps_per_validation", 7)


def new_loop(config=CONFIG):
    rng = np.random.default_rng(0)
    images = [landscape((24, 30), rng) for _ in range(2)]
    return Loop(Training(config, PatchSource(images, 3)), Validation([landscape((20, 20), rng)], 3))


def summary(events):
    return [(event.step, event.loss, event.psnr) for event in events if isinstance(event, LogEntry)]


@pytest.mark.usefixtures("often")
def test_a_log_entry_is_the_mean_of_the_steps_since_the_last():
    events = list(new_loop().run())
    steps = [event for event in events if isinstance(event, StepReport)]
    entries = [event for event in events if isinstance(event, LogEntry)]
    assert [event.step for event in steps] == list(range(1, 24))
    assert [entry.step for entry in entries] == [4, 8, 12, 16, 20, 23]
    losses = np.array([event.loss for event in steps])
    for entry, begin in zip(entries, [0, 4, 8, 12, 16, 20], strict=True):
        assert entry.loss == pytest.approx(losses[begin : entry.step].mean())
        assert entry.steps_per_second > 0
    assert [entry.psnr is not None for entry in entries] == [False, True, False, True, False, True]
    assert np.all(np.diff([entry.seconds for entry in entries]) > 0)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("break_after", range(1, 30))
def test_a_loop_that_goes_on_from_its_state_yields_what_it_would_have(break_after):
    """At every event: also between the last step of an interval and its entry."""
    events = list(new_loop().run())
    broken, before = new_loop(), []
    for event, _ in zip(broken.run(), range(break_after), strict=False):
        before.append(event)
        kept = {name: array.copy() for name, array in broken.state().items()}
    resumed = new_loop()
    resumed.restore(kept)
    after = list(resumed.run())
    assert summary(before) + summary(after) == summary(events)
    assert len(before) + len(after) == len(events)
    np.testing.assert_array_equal(
        resumed.training.prior().filters.matrix, new_loop_at_its_end().training.prior().filters.matrix
    )


def new_loop_at_its_end(known=[]):  # noqa: B006 (a cache)
    if not known:
        known.append(new_loop())
        list(known[0].run())
    return known[0]


def test_a_loss_that_is_not_finite_ends_the_run(monkeypatch):
    loop = new_loop()
    monkeypatch.setattr(loop.training, "_step", lambda: float("nan"))
    with pytest.raises(hp.TrainingError, match="lower the rates"):
        list(loop.run())


def test_train_gives_a_prior_and_reports(tmp_path):
    folder = folder_of_images(tmp_path / "photos")
    events = []
    prior = hp.train(folder, CONFIG, validation=folder, report=events.append)
    assert prior.filters.size == 3
    assert prior.card["training"]["steps_done"] == 23
    assert [event.step for event in events if isinstance(event, StepReport)] == list(range(1, 24))
    assert events[-1].psnr is not None
    arrays = [np.asarray(Image.open(path)) for path in sorted(folder.iterdir())]
    same = hp.train(arrays, CONFIG)
    np.testing.assert_array_equal(prior.filters.matrix, same.filters.matrix)
    np.testing.assert_array_equal(prior.experts.logits, same.experts.logits)


def test_train_takes_colour():
    grey = np.uint8(255 * landscape((30, 30), np.random.default_rng(0)))
    one, two = hp.train([grey], CONFIG), hp.train([np.dstack([grey] * 3)], CONFIG)
    np.testing.assert_array_equal(one.filters.matrix, two.filters.matrix)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([np.zeros((7, 7), np.uint8)], "1 images hold only 25 patches of 3×3 pixels, fewer than one batch of 40"),
        ([np.zeros((2, 50), np.uint8)], "none of 1 images"),
        ([np.full((50, 50), 3.0)], "rescale"),
        ([], "none of 0 images"),
    ],
)
def test_train_refuses_too_few_and_too_small_images(images, message):
    with pytest.raises(hp.InvalidInputError, match=message):
        hp.train(images, CONFIG)
