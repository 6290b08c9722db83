"""Volumes: what must hold when slices are denoised along three axes and blended by Stein's risk."""

import numba
import numpy as np
import pytest

import heatprior as hp
from heatprior import InvalidInputError
from heatprior.restoration import volumes
from heatprior.restoration.volumes import blend, find_gains

SHAPE = (12, 18, 20)
SIGMA = 0.1
QUICK = {"quality": "fast", "steps": 1, "white": 1.0}


def clean_volume(shape=SHAPE):
    """Smooth shades and a slanted edge."""
    z, y, x = np.meshgrid(*(np.linspace(0, 2, n) for n in shape), indexing="ij")
    return (0.5 + 0.2 * np.sin(z + y + 2 * x) + 0.2 * (x + z > 0.5 + y)).astype(np.float32)


def add_noise(clean, sigma=SIGMA, seed=0):
    return clean + np.float32(sigma) * np.random.default_rng(seed).standard_normal(clean.shape, np.float32)


def volume_of(noisy, sigma=SIGMA, **settings):
    return hp.denoise(noisy, sigma, **QUICK | {"depth_axis": 0} | settings)


def slices_of(noisy, sigma=SIGMA, **settings):
    return hp.denoise(noisy, sigma, **QUICK | settings)


def error(result, clean):
    return float(np.mean(np.square(result - clean)))


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_a_few_slices_are_independent_images(depth):
    noisy = add_noise(clean_volume((depth, 18, 20)))
    np.testing.assert_array_equal(volume_of(noisy), slices_of(noisy))


def test_slices_of_a_volume_are_not():
    noisy = add_noise(clean_volume())
    assert np.std(volume_of(noisy) - slices_of(noisy)) > 0.1 * SIGMA


def test_one_slice_of_any_axis_is_an_image():
    noisy = add_noise(clean_volume((24, 1, 28)))
    np.testing.assert_array_equal(volume_of(noisy, depth_axis=1)[:, 0], slices_of(noisy[:, 0]))


def test_a_constant_volume_stays():
    # as of an image: learnt experts are not quite symmetric
    np.testing.assert_allclose(volume_of(np.full(SHAPE, 0.7, np.float32)), 0.7, atol=5e-4)


def test_identical_slices_share_what_they_know():
    clean = np.broadcast_to(clean_volume((1, *SHAPE[1:])), SHAPE)
    noisy = add_noise(clean)
    assert error(volume_of(noisy), clean) < 0.7 * error(slices_of(noisy), clean)


def test_slices_that_have_nothing_in_common_are_left_to_themselves():
    """Never worse than slice by slice, beyond the error of the estimate; the plain mean of three axes is."""
    rng = np.random.default_rng(1)
    clean = np.stack(
        [np.roll(one, rng.integers(28), axis=1) for one in clean_volume((16, 24, 28))[rng.permutation(16)]]
    )
    clean = np.where(np.arange(16)[:, None, None] % 2 == 0, clean, 1.0 - clean)
    noisy = add_noise(clean, 0.05)
    alone = error(slices_of(noisy, 0.05), clean)
    assert error(volume_of(noisy, 0.05), clean) < 1.01 * alone
    along = [np.moveaxis(slices_of(np.moveaxis(noisy, k, 0).copy(), 0.05), 0, k) for k in range(3)]
    assert error(np.mean(along, axis=0), clean) > 1.01 * alone


def test_axes_may_be_in_any_order():
    noisy = add_noise(clean_volume())
    turned = volume_of(np.moveaxis(noisy, 0, 2), depth_axis=-1)
    np.testing.assert_array_equal(np.moveaxis(turned, 2, 0), volume_of(noisy))


def test_permuted_rows_and_columns_are_permuted_in_the_result():
    """But for what a prior of finitely many filters makes of a transposed slice, which the blend has less of."""
    noisy = add_noise(clean_volume())
    result, turned = volume_of(noisy), volume_of(noisy.swapaxes(1, 2)).swapaxes(1, 2)
    in_slices = np.std(slices_of(noisy.swapaxes(1, 2)).swapaxes(1, 2) - slices_of(noisy))
    assert np.std(turned - result) < max(in_slices, 0.05 * SIGMA)
    assert np.std(volume_of(noisy[:, ::-1]) - result) > SIGMA  # as a volume that was not turned back


def test_colours_have_their_own_axis():
    colours = np.stack([add_noise(clean_volume(), seed=k) for k in range(3)])  # (C, D, H, W)
    result = volume_of(colours, channel_axis=0, depth_axis=1)
    last = volume_of(np.moveaxis(colours, 0, -1), channel_axis=-1, depth_axis=0)
    np.testing.assert_array_equal(np.moveaxis(last, -1, 0), result)
    clean = clean_volume()
    assert error(result, clean) < error(slices_of(np.moveaxis(colours, 0, 1), channel_axis=1), clean[:, None])


def test_axes_in_front_are_independent_volumes():
    both = np.stack([add_noise(clean_volume(), seed=k) for k in (0, 1)])
    np.testing.assert_array_equal(volume_of(both, depth_axis=1)[1], volume_of(both[1]))


def test_integers_are_rounded_and_keep_their_type():
    noisy = np.clip(np.rint(255 * add_noise(clean_volume())), 0, 255).astype(np.uint8)
    result = volume_of(noisy, 25.5, white=None)
    assert result.dtype == np.uint8
    np.testing.assert_allclose(result, volume_of(noisy.astype(np.float32), 25.5, white=255.0), atol=0.51)


def test_missing_voxels_have_no_influence_and_stay_missing():
    noisy = add_noise(clean_volume())
    holes = np.zeros(SHAPE, bool)
    holes[3], holes[8:12, 5:9, 5:9] = True, True
    first, second = (volume_of(np.where(holes, value, noisy)) for value in (np.nan, np.inf))
    np.testing.assert_array_equal(np.isnan(first), holes)
    np.testing.assert_array_equal(first, second)
    masked = volume_of(np.ma.array(noisy, mask=holes))
    np.testing.assert_array_equal(masked.mask, holes)
    np.testing.assert_array_equal(masked.data[~holes], first[~holes])
    assert error(first[~holes], clean_volume()[~holes]) < 0.15 * SIGMA**2


def test_a_volume_of_which_one_slice_is_left_is_denoised():
    noisy = add_noise(clean_volume())
    noisy[1:] = np.nan
    result = volume_of(noisy)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(noisy))
    assert error(result[0], clean_volume()[0]) < 0.6 * SIGMA


def test_a_map_of_the_noise_may_vary_from_slice_to_slice():
    clean, levels = clean_volume(), np.linspace(0.02, 0.2, SHAPE[0])[:, None, None]
    sigma = np.broadcast_to(levels, SHAPE)
    noisy = (clean + levels * np.random.default_rng(0).standard_normal(SHAPE)).astype(np.float32)
    told = volume_of(noisy, sigma)
    assert error(told, clean) < error(volume_of(noisy, float(np.sqrt(np.mean(sigma**2)))), clean)
    turned = volume_of(np.moveaxis(noisy, 0, 2), np.moveaxis(sigma, 0, 2), depth_axis=2)
    np.testing.assert_array_equal(np.moveaxis(turned, 2, 0), told)


def flicker(clean, deviation=0.058, seed=3):
    """The volume as lamps show it that differ by so much from slice to slice."""
    draw = np.random.default_rng(seed).standard_normal(len(clean))
    return clean * np.exp(deviation * draw).astype(np.float32)[:, None, None]


def deviation_of_gains(gains):
    """From slice to slice, as of independent gains."""
    return float(np.std(np.diff(np.log(gains), axis=0)) / np.sqrt(2))


def test_gains_of_slices_are_found_to_a_hundredth_and_none_where_there_are_none():
    clean = clean_volume((24, 64, 64))
    uneven = flicker(clean)
    gains = find_gains(add_noise(uneven), np.array(SIGMA))
    assert deviation_of_gains(uneven[:, :1, :1] / clean[:, :1, :1]) > 0.05
    assert deviation_of_gains(uneven[:, :1, :1] / clean[:, :1, :1] / gains) < 0.01
    faded = clean * np.exp(-np.arange(24, dtype=np.float32) / 40)[:, None, None]  # bleached: neighbours hardly differ
    for even in (clean, faded, 0.02 * clean):
        np.testing.assert_array_equal(find_gains(add_noise(even), np.array(SIGMA)), np.ones((1, 1, 1)))


def grains(deep=1):
    """Two phases in voxels so many times deeper than wide."""
    phase = np.random.default_rng(0).uniform(0, 6, (3, 1, 1, 1))
    z, y, x = np.indices((12, 48, 48)) * np.array([deep, 1, 1])[:, None, None, None] / 3 + phase
    return np.where(np.sin(z) + np.sin(y + z / 2) + np.sin(x - z / 2) > 0.3, 0.8, 0.4).astype(np.float32)


@pytest.mark.parametrize("deep", [1, 3, 10])
def test_deep_voxels_are_never_worse_than_slices_by_a_twentieth_of_a_decibel(deep):
    clean = grains(deep)
    noisy = add_noise(clean)
    lost = 10 * np.log10(error(volume_of(noisy), clean) / error(slices_of(noisy), clean))
    assert lost < 0.05
    assert deep > 1 or lost < -1  # where neighbours tell a lot, much is won


def test_gains_of_slices_are_kept_and_no_edges_to_patches(monkeypatch):
    uneven = flicker(grains())
    noisy = add_noise(uneven, 0.05)
    told = error(volume_of(noisy, 0.05), uneven)
    assert told < 0.8 * error(slices_of(noisy, 0.05), uneven)
    monkeypatch.setattr(volumes, "find_gains", lambda *_: np.ones((1, 1, 1), np.float32))
    assert told < 0.95 * error(volume_of(noisy, 0.05), uneven)


def test_the_noise_is_estimated_once_for_the_volume():
    clean = clean_volume((12, 40, 40))
    noisy = add_noise(clean)
    blind = volume_of(noisy, None)
    assert error(blind, clean) < 1.1 * error(volume_of(noisy), clean)


def test_counts_are_made_white_first():
    clean = clean_volume()
    counts = np.random.default_rng(0).poisson(20 * clean).astype(np.float32)
    given = hp.PoissonGaussian(1.0, 0.0)
    result = volume_of(counts, None, white=20.0, noise=given)
    assert error(result, 20 * clean) < error(slices_of(counts, None, white=20.0, noise=given), 20 * clean)


def test_bits_do_not_depend_on_the_number_of_threads():
    noisy, before = add_noise(clean_volume()), numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        alone = volume_of(noisy)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(volume_of(noisy), alone)


def test_progress_comes_to_its_end():
    seen = []
    volume_of(add_noise(clean_volume()), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        (SHAPE, {"depth_axis": 3}, "depth_axis is 3; the image has axes 0 to 2"),
        (SHAPE, {"depth_axis": "z"}, "depth_axis is 'z'; the image has axes 0 to 2"),
        ((24, 28), {}, "leaves no rows and columns beside depth; leave out depth_axis"),
        ((24, 28, 3), {"depth_axis": 2}, "as colours have; give channel_axis=-1"),
        ((24, 28, 3), {"channel_axis": 2}, "leaves no rows and columns beside depth and channels"),
        ((9, 3, 24, 28), {"depth_axis": -3, "channel_axis": 1}, "depth_axis and channel_axis are both -3"),
        (SHAPE, {"return_error": True}, "errors are estimated for images; leave out return_error, or depth_axis"),
        (SHAPE, {"sigma": None, "noise": "map"}, "volumes have white noise or counts"),
    ],
)
def test_what_is_no_volume_is_refused_in_a_line(shape, settings, message):
    with pytest.raises(InvalidInputError) as refusal:
        volume_of(np.zeros(shape, np.float32), **settings)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_volume_of_nothing_is_refused():
    with pytest.raises(InvalidInputError, match="nothing but NaN"):
        volume_of(np.full(SHAPE, np.nan, np.float32))


def test_the_blend_is_that_of_least_error():
    """Of y itself and a constant, Stein's risk finds Wiener's weights; without its trace it does not."""
    rng = np.random.default_rng(0)
    clean = np.float32(0.5) + np.float32(0.1) * rng.standard_normal(SHAPE, np.float32)
    noisy, drawn = add_noise(clean, seed=1), np.where(rng.random(SHAPE) < 0.5, SIGMA, -SIGMA).astype(np.float32)
    flat = np.full(SHAPE, 0.5, np.float32)
    (found, _) = blend([(noisy, noisy + np.float32(0.1) * drawn), (flat, flat)], noisy, drawn)
    wiener = 0.5 * noisy + 0.5 * flat  # both have the same variance
    assert np.std(found - wiener) < 0.05 * SIGMA
    (without, _) = blend([(noisy, noisy), (flat, flat)], noisy, drawn)
    assert np.std(without - wiener) > 0.5 * SIGMA
