"""`hp.train` with a run folder: the same folder as the command's, interrupted and resumed to the same bits."""

import json
import os
import signal
import threading

import numpy as np
import pytest
from synthetic import folder_of_images, landscape

import heatprior as hp
from heatprior.learning.runs import Run
from heatprior.learning.train import interruptible
from heatprior.learning.training import StepReport

CONFIG = hp.TrainingConfig(size=3, components=11, batch=40, steps=30)
MIXTURE = hp.MixtureConfig(size=3, shapes=2, contrasts=2, batch=40, steps=12)


@pytest.fixture
def photos(tmp_path):
    return folder_of_images(tmp_path / "photos", 12)


def interrupting(step):
    """A report that presses Ctrl-C after a step."""

    def report(event):
        if isinstance(event, StepReport) and event.step == step:
            signal.raise_signal(signal.SIGINT)

    return report


@pytest.mark.parametrize("config", [CONFIG, MIXTURE], ids=["patch", "mixture"])
def test_a_run_that_is_interrupted_and_resumed_ends_with_the_same_bits(tmp_path, photos, config):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    whole, broken = tmp_path / "one" / "run", tmp_path / "two" / "run"
    prior = hp.train(photos, config, validation=photos, run=whole)
    assert type(prior) is type(hp.load(whole / "prior.safetensors"))
    with pytest.raises(KeyboardInterrupt):
        hp.train(photos, config, validation=photos, run=broken, report=interrupting(7))
    assert not (broken / "prior.safetensors").exists()
    events = []
    hp.train(run=str(broken), resume=True, report=events.append)
    assert next(event.step for event in events if isinstance(event, StepReport)) == 8
    assert (broken / "prior.safetensors").read_bytes() == (whole / "prior.safetensors").read_bytes()


def test_a_run_folder_changes_nothing_in_the_prior(tmp_path, photos):
    """Without validation images none are held out, with a run folder or without."""
    one, two = hp.train(photos, CONFIG), hp.train(photos, CONFIG, run=tmp_path / "run")
    np.testing.assert_array_equal(one.filters.matrix, two.filters.matrix)
    np.testing.assert_array_equal(one.experts.logits, two.experts.logits)
    assert one.card["training"] == two.card["training"]
    assert two.card["name"] == "run"
    assert json.loads((tmp_path / "run" / "config.json").read_text())["hold_out"] is False
    again = hp.train(photos, CONFIG, run=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(one.filters.matrix, again.filters.matrix)


def test_arrays_are_given_again_when_a_run_is_resumed(tmp_path):
    arrays = [landscape((30, 30), np.random.default_rng(seed)) for seed in range(2)]
    with pytest.raises(KeyboardInterrupt):
        hp.train(arrays, CONFIG, run=tmp_path / "run", report=interrupting(3))
    with pytest.raises(hp.TrainingError, match=r"the images of .*run were arrays and are not stored; give them again"):
        hp.train(run=tmp_path / "run", resume=True)
    with pytest.raises(hp.TrainingError, match="differ from those with which"):
        hp.train(arrays[::-1], run=tmp_path / "run", resume=True)
    resumed = hp.train(arrays, run=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(resumed.filters.matrix, hp.train(arrays, CONFIG).filters.matrix)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"run": "run"}, hp.OutputFileError, "already holds a run; resume it, or give a new folder"),
        ({"run": "none", "resume": True}, hp.TrainingError, "none holds no run to resume"),
        ({"resume": True}, hp.InvalidInputError, "resume a run folder"),
        ({"images": None}, hp.InvalidInputError, "no images to train on"),
        ({"images": None, "run": "new"}, hp.InvalidInputError, "no images to train on"),
        ({"run": "run", "resume": True, "config": MIXTURE}, hp.InvalidInputError, "started with kind = patch"),
        (
            {"run": "run", "resume": True, "config": hp.TrainingConfig(size=3, components=11, batch=40, steps=31)},
            hp.InvalidInputError,
            "started with steps = 30 and cannot continue with 31",
        ),
    ],
)
def test_calls_that_make_no_sense_are_refused(tmp_path, photos, call, error, message):
    """In the words of the library: the options of the command line are not its own."""
    hp.train(photos, CONFIG, run=tmp_path / "run")
    before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    arguments = {"images": photos, **call}
    if "run" in call:
        arguments["run"] = tmp_path / call["run"]
    with pytest.raises(error, match=message) as refusal:
        hp.train(**arguments)
    assert "--" not in str(refusal.value)
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_checkpoints_need_a_time_between_them(tmp_path, photos):
    hp.train(photos, CONFIG, run=tmp_path / "run")
    with pytest.raises(hp.InvalidInputError, match="checkpoint_seconds is nan"):
        Run(tmp_path / "run").train(None, checkpoint_seconds=float("nan"))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_second_interruption_does_not_wait_and_other_threads_ask_nothing(request):
    before = signal.default_int_handler
    inherited = signal.signal(signal.SIGINT, before)  # a shell starts jobs in the background that ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, inherited))
    with interruptible() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    answers = []

    def ask():
        with interruptible() as stop:
            answers.append(stop())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert answers == [False]
