"""Odd command lines and folders: one line each, and no work lost."""

import json

import numpy as np
import pytest
from command_line import assert_refused
from PIL import Image

FAST = ("--prior", "fast7")


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 255, (24, 24), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def test_an_empty_name_is_not_the_current_folder(run, images):
    assert_refused(run("denoise", "", "-o", "out"), "an argument is empty")
    assert_refused(run("denoise", images, "-o", ""), "an argument is empty")


def test_an_interrupted_folder_goes_on_where_it_was(run, images):
    first = run("denoise", images, "-o", "out", "--sigma", "20", *FAST)
    assert first.code == 0
    (images.parent / "out" / "1.png").unlink()
    (images.parent / "out" / "0.png").write_bytes(b"kept as it is")
    again = run("denoise", images, "-o", "out", "--sigma", "20", "--skip-existing", *FAST)
    assert (again.code, again.out.count("wrote")) == (0, 1)
    assert (images.parent / "out" / "0.png").read_bytes() == b"kept as it is"
    assert "nothing left to do" in run("denoise", images, "-o", "out", "--skip-existing").out
    last = run("denoise", images, "-o", "out", "--sigma", "20", "--force", "--skip-existing")
    assert "nothing left to do" in last.out  # of two answers to one question the last counts


def test_one_bad_file_does_not_end_an_evaluation(run, images):
    (images / "0.png").write_bytes(b"not a picture")
    outcome = run("evaluate", images, "--sigma", "25", "-o", "record.json", *FAST)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "0.png" in outcome.err
    record = json.loads((images.parent / "record.json").read_text())
    assert record["count"] == 2
    for path in images.iterdir():
        path.write_bytes(b"not a picture")
    assert run("evaluate", images, "--sigma", "25", *FAST).code == 2


def test_show_prints_words_not_python(run, images):
    shown = run("show", "patch7", "-o", images.parent / "patch7.png").out
    assert "{" not in shown
    assert "[" not in shown
    assert "trained on  BSDS500" in shown
