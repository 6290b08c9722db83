"""What the page asks of `hp.restore` is what the commands ask, and what makes no sense is refused."""

import numpy as np
import pytest
from PIL import Image

import heatprior as hp
from heatprior.app.pictures import OpenedPicture
from heatprior.app.work import MASK, Restoration, restore_picture
from heatprior.errors import InvalidInputError


def opened(folder):
    y, x = np.mgrid[:32, :36]
    grey = (120 + 60 * np.sin(x / 5 + y / 9) + np.random.default_rng(0).normal(0, 4, x.shape)).astype(np.uint8)
    Image.fromarray(grey).save(folder / "grey.png")
    return OpenedPicture("p", folder / "grey.png", "grey.png"), grey


def test_what_was_painted_over_is_filled_in_and_all_else_stays(tmp_path):
    picture, grey = opened(tmp_path)
    wanted = Restoration.read({"task": "inpaint"})
    with pytest.raises(InvalidInputError, match="no pixel is missing"):
        restore_picture(picture, wanted, lambda _: None)
    spoilt = np.zeros(grey.shape, bool)
    spoilt[10:14, 5:30] = True
    Image.fromarray(255 * spoilt.astype(np.uint8)).save(tmp_path / f".{MASK}")
    done = restore_picture(picture, wanted, lambda _: None)
    filled = picture.result(done["result"]).load()
    np.testing.assert_array_equal(filled[~spoilt], grey[~spoilt])
    assert (filled[spoilt] != grey[spoilt]).any()
    assert done["command"] == "heatprior inpaint grey.png -o grey-filled.png --mask mask.png"


def test_an_enlarged_picture_has_a_frame_of_its_own_shape(tmp_path):
    picture, grey = opened(tmp_path)
    done = restore_picture(picture, Restoration.read({"task": "upscale", "factor": "2", "sigma": "4"}), lambda _: None)
    assert picture.shape_of(done["result"]) == (64, 72)
    assert picture.shape_of(None) == (32, 36)
    expected = hp.restore(grey, hp.operators.Downsample(2), 4.0)
    np.testing.assert_array_equal(picture.reduce(0, 1, done["result"]), expected)
    assert picture.reduce(0, 2, done["result"]).shape == (32, 36)


def test_settings_are_said_as_the_commands_have_them_or_refused():
    wanted = Restoration.read({"task": "deblur", "blur": "motion", "length": "9", "degrees": "30", "sigma": "2.5"})
    assert wanted.command("a b.png") == ("heatprior deblur 'a b.png' -o 'a b-sharpened.png' --motion 9,30 --sigma 2.5")
    for bad in (
        {"task": "paint"},
        {"task": "deblur", "blur": "both"},
        {"task": "deblur", "width": "0"},
        {"task": "deblur", "width": "nan"},
        {"task": "upscale", "factor": "9"},
        {"task": "upscale", "sigma": "-1"},
    ):
        with pytest.raises(InvalidInputError):
            Restoration.read(bad)
