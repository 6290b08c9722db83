"""What cannot be done with a store is one line, and nothing is lost."""

import errno
import json
import os
import shutil
from pathlib import Path

import dask.array
import pytest
import zarr
from small_stores import SIGMA, ome_zarr

import heatprior as hp
from heatprior.cli import main
from heatprior.errors import ImageFileError, InvalidInputError, OutputFileError
from heatprior.large.files import Settings, denoise_store


def one_line(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return code, said


def test_what_cannot_be_done_is_one_line_and_nothing_is_lost(tmp_path, prior, rng, capsys, monkeypatch):
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    ome_zarr(source, rng)
    usual = ["denoise", source, "-o", target, "--sigma", SIGMA, "--prior", prior]

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
    assert "lies within the input" in said
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
    with pytest.raises(InvalidInputError, match="give one of them"):
        denoise_store(source, target, Settings(prior=prior), SIGMA, scheduler="tcp://127.0.0.1:9", workers=2)
    for workers in ("many", "0", "-1", "127.0.0.1"):
        code, said = one_line(capsys, *usual, "--workers", workers)
        assert code == 2
        assert "expected a number of processes, or the address of a dask scheduler" in said
    assert main([str(a) for a in usual]) == 0  # what failed before is gone on with
    code, said = one_line(capsys, *usual)
    assert "exists already" in said


def test_two_runs_do_not_write_the_same_output(tmp_path, prior, rng):
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    ome_zarr(source, rng)
    settings = Settings(prior=prior)

    def meanwhile(done, _):
        if done == 0:
            with pytest.raises(OutputFileError, match="another run"):
                denoise_store(source, target, settings, SIGMA)

    denoise_store(source, target, settings, SIGMA, report=meanwhile)
    shutil.rmtree(target)


def test_a_plate_asks_for_one_of_its_images(tmp_path, prior):
    zarr.create_group(tmp_path / "p.zarr", attributes={"ome": {"version": "0.5", "plate": {}}})
    with pytest.raises(ImageFileError, match="holds a plate; give one image"):
        denoise_store(tmp_path / "p.zarr", Path(tmp_path / "q.zarr"), Settings(prior=prior))


def test_a_volume_that_is_a_dask_array_is_refused():
    with pytest.raises(InvalidInputError, match="leave out depth_axis"):
        hp.denoise(dask.array.zeros((12, 18, 20), dtype="float32"), 0.1, depth_axis=0)


@pytest.mark.parametrize("settings", [{"strength": 2.0}, {"noise": "constant"}])
def test_what_belongs_to_an_estimate_is_refused_beside_sigma_as_in_memory(settings):
    image = dask.array.zeros((64, 64), chunks=32)
    for given in (image, image.compute()):
        with pytest.raises(InvalidInputError, match="leave out"):
            hp.denoise(given, SIGMA, **settings)
