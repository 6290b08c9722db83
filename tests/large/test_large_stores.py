"""Stores on disk: the pixels of `hp.denoise`, everything else as it was, resumed with the same bits, or one line."""

import errno
import json
import os
import re
import shutil
import sys
import time
import warnings
from io import StringIO
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import tifffile
import zarr

import heatprior as hp
from heatprior.cli import main
from heatprior.cli.large import Bar
from heatprior.errors import ImageFileError, OutputFileError
from heatprior.large import files
from heatprior.large.files import Settings, denoise_store
from heatprior.large.pyramid import shrunk

SIGMA = 900.0


def pixels(shape, rng, dtype=np.uint16):
    return np.clip(rng.normal(20000, 2000, shape), 0, 65535).astype(dtype)


def ome_zarr(path, rng, *, zarr_format=3, shards=None, shape=(2, 2, 3, 90, 110)):
    """TCZYX with two levels, as a microscope's software writes it."""
    group = zarr.create_group(path, zarr_format=zarr_format)
    level = pixels(shape, rng)
    small = (*shape[:-2], 45, 55)
    keywords = {"dimension_names": list("tczyx")} if zarr_format == 3 else {}
    first = group.create_array(
        "0", shape=shape, dtype="uint16", chunks=(1, 1, 1, 32, 32), shards=shards, attributes={"k": 1}, **keywords
    )
    first[...] = level
    group.create_array("1", shape=small, dtype="uint16", chunks=(1, 1, 1, 32, 32), **keywords)
    axes = [{"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"}] + [
        {"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"
    ]
    datasets = [
        {"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 0.5, s, s]}]}
        for n, s in enumerate((0.108, 0.216))
    ]
    ome = {"multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets, "name": "cells"}]}
    ome["omero"] = {"channels": [{"label": "DAPI", "color": "0000FF"}, {"label": "GFP", "color": "00FF00"}]}
    group.attrs.update({"ome": {"version": "0.5", **ome}} if zarr_format == 3 else ome)
    labels = group.create_group("labels")
    labels.create_array("mask", shape=(9, 9), dtype="uint8")[...] = 7
    return level


def everything_but_chunks(path):
    names = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.name in names}


def by_planes(noisy, prior, sigma=SIGMA):
    return hp.denoise(noisy, sigma, prior=prior, method="eb")


@pytest.mark.parametrize(("zarr_format", "shards"), [(2, None), (3, None), (3, (1, 1, 3, 64, 64))])
def test_an_ome_zarr_keeps_all_but_its_noise(tmp_path, prior, rng, zarr_format, shards, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    monkeypatch.setattr(files, "WIDEST", 64)
    source, target = tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr"
    noisy = ome_zarr(source, rng, zarr_format=zarr_format, shards=shards)
    told = []
    done = denoise_store(source, target, Settings(prior, "eb", SIGMA), told=lambda *pair: told.append(pair))
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == done.blocks > 10
    clean = zarr.open_group(target, mode="r")
    np.testing.assert_array_equal(clean["0"][...], by_planes(noisy, prior))
    np.testing.assert_array_equal(clean["1"][0, 0, 0], shrunk(clean["0"][0, 0, 0], (2, 2), (45, 55)))
    assert (clean["labels/mask"][...] == 7).all()
    assert everything_but_chunks(source) == everything_but_chunks(target)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a.ome.zarr", "b.ome.zarr", "small.safetensors"]


def test_a_run_goes_on_where_it_was_killed_with_the_same_bits(tmp_path, prior, rng, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    source, target, other = (tmp_path / name for name in ("a.zarr", "b.zarr", "c.zarr"))
    ome_zarr(source, rng)
    settings = Settings(prior, "eb", SIGMA)
    denoise_store(source, other, settings)

    def kill(done, _):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        denoise_store(source, target, settings, told=kill)
    assert not target.exists()
    journal = tmp_path / ".b.zarr-heatprior.journal"
    lines = journal.read_text().count("\n")
    with journal.open("a") as file:
        file.write("0 9")  # a line that was cut off: that block was not done
    written = []
    true = files.write_block
    monkeypatch.setattr(files, "write_block", lambda *a: (written.append(a), true(*a)))
    done = denoise_store(source, target, settings)
    assert lines == 2 + 7  # what the run is, its full scale and noise, and blocks
    assert done.found == 7
    assert len(written) == done.blocks - 7
    for level in ("0", "1"):
        one, two = (zarr.open_group(path, mode="r")[level][...] for path in (target, other))
        np.testing.assert_array_equal(one, two)
    assert not journal.exists()


def test_other_settings_begin_anew(tmp_path, prior, rng, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    noisy = ome_zarr(source, rng)

    def stop(done, _):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        denoise_store(source, target, Settings(prior, "eb", 50.0), told=stop)
    assert denoise_store(source, target, Settings(prior, "eb", SIGMA)).found == 0
    np.testing.assert_array_equal(zarr.open_group(target, mode="r")["0"][...], by_planes(noisy, prior))


def test_plain_arrays_and_groups(tmp_path, prior, rng):
    noisy = pixels((70, 90), rng)
    array = zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(33, 40))
    array[...] = noisy
    array.attrs["camera"] = "x"
    denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(prior, "eb", SIGMA))
    clean = zarr.open_array(tmp_path / "b.zarr", mode="r")
    np.testing.assert_array_equal(clean[...], by_planes(noisy, prior))
    assert clean.attrs["camera"] == "x"
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("raw/one", shape=noisy.shape, dtype=noisy.dtype)[...] = noisy
    group.create_array("times", shape=(5,), dtype="float64")[...] = np.arange(5)
    denoise_store(tmp_path / "g.zarr", tmp_path / "h.zarr", Settings(prior, "eb", SIGMA))
    clean = zarr.open_group(tmp_path / "h.zarr", mode="r")
    np.testing.assert_array_equal(clean["raw/one"][...], by_planes(noisy, prior))
    np.testing.assert_array_equal(clean["times"][...], np.arange(5))


@pytest.fixture(params=[("ZYX", (3, 80, 700)), ("TZCYX", (2, 2, 3, 80, 700))], ids=lambda param: param[0])
def from_ome_tiff(request, tmp_path, prior, rng):
    """An OME-TIFF as microscopes write it, denoised into an OME-Zarr: its axes, in order, and what is to be in it."""
    axes, shape = request.param
    noisy = pixels(shape, rng)
    metadata = {"axes": axes, "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.1}
    metadata |= {"PhysicalSizeYUnit": "µm", "PhysicalSizeZ": 0.5, "PhysicalSizeZUnit": "µm"}
    if "C" in axes:
        metadata["Channel"] = {"Name": ["a", "b", "c"]}
    tifffile.imwrite(tmp_path / "a.ome.tif", noisy, metadata=metadata, tile=(64, 64), photometric="minisblack")
    target = tmp_path / "b.ome.zarr"
    assert main(["denoise", str(tmp_path / "a.ome.tif"), "-o", str(target), "--sigma", "900", "--method", "eb",
                 "--prior", prior]) == 0  # fmt: skip
    order = sorted(axes.lower(), key="tczyx".index)
    return target, order, by_planes(np.transpose(noisy, [axes.lower().index(axis) for axis in order]), prior)


def test_an_ome_tiff_becomes_an_ome_zarr_that_ome_zarr_opens_with_the_right_scale(from_ome_tiff):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    target, order, clean = from_ome_tiff
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (node,) = list(Reader(parse_url(target))())
    assert [axis["name"] for axis in node.metadata["axes"]] == order
    np.testing.assert_array_equal(np.asarray(node.data[0]), clean)
    assert node.data[1].shape[-2:] == (40, 350)
    scales = [level[0]["scale"] for level in node.metadata["coordinateTransformations"]]
    assert scales[0][-3:] == [0.5, 0.1, 0.1]
    assert scales[1][-3:] == [0.5, 0.2, 0.2]
    assert {axis["name"]: axis.get("unit") for axis in node.metadata["axes"]}["z"] == "micrometer"


def test_it_is_what_the_specification_asks_for(from_ome_tiff):
    models = pytest.importorskip("ome_zarr_models", reason="needs ome-zarr-models, which later ome-zarr brings")
    omero = pytest.importorskip("ome_zarr_models.v04.omero").Omero
    target, order, _ = from_ome_tiff
    group = zarr.open_group(target, mode="r")
    models.open_ome_zarr(group)  # refuses what is not valid
    if "c" in order:
        window = omero.model_validate(group.attrs["ome"]["omero"]).channels[0].window
        assert (window.min, window.max) == (0, 65535)
        assert 10000 < window.start < window.end < 30000


@pytest.mark.filterwarnings("ignore")  # of napari itself
def test_napari_opens_it_with_the_right_scale(from_ome_tiff):
    reader = pytest.importorskip("napari_ome_zarr._reader", reason="needs napari-ome-zarr")
    target, order, clean = from_ome_tiff
    ((levels, about, kind),) = reader.napari_get_reader(str(target))(str(target))
    assert kind == "image"
    np.testing.assert_array_equal(np.asarray(levels[0]), clean)
    if "c" in order:
        assert about["channel_axis"] == 1
        assert [name.rpartition(": ")[2] for name in about["name"]] == ["a", "b", "c"]
    scale = about["scale"] if "scale" in about else np.diag(about["affine"].affine_matrix)[:-1]
    np.testing.assert_allclose(scale[-3:], [0.5, 0.1, 0.1])


def test_several_scales_are_those_of_a_dask_array(tmp_path, prior, rng, capsys, monkeypatch):
    monkeypatch.setattr(files, "AREA", 2**11)
    monkeypatch.setattr(files, "WIDEST", 64)
    noisy = pixels((150, 170), rng)
    zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(33, 40))[...] = noisy
    assert main(["denoise", str(tmp_path / "a.zarr"), "-o", str(tmp_path / "b.zarr"), "--sigma", "900", "--scales", "3",
                 "--prior", prior]) == 0  # fmt: skip
    assert "at 3 scales" in capsys.readouterr().out
    lazy = hp.denoise(da.from_array(noisy, chunks=70), SIGMA, prior=prior, scales=3)
    clean = zarr.open_array(tmp_path / "b.zarr", mode="r")[...]
    np.testing.assert_array_equal(clean, lazy.compute())
    assert not np.array_equal(clean, hp.denoise(noisy, SIGMA, prior=prior, scales=1))


def test_the_noise_is_estimated_for_every_channel(tmp_path, prior, rng):
    noisy = np.stack([rng.normal(20000, level, (300, 300)) for level in (400, 1600)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.ome.tif", noisy, metadata={"axes": "CYX"}, photometric="minisblack")
    done = denoise_store(tmp_path / "a.ome.tif", tmp_path / "b.ome.zarr", Settings(prior, "eb"))
    assert done.sigmas["0"] == pytest.approx([400, 1600], rel=0.05)


@pytest.mark.parametrize("sigma", [None, 6.0])
def test_full_scale_is_found_where_an_image_is_far_from_filling_its_type(tmp_path, prior, rng, sigma):
    light = 400 + 90 * np.sin(np.linspace(0, 9, 200))[:, None] * np.cos(np.linspace(0, 7, 240))
    noisy = (light + rng.normal(0, 6.0, light.shape)).astype(np.uint16)
    zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(64, 64))[...] = noisy
    done = denoise_store(tmp_path / "a.zarr", tmp_path / "b.zarr", Settings(prior, "eb", sigma))
    (found,) = done.sigmas[""]
    assert found == pytest.approx(6.0, rel=0.1)
    clean = zarr.open_array(tmp_path / "b.zarr", mode="r")[...]
    if sigma is not None:
        np.testing.assert_array_equal(clean, by_planes(noisy, prior, sigma))
    by_type = hp.denoise(noisy, found, prior=prior, method="eb", white=65535)
    assert np.std(clean - light) < 0.8 * np.std(by_type - light)


def one_line(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return code, said


def test_what_cannot_be_done_is_one_line_and_nothing_is_lost(tmp_path, prior, rng, capsys, monkeypatch):
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    ome_zarr(source, rng)
    usual = ["denoise", source, "-o", target, "--sigma", SIGMA, "--method", "eb", "--prior", prior]

    for reason in (errno.ENOSPC, errno.EROFS, errno.EACCES):  # disk full, and stores that cannot be written

        def refuse(*_, reason=reason):
            raise OSError(reason, os.strerror(reason))

        with monkeypatch.context() as patch:
            patch.setattr(zarr.Array, "__setitem__", refuse)
            code, said = one_line(capsys, *usual)
        assert code == 2
        assert f"{os.strerror(reason)}; what is done is kept" in said
        assert not target.exists()

    chunk = next(p for p in (source / "0" / "c").rglob("*") if p.is_file())
    whole = chunk.read_bytes()
    chunk.write_bytes(b"damaged")
    code, said = one_line(capsys, *usual)
    assert code == 2
    assert "cannot read [" in said
    assert "restore that chunk" in said
    chunk.write_bytes(whole)

    about = source / "zarr.json"
    text = about.read_text()
    metadata = json.loads(text)
    metadata["attributes"]["ome"]["multiscales"][0]["axes"].reverse()
    about.write_text(json.dumps(metadata))
    code, said = one_line(capsys, *usual)
    assert "expected y and x last" in said
    about.write_text(text)

    code, said = one_line(capsys, *usual[:3], source / "inside.zarr")
    assert "never replaced" in said
    code, said = one_line(capsys, *usual[:3], tmp_path / "nowhere" / "b.zarr")
    assert "does not exist" in said
    with monkeypatch.context() as patch:  # what root may not, and what others may not
        patch.setattr(os, "access", lambda *_: False)
        code, said = one_line(capsys, *usual)
        assert code == 2
        assert "is not writable; choose another" in said
    code, said = one_line(capsys, *usual[:3], "/proc/b.zarr", *usual[4:])
    assert code == 2
    assert "cannot write" in said
    code, said = one_line(capsys, *usual, "--scales", 9)
    assert code == 2
    assert "for blocks expected 1 to 4" in said
    code, said = one_line(capsys, *usual, "--scheduler", "tcp://127.0.0.1:9", "--workers", 2)
    assert "give one of them" in said
    assert main([str(a) for a in usual]) == 0  # what failed before is gone on with
    code, said = one_line(capsys, *usual)
    assert "exists already" in said


def test_progress_says_how_fast_it_goes_and_how_long_it_takes_still(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Bar() as bar:
        bar.told(300, 1000)  # by an earlier run
        time.sleep(0.2)
        bar.told(310, 1000)
        said = sys.stderr.getvalue()
    assert re.search(r"31 %\|.*310/1000 blocks, +[\d.]+ blocks/s, \d\d:\d\d to go", said)
    rate = float(re.search(r"([\d.]+) blocks/s", said).group(1))
    assert rate < 60  # of these ten, not of those that were done before


def test_two_runs_do_not_write_the_same_output(tmp_path, prior, rng):
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    ome_zarr(source, rng)
    settings = Settings(prior, "eb", SIGMA)

    def meanwhile(done, _):
        if done == 0:
            with pytest.raises(OutputFileError, match="another run"):
                denoise_store(source, target, settings)

    denoise_store(source, target, settings, told=meanwhile)
    shutil.rmtree(target)


def test_a_plate_asks_for_one_of_its_images(tmp_path, prior):
    zarr.create_group(tmp_path / "p.zarr", attributes={"ome": {"version": "0.5", "plate": {}}})
    with pytest.raises(ImageFileError, match="holds a plate; give one image"):
        denoise_store(tmp_path / "p.zarr", Path(tmp_path / "q.zarr"), Settings(prior))


def test_means_of_odd_shapes_and_gaps():
    values = np.array([[1, 2, 4], [3, 6, 5], [8, 9, 7]], np.uint8)
    np.testing.assert_array_equal(shrunk(values, (2, 2), (2, 2)), [[3, 4], [8, 7]])
    floats = np.array([[np.nan, 2.0], [np.nan, 4.0]], np.float32)
    np.testing.assert_array_equal(shrunk(floats, (2, 2), (1, 1)), [[3.0]])
