"""What `hp.denoise` refuses, each with one line that says what was expected and how to mend it."""

import warnings

import numpy as np
import pytest

import heatprior as hp

IMAGE = np.linspace(0, 1, 400).reshape(20, 20)
LARGE = np.linspace(0, 1, 6400).reshape(80, 80)
COLOUR = np.zeros((20, 20, 3), np.uint8)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (IMAGE > 0.5, "of type bool; expected uint8, uint16, uint32"),
        (IMAGE + 1j, "of type complex128"),
        (IMAGE.astype(np.longdouble), "of type float128|of type longdouble"),
        (np.array("abc"), "of type <U3"),
        (np.zeros((0, 20)), r"shape \(0, 20\)"),
        (np.zeros(20), r"shape \(20,\)"),
        (np.float32(0.5), r"shape \(\)"),
        (np.zeros((1, 1)), r"shape \(1, 1\) but the prior acts on patches of 8×8"),
        (np.zeros((6, 20)), r"shape \(6, 20\) but the prior acts"),
        (np.full((20, 20), np.nan), "nothing but NaN"),
        ([[0.1, 0.2], [0.3]], "rows differ in length"),
        ("photo.png", "is a path, 'photo.png'; read it first"),
    ],
)
def test_an_image_that_cannot_be_denoised_is_refused(image, why):
    with pytest.raises(hp.InvalidInputError, match=why) as caught:
        hp.denoise(image, 0.1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("sigma", "why"),
    [
        (0, "sigma is 0; expected a positive number"),
        (-1, "sigma is -1"),
        (float("nan"), "sigma is nan"),
        (float("inf"), "sigma is inf"),
        ("abc", "expected a number or an array of numbers"),
        ([], "sigma is nan"),
        (np.where(IMAGE > 0.9, 0, 0.1), "sigma is 0"),
        (np.where(IMAGE > 0.9, np.nan, 0.1), "sigma is a map that holds NaN"),
        ([0.1, 0.1, 0.1], r"sigma has shape \(3,\) but the image \(20, 20\); expected one number, or a map"),
        (np.full((20, 19), 0.1), r"sigma has shape \(20, 19\)"),
        (np.ma.masked_greater(IMAGE + 0.1, 0.9), "sigma holds masked values"),
        (0.1 + 0j, "expected a number"),
        (25, "sigma is 25 but full scale is 1"),
    ],
)
def test_a_noise_level_that_makes_no_sense_is_refused(sigma, why):
    with pytest.raises(hp.InvalidInputError, match=why) as caught:
        hp.denoise(IMAGE, sigma)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sigma", [[10, 10], np.full((3, 20, 20), 10), np.full((20, 20, 1), 10)])
def test_a_noise_level_that_does_not_fit_the_channels_is_refused(sigma):
    with pytest.raises(hp.InvalidInputError, match=r"3 numbers \(one per channel\), or a map \(20, 20\) or"):
        hp.denoise(COLOUR, sigma, channel_axis=-1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"steps": 2}, "steps is 2; expected None"),
        ({"noise": "foo"}, "noise is 'foo'; expected 'auto'"),
        ({"noise": "map"}, "leave out sigma, or noise"),
        ({"prior": 3}, "prior is int; expected a name"),
        ({"channel_axis": 0}, r"shape \(20, 20\), which leaves no room for channels"),
        ({"channel_axis": 2}, "channel_axis is 2; the image has axes 0 to 1"),
        ({"channel_axis": "last"}, "channel_axis is 'last'"),
        ({"white": 0}, "white is 0; expected the positive value"),
        ({"white": -1}, "white is -1"),
        ({"white": float("nan")}, "white is nan"),
        ({"white": "255"}, "white is '255'"),
        ({"white": 1e300}, r"up to 1 but full scale \(white\) is 1e\+300; give the right"),
        ({"quality": ["fast"]}, "quality is .'fast'.; expected 'fast'"),
        ({"noise": ["auto"]}, "noise is .'auto'.; expected 'auto'"),
        ({"strength": "2"}, "strength is '2'; expected 0.1 to 10"),
        ({"strength": None}, "strength is None"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options, why):
    with pytest.raises(hp.InvalidInputError, match=why) as caught:
        hp.denoise(IMAGE, 0.1, **options)
    assert "\n" not in str(caught.value)


def test_an_unknown_prior_is_refused_as_by_load():
    with pytest.raises(hp.PriorFileError, match="no prior is called 'patch8'; shipped are"):
        hp.denoise(IMAGE, 0.1, prior="patch8")


def test_a_dim_image_of_16_bits_is_no_riddle():
    image = (IMAGE * 3000).astype(np.uint16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hp.denoise(image, 100, white=4095)
        hp.denoise(image, 100)  # finds it
        hp.denoise((IMAGE * 5000).astype(np.uint16), 100)
