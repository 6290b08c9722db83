"""A run can be interrupted, killed, resumed; nothing is lost, and its end is the same bits."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from synthetic import folder_of_images

import heatprior as hp
from heatprior.errors import OutputFileError
from heatprior.files import claim, working_folder
from heatprior.learning import runs
from heatprior.learning import training as training_module
from heatprior.learning.patch_training import Training
from heatprior.learning.runs import Run, RunSettings
from heatprior.learning.train import gather
from heatprior.learning.training import COLUMNS, Loop

CONFIG = hp.TrainingConfig(size=3, components=11, batch=40, steps=60)


@pytest.fixture
def photos(tmp_path):
    return folder_of_images(tmp_path / "photos")


def new_loop(photos, config=CONFIG):
    material = gather(config, str(photos), validation=str(photos))
    return Loop(Training(config, material.source), material.validation)


def begun(folder, photos):
    run = Run(folder)
    run.begin(RunSettings(CONFIG, str(photos), str(photos), None, "digest"))
    return run


def steps_in_log(folder):
    with (folder / "log.csv").open() as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def timeless(folder):
    """The log without the columns that tell time."""
    with (folder / "log.csv").open() as file:
        return [[row[name] for name in COLUMNS[:-2]] for row in csv.DictReader(file)]


def test_a_run_leaves_config_log_checkpoint_and_prior(tmp_path, photos):
    run = begun(tmp_path / "run", photos)
    prior = run.train(new_loop(photos), card={"name": "mine"})
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "log.csv",
        "prior.safetensors",
    ]
    loaded = hp.load(run.folder / "prior.safetensors")
    np.testing.assert_allclose(loaded.filters.matrix, prior.filters.matrix, rtol=1e-6, atol=1e-7)
    assert loaded.card["name"] == "mine"
    assert set(loaded.card["validation"]) == {"psnr15", "psnr25", "psnr50", "psnr100"}
    assert steps_in_log(run.folder) == list(range(1, 61))
    assert run.settings().training == CONFIG
    last = run.log().rows()[-1]
    assert last["psnr15"] > last["psnr100"] > 0
    assert np.isnan(run.log().rows()[0]["psnr15"])


@pytest.mark.parametrize("stop_after", [1, 2, 57, 59])
def test_a_run_that_stops_and_goes_on_ends_with_the_same_bytes(tmp_path, photos, stop_after):
    whole = begun(tmp_path / "whole", photos)
    whole.train(new_loop(photos))
    broken, countdown = begun(tmp_path / "broken", photos), iter(range(stop_after))
    assert broken.train(new_loop(photos), stop=lambda: next(countdown, None) is None) is None
    assert not (broken.folder / "prior.safetensors").exists()
    assert broken.train(new_loop(photos)) is not None
    for name in ("prior.safetensors", "config.json"):
        assert (broken.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert timeless(broken.folder) == timeless(whole.folder)


def test_a_finished_run_that_goes_on_changes_nothing(tmp_path, photos):
    run = begun(tmp_path / "run", photos)
    run.train(new_loop(photos))
    before = (run.folder / "prior.safetensors").read_bytes(), timeless(run.folder)
    run.train(new_loop(photos))
    assert ((run.folder / "prior.safetensors").read_bytes(), timeless(run.folder)) == before


def test_a_folder_in_which_a_training_goes_on_is_refused_to_another(tmp_path, photos):
    """By which one would lose its log, its checkpoint and all that it has learnt."""
    run, before = begun(tmp_path / "run", photos), []

    def begin_again(_):
        before.append(timeless(run.folder))
        for disturb in (lambda: begun(run.folder, photos), lambda: Run(run.folder).train(new_loop(photos))):
            with pytest.raises(OutputFileError, match="another run"):
                disturb()
        assert timeless(run.folder) == before[-1]

    assert run.train(new_loop(photos), report=begin_again) is not None
    assert len(before) > CONFIG.steps
    assert run.train(new_loop(photos)) is not None


def test_rows_beyond_the_checkpoint_and_torn_rows_are_dropped(tmp_path, photos):
    run, countdown = begun(tmp_path / "run", photos), iter(range(20))
    run.train(new_loop(photos), stop=lambda: next(countdown, None) is None)
    rows = timeless(run.folder)
    with (run.folder / "log.csv").open("a") as file:
        file.write("58,1.0,,,,,100,2\n59,1.0,,,,,100,2\n60,1.")
    torn = working_folder(run.folder / "checkpoint.safetensors")
    os.close(claim(torn))  # as by a process that was killed
    (torn / "checkpoint.safetensors").write_bytes(b"torn")
    run.resume(new_loop(photos))
    assert timeless(run.folder) == rows
    assert not torn.exists()


def test_a_run_without_a_checkpoint_begins_at_the_start(tmp_path, photos):
    run = begun(tmp_path / "run", photos)
    (run.folder / "log.csv").write_text(",".join(COLUMNS) + "\n1,9.0,,,,,100,2\n")
    loop = new_loop(photos)
    run.resume(loop)
    assert loop.training.done == 0
    assert run.log().rows() == []


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "log.csv", "prior.safetensors"])
def test_a_full_disk_is_an_error_that_says_how_to_go_on(tmp_path, photos, monkeypatch, name):
    whole = begun(tmp_path / "whole", photos)
    whole.train(new_loop(photos))
    run, saved = begun(tmp_path / "run", photos), []

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    def report(event):
        if event.step == 30 and not saved:
            saved.append((run.folder / "checkpoint.safetensors").read_bytes())
            if name == "checkpoint.safetensors":
                monkeypatch.setattr(Path, "write_bytes", full)
            elif name == "log.csv":
                monkeypatch.setattr(runs.csv, "writer", full)
            else:
                monkeypatch.setattr(hp.PatchPrior, "save", full)

    with pytest.raises(hp.OutputFileError) as refusal:
        run.train(new_loop(photos), report=report, checkpoint_seconds=0.0)
    assert str(run.folder / name) in str(refusal.value)
    assert str(refusal.value).endswith("No space left on device; free disk space, then resume the run")
    if name == "checkpoint.safetensors":
        assert (run.folder / name).read_bytes() == saved[0]
    assert not list(run.folder.glob(".*"))
    monkeypatch.undo()
    run.train(new_loop(photos))
    assert (run.folder / "prior.safetensors").read_bytes() == (whole.folder / "prior.safetensors").read_bytes()
    assert timeless(run.folder) == timeless(whole.folder)


def test_a_disk_that_is_truly_full_leaves_the_last_checkpoint(tmp_path, photos):
    """The system refuses files above a limit, as it refuses them on a full disk."""
    script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from test_runs import begun, new_loop
import heatprior as hp
run = begun(Path({str(tmp_path / "run")!r}), Path({str(photos)!r}))
def report(event):
    if event.step == 30:
        size = (run.folder / "checkpoint.safetensors").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
try:
    run.train(new_loop(Path({str(photos)!r})), report=report, checkpoint_seconds=0.0)
except hp.OutputFileError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert done.stdout.endswith("free disk space, then resume the run\n")
    folder = tmp_path / "run"
    assert int(load_file(folder / "checkpoint.safetensors")["done"][0]) in (29, 30)
    assert not list(folder.glob(".*"))


def test_a_checkpoint_of_other_settings_is_refused(tmp_path, photos):
    run, countdown = begun(tmp_path / "run", photos), iter(range(5))
    run.train(new_loop(photos), stop=lambda: next(countdown, None) is None)
    other = hp.TrainingConfig(size=3, components=11, batch=40, steps=60, seed=1)
    checkpoint = (run.folder / "checkpoint.safetensors").read_bytes()
    run.begin(RunSettings(other, str(photos), None, None, "digest"))
    assert not (run.folder / "checkpoint.safetensors").exists()
    (run.folder / "checkpoint.safetensors").write_bytes(checkpoint)
    with pytest.raises(hp.TrainingError, match="other settings"):
        run.train(new_loop(photos, other))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_is_refused(tmp_path, photos, content):
    run = begun(tmp_path / "run", photos)
    (run.folder / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(hp.TrainingError, match="damaged or not a checkpoint"):
        run.train(new_loop(photos))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"training": {"sise": 7}}', '{"kind": "none", "training": {}}'])
def test_a_damaged_config_is_refused(tmp_path, photos, content):
    run = begun(tmp_path / "run", photos)
    (run.folder / "config.json").write_text(content)
    with pytest.raises(hp.TrainingError, match="damaged or from another version"):
        run.settings()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "kind",
    [
        "--components 11 --batch 200 --steps 250",
        "--kind mixture --shapes 3 --contrasts 2 --batch 1000 --steps 150",
    ],
)
def test_a_run_that_is_killed_and_resumed_ends_bit_identical(tmp_path, photos, kind):
    """Killed with SIGKILL at some moment of its work, which the speed of the machine decides."""
    command = [sys.executable, "-m", "heatprior", "train", "--checkpoint", "0.02", "-o"]
    settings = [str(photos), "--size", "3", "--validation", str(photos), *kind.split()]
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole, killed = tmp_path / "whole" / "run", tmp_path / "killed" / "run"
    subprocess.run([*command, str(whole), *settings], check=True, capture_output=True)

    process = subprocess.Popen([*command, str(killed), *settings], stdout=subprocess.DEVNULL)
    while process.poll() is None and not (killed / "log.csv").exists():
        time.sleep(0.01)
    time.sleep(random.uniform(0.0, 0.5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process = subprocess.Popen([*command, str(killed), "--resume"], stdout=subprocess.DEVNULL)
    assert process.wait() == 0
    assert (killed / "prior.safetensors").read_bytes() == (whole / "prior.safetensors").read_bytes()
    assert timeless(killed) == timeless(whole)
    states = [load_file(folder / "checkpoint.safetensors") for folder in (whole, killed)]
    for name in states[0].keys() - {"since_record"}:
        np.testing.assert_array_equal(states[0][name], states[1][name], err_msg=name)


def test_log_entries_are_as_many_as_promised(tmp_path, photos, monkeypatch):
    monkeypatch.setattr(training_module, "LOG_ENTRIES", 4)
    run = begun(tmp_path / "run", photos)
    run.train(new_loop(photos))
    assert steps_in_log(run.folder) == [15, 30, 45, 60]
