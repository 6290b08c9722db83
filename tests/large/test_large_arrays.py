"""`hp.denoise` of a dask array: the same bits as of the whole array, whatever the blocks and however many workers."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heatprior as hp
from heatprior.errors import InvalidInputError
from heatprior.priors import mixture_step, patch_step
from heatprior.priors.handmade import dct_prior

PRIOR = dct_prior(3)
PRIORS = {"dct": PRIOR, **{name: hp.load(name) for name in ("patch7", "fast7", "mixture", "tuned")}}
BLOCKS = (17, 40, 64, 97, 250)


@pytest.fixture(scope="module", autouse=True)
def small_cells():
    """Cells of a few columns, so that a small image has several: the whole and the blocks see the same ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture_step, "TILE", 24)
        patch.setattr(patch_step, "APART", 16)
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
    """A prior, a method, an image and the shape of its blocks: blocks are larger for the priors that are slow."""
    name, kind = draw(st.sampled_from(list(PRIORS))), draw(st.sampled_from(["uint8", "uint16", "float32"]))
    least = 31 if kind == "float32" else PRIORS[name].patch_shape[0]
    rows, columns = draw(st.tuples(st.integers(least, 80), st.integers(max(least, 51), 110)))
    sides = BLOCKS if name == "dct" else BLOCKS[1:]
    block = draw(st.tuples(st.sampled_from(sides), st.sampled_from(sides)))
    return PRIORS[name], draw(st.sampled_from(["eb", "hqs"])), image_of((rows, columns), kind), block


@given(case=cases(), workers=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_blocks_have_the_bits_of_the_whole(case, workers):
    prior, method, image, block = case
    sigma = 0.1 * (1.0 if image.dtype.kind == "f" else np.iinfo(image.dtype).max)
    whole = hp.denoise(image, sigma, prior=prior, method=method, scales=1)
    lazy = hp.denoise(da.from_array(image, chunks=block), sigma, prior=prior, method=method)
    assert lazy.chunks == da.from_array(image, chunks=block).chunks
    with dask.config.set(scheduler="threads", num_workers=workers):
        np.testing.assert_array_equal(lazy.compute(), whole)


@given(case=cases(), scales=st.integers(2, 4), workers=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_at_several_scales_the_bits_are_the_same_whatever_the_blocks(case, scales, workers):
    prior, method, image, block = case
    sigma = 0.1 * (1.0 if image.dtype.kind == "f" else np.iinfo(image.dtype).max)
    whole, lazy = (
        hp.denoise(da.from_array(image, chunks=chunks), sigma, prior=prior, method=method, scales=scales)
        for chunks in (-1, block)
    )
    with dask.config.set(scheduler="threads", num_workers=workers):
        np.testing.assert_array_equal(lazy.compute(), whole.compute())


def test_several_scales_are_close_to_those_in_memory():
    rng = np.random.default_rng(5)
    clean = 0.5 + 0.2 * np.sin(np.linspace(0, 7, 180))[:, None] * np.cos(np.linspace(0, 5, 230))
    image = (clean + rng.normal(0, 0.12, clean.shape)).astype(np.float32)
    single, whole = (hp.denoise(image, 0.12, quality="fast", scales=scales) for scales in (1, 3))
    lazy = hp.denoise(da.from_array(image, chunks=100), 0.12, quality="fast", scales=3).compute()
    assert np.std(lazy - whole) < 0.3 * np.std(single - whole)
    assert np.std(lazy - clean) < 1.02 * np.std(whole - clean)


@pytest.mark.parametrize("name", PRIORS)
def test_blocks_that_take_themselves_for_the_whole_differ(name):
    image = image_of((70, 90), "uint16")
    whole = hp.denoise(image, 6000.0, prior=PRIORS[name], scales=1)
    alone = hp.denoise(image[:, :40], 6000.0, prior=PRIORS[name], scales=1)
    assert not np.array_equal(alone, whole[:, :40])


@pytest.mark.parametrize("chunks", [(3, 40, 50), (1, 3, 40, 40)])
def test_channels_and_planes(chunks):
    shape, axis = ((3, 70, 90), 0) if len(chunks) == 3 else ((2, 3, 70, 90), 1)
    image = image_of(shape, "float32")
    whole = hp.denoise(image, 0.1, prior=PRIOR, method="eb", channel_axis=axis)
    lazy = hp.denoise(da.from_array(image, chunks=chunks), 0.1, prior=PRIOR, method="eb", channel_axis=axis)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), whole)


def test_maps_of_noise_levels_may_be_lazy_too():
    image = image_of((70, 90), "float32")
    levels = np.random.default_rng(1).uniform(0.05, 0.2, image.shape).astype(np.float32)
    whole = hp.denoise(image, levels, prior=PRIOR, method="eb")
    for sigma in (levels, da.from_array(levels, chunks=33)):
        lazy = hp.denoise(da.from_array(image, chunks=(40, 90)), sigma, prior=PRIOR, method="eb")
        np.testing.assert_array_equal(lazy.compute(scheduler="sync"), whole)


@pytest.mark.parametrize("chunks", [(1, 100, 300), (4, 300, 120)])
def test_channels_in_blocks_of_their_own_have_their_own_noise(chunks):
    rng = np.random.default_rng(6)
    levels = np.array([400.0, 1600.0, 200.0, 800.0, 3000.0])  # not three or four, which are colours
    image = rng.normal(20000, levels[:, None, None], (5, 300, 300)).astype(np.uint16)
    given = {"prior": PRIOR, "method": "eb", "channel_axis": 0, "white": 65535}
    lazy = da.from_array(image, chunks=chunks)
    np.testing.assert_array_equal(
        hp.denoise(lazy, levels, **given).compute(scheduler="sync"), hp.denoise(image, levels, **given)
    )
    found = hp.estimate_noise(lazy, channel_axis=0, white=65535).sigma[:, 0, 0]
    np.testing.assert_allclose(found, levels, rtol=0.1)
    np.testing.assert_array_equal(
        hp.denoise(lazy, **given).compute(scheduler="sync"), hp.denoise(image, found, **given)
    )


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
    first, second = (hp.denoise(da.from_array(image, chunks=c), prior=PRIOR, method="eb").compute() for c in (600, 128))
    np.testing.assert_array_equal(first, second)
    known = hp.denoise(image, reports[0].sigma.flat[0], prior=PRIOR, method="eb")
    np.testing.assert_array_equal(first, known)


@pytest.mark.parametrize("kind", ["uint16", "float32"])
def test_images_far_from_filling_their_type_have_the_scale_that_is_likely(kind):
    rng = np.random.default_rng(4)
    ramp = 300.0 + 40.0 * np.sin(np.linspace(0, 9, 200))[:, None] * np.cos(np.linspace(0, 7, 230))
    image = (ramp + rng.normal(0, 4, ramp.shape)).astype(kind)
    whole = hp.denoise(image, 4, prior=PRIOR, method="eb")
    lazy = hp.denoise(da.from_array(image, chunks=90), 4, prior=PRIOR, method="eb").compute()
    np.testing.assert_array_equal(lazy, whole)
    by_type = {"uint16": 65535, "float32": 1000}[kind]
    assert not np.array_equal(hp.denoise(image, 4, prior=PRIOR, method="eb", white=by_type), whole)


LAZY = da.zeros((64, 64), chunks=32, dtype=np.uint8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": 9}, "scales is 9; for blocks expected 1 to 4"),
        ({"scales": 0}, "scales is 0; for blocks expected 1 to 4"),
        ({"adapt": True}, "adapt to a crop"),
        ({"prior": "wavelet"}, "take one on patches"),
        ({"noise": "map", "sigma": None}, "give sigma as a map"),
        ({"sigma": da.ones((3, 3))}, "expected a map"),
        ({"method": "none"}, "method is 'none'"),
    ],
)
def test_what_is_not_local_is_refused_in_one_line(options, message):
    with pytest.raises(InvalidInputError, match=message):
        hp.denoise(LAZY, **({"sigma": 10} | options)).compute()


def test_more_refusals():
    with pytest.raises(InvalidInputError, match="of a crop"):
        hp.noise_map(LAZY)
    with pytest.raises(InvalidInputError, match="which work in blocks"):
        hp.estimate_sigma(LAZY)
    with pytest.raises(InvalidInputError, match="colours belong together"):
        hp.denoise(da.zeros((3, 64, 64), chunks=(1, 32, 32)), 0.1, channel_axis=0)
    with pytest.raises(InvalidInputError, match="complex"):
        hp.denoise(da.zeros((64, 64), dtype=complex), 0.1)
