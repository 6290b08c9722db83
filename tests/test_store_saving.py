"""Saving leaves a whole file or none: whatever goes wrong, what stood there stays and nothing else is left behind."""

from pathlib import Path

import numpy as np
import pytest

from examples import patch_prior
from heatprior import HeatpriorError, OutputFileError, PatchPrior, load

PRIOR = patch_prior(3, 4, 9)
OTHER = patch_prior(3, 5, 9, seed=1)


def half_then(error):
    def write_half(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise error

    return write_half


FAILURES = {
    "a full disk": (OSError(28, "No space left on device"), OutputFileError),
    "an interrupt": (KeyboardInterrupt(), KeyboardInterrupt),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("before", [True, False], ids=["over an old file", "to a new place"])
def test_a_save_that_fails_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch, failure, before):
    path = tmp_path / "prior.safetensors"
    if before:
        PRIOR.save(path)
    error, raised = FAILURES[failure]
    monkeypatch.setattr(Path, "write_bytes", half_then(error))
    with pytest.raises(raised):
        OTHER.save(path)
    assert list(tmp_path.iterdir()) == ([path] if before else [])
    if before:
        assert load(path).filters.count == 4


def test_a_card_that_is_not_json_leaves_what_was_there(tmp_path):
    path = tmp_path / "prior.safetensors"
    PRIOR.save(path)
    with pytest.raises((HeatpriorError, TypeError)):
        PatchPrior(OTHER.filters, OTHER.experts, {"array": np.ones(2)}).save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert load(path).filters.count == 4


def test_saving_replaces_an_old_prior_and_leaves_no_other_file(tmp_path):
    path = tmp_path / "prior.safetensors"
    PRIOR.save(path)
    OTHER.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert load(path).filters.count == 5


@pytest.mark.parametrize("place", ["missing/prior.safetensors", "file/prior.safetensors", "folder"])
def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path, place):
    (tmp_path / "file").write_text("a file, not a folder")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputFileError) as refusal:
        PRIOR.save(tmp_path / place)
    assert str(tmp_path / place) in str(refusal.value)
    assert "choose another place" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.rglob("*")) == before
