"""Stores on disk: the pixels of `hp.denoise`, everything else as it was, resumed with the same bits, or one line."""

import re
import sys
import time
from io import StringIO

import numpy as np
import pytest
import tifffile
import zarr
from skimage import data
from small_stores import SIGMA, by_planes, everything_but_chunks, ome_zarr, pixels

import heatprior as hp
from heatprior.cli.denoise import show_blocks
from heatprior.large import files
from heatprior.large.files import denoise_store
from heatprior.large.stores import shrink
from heatprior.restoration.denoising import Settings


@pytest.mark.parametrize(("zarr_format", "shards"), [(2, None), (3, None), (3, (1, 1, 3, 64, 64))])
def test_an_ome_zarr_keeps_all_but_its_noise(tmp_path, prior, rng, zarr_format, shards, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    monkeypatch.setattr(files, "WIDEST", 64)
    source, target = tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr"
    noisy = ome_zarr(source, rng, zarr_format=zarr_format, shards=shards)
    told = []
    done = denoise_store(source, target, Settings(prior=prior), SIGMA, report=lambda *pair: told.append(pair))
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == done.blocks > 10
    clean = zarr.open_group(target, mode="r")
    np.testing.assert_array_equal(clean["0"][...], by_planes(noisy, prior))
    np.testing.assert_array_equal(clean["1"][0, 0, 0], shrink(clean["0"][0, 0, 0], (2, 2), (45, 55)))
    assert (clean["labels/mask"][...] == 7).all()
    assert everything_but_chunks(source) == everything_but_chunks(target)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a.ome.zarr", "b.ome.zarr", "small.safetensors"]


def test_a_run_goes_on_where_it_was_killed_with_the_same_bits(tmp_path, prior, rng, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    source, target, other = (tmp_path / name for name in ("a.zarr", "b.zarr", "c.zarr"))
    ome_zarr(source, rng)
    settings = Settings(prior=prior)
    denoise_store(source, other, settings, SIGMA)

    def kill(done, _):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        denoise_store(source, target, settings, SIGMA, report=kill)
    assert not target.exists()
    journal = tmp_path / ".b.zarr-heatprior" / "journal"
    lines = journal.read_text().count("\n")
    with journal.open("a") as file:
        file.write("0 9")  # a line that was cut off: that block was not done
    written = []
    true = files.write_block
    monkeypatch.setattr(files, "write_block", lambda *a: (written.append(a), true(*a)))
    done = denoise_store(source, target, settings, SIGMA)
    assert lines == 2 + 7  # what the run is, its full scale and noise, and blocks
    assert done.found == 7
    assert len(written) == done.blocks - 7
    for level in ("0", "1"):
        one, two = (zarr.open_group(path, mode="r")[level][...] for path in (target, other))
        np.testing.assert_array_equal(one, two)
    assert not journal.parent.exists()


def test_other_settings_begin_anew(tmp_path, prior, rng, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    noisy = ome_zarr(source, rng)

    def stop(done, _):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        denoise_store(source, target, Settings(prior=prior), 50.0, report=stop)
    assert denoise_store(source, target, Settings(prior=prior), SIGMA).found == 0
    np.testing.assert_array_equal(zarr.open_group(target, mode="r")["0"][...], by_planes(noisy, prior))


def test_plain_arrays_and_groups(tmp_path, prior, rng):
    noisy = pixels((70, 90), rng)
    array = zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(33, 40))
    array[...] = noisy
    array.attrs["camera"] = "x"
    denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(prior=prior), SIGMA)
    clean = zarr.open_array(tmp_path / "b.zarr", mode="r")
    np.testing.assert_array_equal(clean[...], by_planes(noisy, prior))
    assert clean.attrs["camera"] == "x"
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("raw/one", shape=noisy.shape, dtype=noisy.dtype)[...] = noisy
    group.create_array("times", shape=(5,), dtype="float64")[...] = np.arange(5)
    denoise_store(tmp_path / "g.zarr", tmp_path / "h.zarr", Settings(prior=prior), SIGMA)
    clean = zarr.open_group(tmp_path / "h.zarr", mode="r")
    np.testing.assert_array_equal(clean["raw/one"][...], by_planes(noisy, prior))
    np.testing.assert_array_equal(clean["times"][...], np.arange(5))


@pytest.mark.parametrize("quality", ["default", "fast"])
def test_a_store_has_the_bits_of_the_array_at_several_scales(tmp_path, rng, monkeypatch, quality):
    monkeypatch.setattr(files, "AREA", 2**12)
    monkeypatch.setattr(files, "WIDEST", 80)
    noisy = pixels((150, 170), rng)
    zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(33, 40))[...] = noisy
    denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(quality=quality), SIGMA)
    clean, whole = zarr.open_array(tmp_path / "b.zarr", mode="r")[...], hp.denoise(noisy, SIGMA, quality=quality)
    np.testing.assert_array_equal(clean, whole)
    assert not np.array_equal(whole, hp.denoise(noisy, SIGMA, quality=quality, steps=1))


def test_the_noise_is_estimated_for_every_channel(tmp_path, prior, rng):
    noisy = np.stack([rng.normal(20000, level, (300, 300)) for level in (400, 1600)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.ome.tif", noisy, metadata={"axes": "CYX"}, photometric="minisblack")
    done = denoise_store(tmp_path / "a.ome.tif", tmp_path / "b.ome.zarr", Settings(prior=prior))
    assert done.sigmas["0"] == pytest.approx([400, 1600], rel=0.05)


def test_a_store_in_which_no_noise_is_found_stays_as_it_is(tmp_path, prior):
    image = data.camera()[100:300, 100:300]
    zarr.create_array(tmp_path / "a.zarr", shape=image.shape, dtype=image.dtype, chunks=(64, 64))[...] = image
    done = denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(prior=prior, keep_outliers=True))
    assert done.sigmas[""] == [0.0]
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "b.zarr", mode="r")[...], image)


@pytest.mark.parametrize("sigma", [None, 6.0])
def test_full_scale_is_found_where_an_image_is_far_from_filling_its_type(tmp_path, prior, rng, sigma):
    light = 400 + 90 * np.sin(np.linspace(0, 9, 200))[:, None] * np.cos(np.linspace(0, 7, 240))
    noisy = (light + rng.normal(0, 6.0, light.shape)).astype(np.uint16)
    zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(64, 64))[...] = noisy
    done = denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(prior=prior), sigma)
    (found,) = done.sigmas[""]
    assert found == pytest.approx(6.0, rel=0.1)
    clean = zarr.open_array(tmp_path / "b.zarr", mode="r")[...]
    if sigma is not None:
        np.testing.assert_array_equal(clean, by_planes(noisy, prior, sigma))
    by_type = hp.denoise(noisy, found, prior=prior, white=65535)
    assert np.std(clean - light) < 0.8 * np.std(by_type - light)


def test_progress_says_how_fast_it_goes_and_how_long_it_takes_still(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with show_blocks() as report:
        report(300, 1000)  # by an earlier run
        time.sleep(0.2)
        report(310, 1000)
        said = sys.stderr.getvalue()
    assert re.search(r"31 %\|.*310/1000 blocks, +[\d.]+ blocks/s, \d\d:\d\d to go", said)
    rate = float(re.search(r"([\d.]+) blocks/s", said).group(1))
    assert rate < 60  # of these ten, not of those that were done before


def test_means_of_odd_shapes_and_gaps():
    values = np.array([[1, 2, 4], [3, 6, 5], [8, 9, 7]], np.uint8)
    np.testing.assert_array_equal(shrink(values, (2, 2), (2, 2)), [[3, 4], [8, 7]])
    floats = np.array([[np.nan, 2.0], [np.nan, 4.0]], np.float32)
    np.testing.assert_array_equal(shrink(floats, (2, 2), (1, 1)), [[3.0]])
