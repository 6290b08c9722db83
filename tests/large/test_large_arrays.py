"""`hp.denoise` of a dask array: the same bits as of the whole array, whatever the blocks and however many workers."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data

import heatprior as hp
from heatprior.errors import InvalidInputError
from heatprior.priors import mixture_step
from heatprior.priors import patch as patch_prior
from heatprior.restoration.denoising import PRESETS
from heatprior.restoration.pipeline import Pipeline
from paper.weights.handmade import dct_prior

PRIOR = dct_prior(3)
PRIORS = {"dct": PRIOR, **{name: hp.load(name) for name in ("patch7", "fast7", "mixture", "tuned")}}
BLOCKS = (17, 40, 64, 97, 250)


@pytest.fixture(scope="module", autouse=True)
def small_cells():
    """Cells of a few columns, so that a small image has several: the whole and the blocks see the same ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture_step, "TILE", 24)
        patch.setattr(patch_prior, "APART", 16)
        yield


def image_of(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    image = rng.normal(0.5, 0.15, shape)
    if kind != "float32":
        return np.clip(image * np.iinfo(kind).max, 0, np.iinfo(kind).max).astype(kind)
    image[..., 5:30, 8:50] = np.nan
    image[rng.random(shape) < 0.02] = np.nan
    return image.astype(np.float32)


@st.composite
def cases(draw):
    """A prior, how many steps, an image and the shape of its blocks: blocks are larger for the priors that are slow."""
    name, kind = draw(st.sampled_from(list(PRIORS))), draw(st.sampled_from(["uint8", "uint16", "float32"]))
    least = 31 if kind == "float32" else PRIORS[name].patch_shape[0]
    rows, columns = draw(st.tuples(st.integers(least, 130), st.integers(max(least, 51), 130)))
    sides = BLOCKS if name == "dct" else BLOCKS[1:]
    block = draw(st.tuples(st.sampled_from(sides), st.sampled_from(sides)))
    return PRIORS[name], draw(st.sampled_from([None, 1])), image_of((rows, columns), kind), block


@given(case=cases(), workers=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_blocks_have_the_bits_of_the_whole(case, workers):
    """At as many scales as the image holds, or in one step."""
    prior, steps, image, block = case
    sigma = 0.1 * (1.0 if image.dtype.kind == "f" else np.iinfo(image.dtype).max)
    whole = hp.denoise(image, sigma, prior=prior, steps=steps)
    lazy = hp.denoise(da.from_array(image, chunks=block), sigma, prior=prior, steps=steps)
    assert lazy.chunks == da.from_array(image, chunks=block).chunks
    with dask.config.set(scheduler="threads", num_workers=workers):
        np.testing.assert_array_equal(lazy.compute(), whole)


@pytest.mark.parametrize("quality", ["default", "fast"])
@pytest.mark.parametrize("kind", ["uint16", "float32"])
def test_the_shipped_qualities_have_the_bits_of_the_whole_at_several_scales(quality, kind):
    image = image_of((180, 230), kind)
    sigma = 0.12 * (1.0 if kind == "float32" else 65535)
    whole = hp.denoise(image, sigma, quality=quality)
    lazy = hp.denoise(da.from_array(image, chunks=(70, 100)), sigma, quality=quality)
    np.testing.assert_array_equal(lazy.compute(), whole)
    shape, prior = image.shape, PRIORS[PRESETS[quality].prior]
    assert len(Pipeline(prior, shape).scales) > 1
    alone = Pipeline(prior, shape, most_scales=1).denoise((image * (0.12 / sigma)).astype(np.float32), 0.12)
    difference = alone * (sigma / 0.12) - whole
    assert np.nanstd(difference) > 0.01 * sigma  # the others do matter


def test_colours_have_the_bits_of_the_whole():
    """The brightness has to be right wherever the differences look at it."""
    image = image_of((3, 90, 130), "float32")
    whole = hp.denoise(image, 0.1, prior=PRIORS["mixture"], channel_axis=0, white=1.0)
    lazy = hp.denoise(da.from_array(image, chunks=(3, 50, 70)), 0.1, prior=PRIORS["mixture"], channel_axis=0, white=1.0)
    np.testing.assert_array_equal(lazy.compute(), whole)


@pytest.mark.parametrize("name", PRIORS)
def test_blocks_that_take_themselves_for_the_whole_differ(name):
    image = image_of((70, 90), "uint16")
    whole = hp.denoise(image, 6000.0, prior=PRIORS[name])
    alone = hp.denoise(image[:, :40], 6000.0, prior=PRIORS[name])
    assert not np.array_equal(alone, whole[:, :40])


@pytest.mark.parametrize("chunks", [(3, 40, 50), (1, 3, 40, 40)])
def test_channels_and_planes(chunks):
    shape, axis = ((3, 70, 90), 0) if len(chunks) == 3 else ((2, 3, 70, 90), 1)
    image = image_of(shape, "float32")
    whole = hp.denoise(image, 0.1, prior=PRIOR, steps=1, channel_axis=axis)
    lazy = hp.denoise(da.from_array(image, chunks=chunks), 0.1, prior=PRIOR, steps=1, channel_axis=axis)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), whole)


def test_maps_of_noise_levels_may_be_lazy_too():
    image = image_of((70, 90), "float32")
    levels = np.random.default_rng(1).uniform(0.05, 0.2, image.shape).astype(np.float32)
    whole = hp.denoise(image, levels, prior=PRIOR, steps=1)
    for sigma in (levels, da.from_array(levels, chunks=33)):
        lazy = hp.denoise(da.from_array(image, chunks=(40, 90)), sigma, prior=PRIOR, steps=1)
        np.testing.assert_array_equal(lazy.compute(scheduler="sync"), whole)


@pytest.mark.parametrize("chunks", [(1, 100, 300), (4, 300, 120)])
def test_channels_in_blocks_of_their_own_have_their_own_noise(chunks):
    rng = np.random.default_rng(6)
    levels = np.array([400.0, 1600.0, 200.0, 800.0, 3000.0])  # not three or four, which are colours
    image = rng.normal(20000, levels[:, None, None], (5, 300, 300)).astype(np.uint16)
    given = {"prior": PRIOR, "steps": 1, "channel_axis": 0, "white": 65535}
    lazy = da.from_array(image, chunks=chunks)
    np.testing.assert_array_equal(
        hp.denoise(lazy, levels, **given).compute(scheduler="sync"), hp.denoise(image, levels, **given)
    )
    found = hp.estimate_noise(lazy, channel_axis=0, white=65535).sigma[:, 0, 0]
    np.testing.assert_allclose(found, levels, rtol=0.1)
    np.testing.assert_array_equal(
        hp.denoise(lazy, **given).compute(scheduler="sync"), hp.denoise(image, found, **given)
    )


@pytest.mark.parametrize("in_colour", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_hot_pixels_are_filled_in_as_in_the_whole_image(dtype, in_colour):
    rng = np.random.default_rng(7)
    shape = (3, 150, 170) if in_colour else (2, 150, 170)
    image = rng.normal(100, 8, shape).astype(dtype)
    image[0, ::37, ::41] = image[1, 63:65, 64] = 255  # at the edges of blocks, too, and some that are not alone
    if dtype == np.float32:
        image[0, 70:90, 70:90] = np.nan
    options = {"quality": "fast", "channel_axis": 0 if in_colour else None, "white": 255.0}
    whole = hp.denoise(image, 8.0, **options)
    blocks = hp.denoise(da.from_array(image, chunks=(shape[0], 64, 64)), 8.0, **options)
    np.testing.assert_array_equal(blocks.compute(), whole)
    kept = hp.denoise(image, 8.0, keep_outliers=True, **options)
    assert abs(float(kept[0, 37, 41]) - float(whole[0, 37, 41])) > 8.0


def test_nothing_is_computed_before_it_is_asked_for():
    def read(_):
        raise AssertionError("read too early")

    image = da.zeros((300, 300), chunks=100, dtype=np.uint8).map_blocks(
        read, dtype=np.uint8, meta=np.empty((0, 0), np.uint8)
    )
    lazy = hp.denoise(image, 10, prior=PRIOR)
    with pytest.raises(AssertionError, match="too early"):
        lazy.compute(scheduler="sync")


def test_the_noise_is_found_once_from_squares_whatever_the_blocks():
    rng = np.random.default_rng(3)
    ramp = np.linspace(60, 180, 600)[:, None] + np.zeros((600, 500))
    image = np.clip(ramp + rng.normal(0, 8, ramp.shape), 0, 255).astype(np.uint8)
    reports = [hp.estimate_noise(da.from_array(image, chunks=c)) for c in (600, 128)]
    assert reports[0].sigma.flat[0] == reports[1].sigma.flat[0]
    assert reports[0].sigma.shape == image.shape
    assert reports[0].sigma.flat[0] == pytest.approx(8.0, rel=0.05)
    first, second = (hp.denoise(da.from_array(image, chunks=c), prior=PRIOR, steps=1).compute() for c in (600, 128))
    np.testing.assert_array_equal(first, second)
    known = hp.denoise(image, reports[0].sigma.flat[0], prior=PRIOR, steps=1)
    np.testing.assert_array_equal(first, known)


def test_weak_noise_is_looked_at_by_the_finer_prior_as_in_memory():
    clean = data.gravel()[-200:, -240:] / 255.0
    noisy = (clean + np.random.default_rng(1).normal(0, 5 / 255, clean.shape)).astype(np.float32)
    known = {"noise": "constant", "prior": PRIOR, "steps": 1, "white": 1.0}
    whole, lazy = (hp.denoise(image, **known) for image in (noisy, da.from_array(noisy, chunks=128)))
    np.testing.assert_array_equal(lazy.compute(), whole)
    level, by_filters = (hp.estimate_sigma(noisy, prior=prior, white=1.0).sigma for prior in (None, "patch7"))
    assert level < 0.95 * by_filters


@pytest.mark.parametrize("picture", [data.camera, data.astronaut])
def test_where_no_noise_is_found_no_block_changes_unless_it_is_to_be_smoothed(picture):
    image = picture()[100:300, 100:300]
    axis = -1 if image.ndim > 2 else None
    lazy = da.from_array(image, chunks=(128, 90, 3)[: image.ndim])
    assert hp.estimate_noise(image, channel_axis=axis).is_none
    assert hp.estimate_noise(lazy, channel_axis=axis).is_none
    known = {"channel_axis": axis, "keep_outliers": True, "quality": "fast"}
    np.testing.assert_array_equal(hp.denoise(lazy, **known).compute(), image)
    smooth = hp.denoise(lazy, strength=2.0, **known).compute()
    np.testing.assert_allclose(smooth, hp.denoise(image, strength=2.0, **known), atol=1)  # a rounding
    assert np.any(smooth != image)


@pytest.mark.parametrize("kind", ["uint16", "float32"])
def test_images_far_from_filling_their_type_have_the_scale_that_is_likely(kind):
    rng = np.random.default_rng(4)
    ramp = 300.0 + 40.0 * np.sin(np.linspace(0, 9, 200))[:, None] * np.cos(np.linspace(0, 7, 230))
    image = (ramp + rng.normal(0, 4, ramp.shape)).astype(kind)
    whole = hp.denoise(image, 4, prior=PRIOR, steps=1)
    lazy = hp.denoise(da.from_array(image, chunks=90), 4, prior=PRIOR, steps=1).compute()
    np.testing.assert_array_equal(lazy, whole)
    by_type = {"uint16": 65535, "float32": 1000}[kind]
    assert not np.array_equal(hp.denoise(image, 4, prior=PRIOR, steps=1, white=by_type), whole)


LAZY = da.zeros((64, 64), chunks=32, dtype=np.uint8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 2}, "steps is 2; expected None"),
        ({"quality": "best"}, "at quality 'fast' or 'default'"),
        ({"prior": "wavelet-density"}, "take one on patches"),
        ({"noise": "map", "sigma": None}, "give sigma as a map"),
        ({"sigma": da.ones((3, 3))}, "expected a map"),
    ],
)
def test_what_is_not_local_is_refused_in_one_line(options, message):
    with pytest.raises(InvalidInputError, match=message):
        hp.denoise(LAZY, **({"sigma": 10} | options)).compute()


def test_more_refusals():
    with pytest.raises(InvalidInputError, match="compute a crop of it, or take hp"):
        hp.estimate_sigma(LAZY)
    with pytest.raises(InvalidInputError, match="colours belong together"):
        hp.denoise(da.zeros((3, 64, 64), chunks=(1, 32, 32)), 0.1, channel_axis=0)
    with pytest.raises(InvalidInputError, match="complex"):
        hp.denoise(da.zeros((64, 64), dtype=complex), 0.1)
