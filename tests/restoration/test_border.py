"""Every public function that takes an image obeys the same rules: one table of (function × kind of input)."""

import numpy as np
import pytest
from skimage.data import astronaut

import heatprior as hp
from heatprior.border.entry import Result, enter

RNG = np.random.default_rng(0)
RGB = astronaut()[20:68, 180:236] / 255.0
GREY = RGB.mean(axis=-1)
SIGMA = 0.08
KERNEL = np.ones((3, 3)) / 9
SEEN = RNG.random(GREY.shape) < 0.9

# What is computed of an image with noise of standard deviation sigma, in the units of the image; and how its result
# depends on those units: "image" is an image like the input, "same" does not depend on them.
FUNCTIONS = {
    "denoise": (lambda y, s, **o: hp.denoise(y, s, quality="fast", **o), "image"),
    "denoise blindly": (lambda y, s, **o: hp.denoise(y, noise="constant", quality="fast", **o), "image"),  # noqa: ARG005
    "error": (lambda y, s, **o: hp.denoise(y, s, quality="fast", return_error=True, **o).error, "image"),
    "estimate_noise": (lambda y, s, **o: hp.estimate_noise(y, "constant", **o).sigma, "image"),  # noqa: ARG005
    "estimate_sigma": (lambda y, s, **o: hp.estimate_sigma(y, **o).sigma, "image"),  # noqa: ARG005
    "deblur": (lambda y, s, **o: hp.restore(y, hp.operators.Blur(KERNEL), s, prior="fast7", **o), "image"),
    "fill in": (lambda y, s, **o: hp.restore(y, hp.operators.Mask(SEEN), s, prior="fast7", **o), "image"),
    "adapt": (lambda y, s, **o: hp.adapt("mixture", y, s, **o).log_weights, "same"),
    "posterior_samples": (
        lambda y, s, **o: hp.posterior_samples(y, s, 1, rng=np.random.default_rng(0), prior="patch7", **o)[0],
        "image",
    ),
    "surprise": (lambda y, s, **o: hp.surprise(y, s, **o).p, "same"),
}
GREY_ONLY = ("posterior_samples", "surprise")
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def noisy(clean):
    return clean + SIGMA * np.random.default_rng(1).standard_normal(clean.shape)


@every_function
@pytest.mark.parametrize("factor", [1e-5, 300.0, 1e4])
def test_units_do_not_matter(name, factor):
    """Floats of any range are accepted everywhere, and mean the same."""
    function, kind = FUNCTIONS[name]
    usual, scaled = (np.asarray(function(f * noisy(GREY), f * SIGMA)) for f in (7.0, factor))  # no full scale of a type
    scale = 1.0 if kind == "same" else factor / 7.0
    np.testing.assert_allclose(scaled, scale * usual, atol=scale * 7.0 * 2e-3, rtol=2e-3)


@every_function
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32"])
def test_types_are_accepted_and_images_have_the_type_of_the_input(name, dtype):
    function, _ = FUNCTIONS[name]
    white = 1.0 if dtype == "float32" else 200.0
    image = (noisy(GREY).clip(0, 1) * white).astype(dtype)
    found = np.asarray(function(image, SIGMA * white, white=white))
    assert np.isfinite(found).all()
    if name in ("denoise", "denoise blindly", "deblur", "fill in"):
        assert (found.dtype, found.shape) == (image.dtype, image.shape)


@every_function
def test_infinite_pixels_are_missing_ones(name):
    function, _ = FUNCTIONS[name]
    one, other = noisy(GREY).astype(np.float32), noisy(GREY).astype(np.float32)
    one[10, 20], other[10, 20] = np.inf, np.nan
    if name == "posterior_samples":
        with pytest.raises(hp.InvalidInputError, match="holds NaN"):
            function(one, SIGMA)
        return
    np.testing.assert_array_equal(*(np.asarray(function(image, SIGMA)) for image in (one, other)))


@every_function
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (np.zeros((0, 5)), "shape"),
        (np.zeros(9), "shape"),
        (np.full((20, 20), "a"), "type"),
        (np.zeros((20, 20, 3)), "colours"),
    ],
    ids=["empty", "one axis", "words", "colours"],
)
def test_what_is_no_image_is_refused_in_one_line(name, bad, why):
    with pytest.raises(hp.InvalidInputError, match=why) as caught:
        FUNCTIONS[name][0](bad, SIGMA)
    assert "\n" not in str(caught.value)


@every_function
def test_a_wrong_full_scale_is_refused_in_one_line(name):
    for white in (0, -1, float("nan"), "255"):
        with pytest.raises(hp.InvalidInputError, match="white is"):
            FUNCTIONS[name][0](noisy(GREY), SIGMA, white=white)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in GREY_ONLY])
def test_channels_may_be_anywhere(name):
    function, kind = FUNCTIONS[name]
    last = np.asarray(function(noisy(RGB), SIGMA, channel_axis=-1))
    first = np.asarray(function(np.moveaxis(noisy(RGB), -1, 0), SIGMA, channel_axis=0))
    is_image = kind == "image" and first.ndim == 3
    np.testing.assert_allclose(np.moveaxis(first, 0, -1) if is_image else first, last, atol=1e-6)


@pytest.mark.parametrize("name", ["denoise", "denoise blindly", "deblur", "fill in"])
def test_transparency_stays_as_it_is(name):
    alpha = np.where(np.arange(56) < 40, 1.0, np.linspace(0, 0.5, 56)) * np.ones((48, 1))
    image = np.dstack([noisy(RGB), alpha])
    found = FUNCTIONS[name][0](image, SIGMA, channel_axis=-1)
    np.testing.assert_array_equal(found[..., 3], alpha)
    np.testing.assert_array_equal(found[..., :3], FUNCTIONS[name][0](noisy(RGB), SIGMA, channel_axis=-1))


def test_transparency_is_enlarged_with_its_image():
    alpha = np.where(np.arange(56) < 40, 255, 0).astype(np.uint8) * np.ones((48, 1), np.uint8)
    image = np.dstack([(255 * RGB).astype(np.uint8), alpha])
    found = hp.restore(image, hp.operators.Downsample(2), 5.0, prior="fast7", channel_axis=-1)
    assert found.shape == (96, 112, 4)
    np.testing.assert_array_equal(found[..., 3], np.kron(alpha, np.ones((2, 2), np.uint8)))


def pass_through(entered, factor):
    result = Result(entered)
    for group in entered.groups():
        result.leave(group, [factor * plane for plane in entered.planes(group)])
    return result.image()


def test_what_enters_leaves_unchanged():
    """Mixing and unmixing, scaling and rounding are inverse to each other."""
    for image in ((255 * RGB).astype(np.uint8), (60000 * RGB).astype(np.uint16), RGB.astype(np.float32)):
        entered = enter(image, channel_axis=-1)
        found = pass_through(entered, 1.0)
        if image.dtype.kind == "u":
            np.testing.assert_array_equal(found, image)
        else:
            np.testing.assert_allclose(found, image, atol=1e-6)
    assert not np.array_equal(pass_through(entered, 2.0), image)
