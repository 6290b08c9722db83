"""The images of the paper are found where they are said to be, and a missing one is an error with its remedies."""

import pytest

from paper import bsds500
from paper.bsds500 import DataMissingError


def data_set(folder, val=("1.jpg", "37073.jpg")):
    for name in ("train/2.jpg", "train/12.jpg", "test/100.jpg", *(f"val/{name}" for name in val)):
        (folder / "bsds500" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "bsds500" / name).touch()
    (folder / "bsd68").mkdir()
    (folder / "bsd68" / "test001.png").touch()
    return folder


@pytest.fixture(autouse=True)
def nothing_set(tmp_path, monkeypatch):
    monkeypatch.delenv("HEATPRIOR_DATA", raising=False)
    monkeypatch.setattr(bsds500, "cache_folder", lambda: tmp_path / "cache")


def names(files):
    return [path.name for path in files]


def test_the_lists_are_the_sets_of_the_paper(tmp_path):
    data = data_set(tmp_path / "data")
    assert names(bsds500.training(data)) == ["100.jpg", "12.jpg", "2.jpg"]
    assert names(bsds500.validation(data)) == ["37073.jpg"]
    assert names(bsds500.bsd68(data)) == ["test001.png"]


def test_validation_is_32_images():
    assert len(bsds500.VALIDATION_STEMS) == 32
    assert all(stem.isdigit() for stem in bsds500.VALIDATION_STEMS)


def test_the_argument_goes_before_the_variable_and_that_before_the_cache(tmp_path, monkeypatch):
    given, variable, cache = (data_set(tmp_path / name) for name in ("given", "variable", "cache"))
    assert bsds500.training()[0].is_relative_to(cache)
    monkeypatch.setenv("HEATPRIOR_DATA", str(variable))
    assert bsds500.training()[0].is_relative_to(variable)
    assert bsds500.training(given)[0].is_relative_to(given)


@pytest.mark.parametrize("what", [bsds500.training, bsds500.validation, bsds500.bsd68])
def test_missing_data_is_an_error_with_both_remedies(tmp_path, what):
    with pytest.raises(DataMissingError) as refusal:
        what(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    assert "fetch BSDS500 with the command `python -m paper.bsds500`" in str(refusal.value)
    assert "set HEATPRIOR_DATA to a folder" in str(refusal.value)


def test_a_val_folder_without_the_validation_images_is_an_error(tmp_path):
    with pytest.raises(DataMissingError, match="validation images"):
        bsds500.validation(data_set(tmp_path / "data", val=("1.jpg",)))
