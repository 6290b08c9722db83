"""A store is written beside what is read, never in it or around it, and replaces nothing but a store of images."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr
from small_stores import SIGMA, by_planes, ome_zarr, pixels

from heatprior.cli import main
from heatprior.errors import ImageFileError, OutputFileError
from heatprior.files import claim, working_folder
from heatprior.large import files
from heatprior.large.files import denoise_store
from heatprior.large.stores import find_foreign, find_images
from heatprior.restoration.denoising import Settings

ROOT = Path(__file__).parents[2]
SHAPE = (1, 1, 1, 90, 110)


def tree(folder):
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def places(tmp_path, rng, prior, monkeypatch):
    """Stores within stores, images within stores, and links to both."""
    monkeypatch.chdir(tmp_path)
    ome_zarr(tmp_path / "in.zarr", rng, shape=SHAPE)
    ome_zarr(tmp_path / "up.zarr", rng, shape=SHAPE)
    shutil.copytree("in.zarr", "up.zarr/x.zarr")
    Path("raw.zarr").mkdir()
    tifffile.imwrite("raw.zarr/scan.tif", pixels((90, 110), rng))
    Path("raw.zarr/notes.txt").write_text("precious")
    ome_zarr(tmp_path / "old.zarr", rng, shape=SHAPE)
    shutil.copy(prior, "up.zarr/prior.safetensors")
    Path("link").symlink_to("in.zarr")
    Path("link.zarr").symlink_to("old.zarr")
    Path("dangling.zarr").symlink_to("nowhere.zarr")
    Path("y").mkdir()
    return tmp_path


def denoise(*arguments, prior):
    line = [*arguments, "--sigma", SIGMA, "--prior", prior, "--force"]
    return main(["denoise", *map(str, line)])


@pytest.mark.parametrize(
    ("source", "target", "word"),
    [
        ("raw.zarr/scan.tif", "raw.zarr", "contains the input"),
        ("up.zarr/x.zarr", "up.zarr", "contains the input"),
        ("in.zarr/0", "in.zarr", "contains the input"),
        ("link/0", "in.zarr", "contains the input"),
        ("in.zarr", "in.zarr", "is the input"),
        ("link", "in.zarr", "is the input"),
        ("in.zarr", "y/../in.zarr", "is the input"),
        ("in.zarr", "link/in.zarr", "lies within the input"),
        ("in.zarr", "y/../in.zarr/in2.zarr", "lies within the input"),
        ("in.zarr", "link/labels/in2.zarr", "lies within the input"),
        ("raw.zarr/scan.tif", "link.zarr", "is a link"),
        ("raw.zarr/scan.tif", "dangling.zarr", "is a link"),
        ("in.zarr", "raw.zarr", "holds something else than a zarr store"),
        ("in.zarr", "raw.zarr/scan.tif", "does not end in .zarr"),
    ],
)
def test_what_would_be_lost_is_refused_and_nothing_changes(places, prior, capsys, source, target, word):
    before = tree(places)
    assert denoise(source, "-o", target, prior=prior) == 2
    said = capsys.readouterr().err
    assert word in said
    assert said.count("\n") == 1
    assert tree(places) == before
    with pytest.raises((OutputFileError, ValueError), match=word):  # and so by the library
        denoise_store(places / source, places / target, Settings(prior=prior), SIGMA, force=True)
    assert tree(places) == before


@pytest.mark.usefixtures("places")
def test_a_prior_within_the_output_is_an_input_too():
    settings = Settings(prior="up.zarr/prior.safetensors")
    with pytest.raises(OutputFileError, match="contains the input"):
        denoise_store(Path("in.zarr"), Path("up.zarr"), settings, SIGMA, force=True)


@pytest.mark.parametrize(
    "what", ["file", "folder", "group of numbers", "metadata that is none", "store and notes", "store in store"]
)
def test_only_a_store_of_images_is_replaced(places, prior, rng, what):
    target = places / "target.zarr"
    if what == "file":
        target.write_text("precious")
    elif what == "folder":
        (target / "thesis").mkdir(parents=True)
        (target / "thesis" / "chapter.tex").write_text("precious")
    elif what == "group of numbers":
        zarr.create_group(target).create_array("losses", shape=(5,), dtype="float64")[...] = np.arange(5)
    elif what == "metadata that is none":
        target.mkdir()
        (target / "zarr.json").write_text("{}")
        (target / "precious").touch()
    elif what == "store in store":
        ome_zarr(target, rng, shape=SHAPE)
        ome_zarr(target / "another.zarr", rng, shape=SHAPE)
    else:
        ome_zarr(target, rng, shape=SHAPE)
        (target / "0" / "notes.txt").write_text("precious")
    before = tree(places)
    with pytest.raises(OutputFileError, match=r"is not replaced"):
        denoise_store(places / "in.zarr", target, Settings(prior=prior), SIGMA, force=True)
    assert tree(places) == before


@pytest.mark.parametrize(("zarr_format", "shards"), [(2, None), (3, None), (3, (1, 1, 1, 64, 64))])
def test_a_store_of_images_is_replaced_by_force_and_only_then(places, prior, rng, zarr_format, shards):
    target = places / "target.zarr"
    ome_zarr(target, rng, zarr_format=zarr_format, shards=shards, shape=SHAPE)
    assert find_foreign(target) is None
    settings = Settings(prior=prior)
    with pytest.raises(OutputFileError, match="exists already"):
        denoise_store(places / "in.zarr", target, settings, SIGMA)
    for _ in range(2):
        denoise_store(places / "in.zarr", target, settings, SIGMA, force=True)
        assert find_foreign(target) is None
        noisy = zarr.open_group(places / "in.zarr", mode="r")["0"][...]
        np.testing.assert_array_equal(zarr.open_group(target, mode="r")["0"][...], by_planes(noisy, prior))
    assert not working_folder(target).exists()


def test_an_output_through_a_link_to_a_folder_is_made_and_made_again(places, prior):
    Path("results").mkdir()
    Path("there").symlink_to("results")
    for _ in range(2):
        assert denoise("in.zarr", "-o", "there/out.zarr", prior=prior) == 0
        assert [path.name for path in Path("results").iterdir()] == ["out.zarr"]
    assert places.joinpath("results", "out.zarr", "zarr.json").is_file()


@pytest.mark.parametrize("leads_to", ["..", "../../results"])
def test_a_link_to_a_folder_around_the_store_or_around_the_output_is_not_followed_for_ever(places, prior, leads_to):
    (places / "results").mkdir()
    (places / "in.zarr" / "labels" / "link").symlink_to(leads_to)
    before = tree(places)
    with pytest.raises(ImageFileError, match="leads to a folder around"):
        denoise_store(places / "in.zarr", places / "results" / "out.zarr", Settings(prior=prior), SIGMA)
    assert tree(places) == before


def test_a_group_with_metadata_that_are_none_is_one_line(places, prior):
    source = places / "group.zarr"
    zarr.create_group(source)
    shutil.copytree("in.zarr/0", source / "0")
    (source / "diary").mkdir()
    (source / "diary" / "zarr.json").write_text("precious")
    for command in ((source, places / "out.zarr"), (places / "in.zarr", source)):  # as input and as output
        with pytest.raises((ImageFileError, OutputFileError), match=r"group\.zarr"):
            denoise_store(*command, Settings(prior=prior), SIGMA, force=True)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_has_the_name_of_the_hidden_folder_is_not_touched(places, prior, what):
    hidden = places / ".out.zarr-heatprior"
    if what == "file":
        hidden.write_text("precious")
    else:
        (hidden / "store").mkdir(parents=True)
        for name in ("journal", "store/precious"):
            (hidden / name).write_text("precious")
    for end in (".old", ".journal"):
        (places / f".out.zarr-heatprior{end}").write_text("precious")
    before = tree(places)
    with pytest.raises(OutputFileError, match="was not made by heatprior"):
        denoise_store(places / "in.zarr", places / "out.zarr", Settings(prior=prior), SIGMA)
    assert tree(places) == before


def test_what_appears_at_the_output_meanwhile_is_not_replaced(places, prior):
    target = places / "out.zarr"

    def meanwhile(done, count):
        if done == count:
            target.mkdir(exist_ok=True)
            (target / "precious").touch()

    settings = Settings(prior=prior)
    with pytest.raises(OutputFileError, match="exists already"):
        denoise_store(places / "in.zarr", target, settings, SIGMA, report=meanwhile)
    with pytest.raises(OutputFileError, match="is not replaced"):
        denoise_store(places / "in.zarr", target, settings, SIGMA, force=True)
    assert (target / "precious").exists()
    shutil.rmtree(target)
    done = denoise_store(places / "in.zarr", target, settings, SIGMA)
    assert done.found == done.blocks


@pytest.mark.parametrize("moment", ["copying", "renaming", "renamed", "removing"])
def test_a_run_killed_while_it_begins_or_ends_is_made_whole_by_the_next(places, prior, monkeypatch, moment):
    """What the journal tells of counts only if the blocks are there, and a copy that was cut short is made again."""
    source, target = places / "in.zarr", places / "old.zarr"
    settings = Settings(prior=prior)
    right = places / "right.zarr"
    denoise_store(source, right, settings, SIGMA)

    class KilledError(BaseException):
        pass

    true = {"make_like": files.stores.make_like, "_clear": files._clear, "_put_in_place": files._put_in_place}

    def cut_short(path, images, begun):
        true["make_like"](path, images, begun)
        shutil.rmtree(begun / "labels")
        raise KilledError

    def half_in_place(folder, place):
        place.rename(folder / files.OLD)
        if moment == "renamed":
            (folder / files.WORKING).rename(place)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(files, "release", lambda _, handle: os.close(handle))  # a killed process tidies nothing up
        patch.setattr(files, "_clear", lambda *_: None)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        if moment == "copying":
            patch.setattr(files.stores, "make_like", cut_short)
        elif moment in ("renaming", "renamed"):
            patch.setattr(files, "_put_in_place", half_in_place)
        if moment == "removing":
            denoise_store(source, target, settings, SIGMA, force=True)
        else:
            with pytest.raises(KilledError):
                denoise_store(source, target, settings, SIGMA, force=True)
    assert working_folder(target).is_dir()
    denoise_store(source, target, settings, SIGMA, force=True)
    assert tree(target) == tree(right)
    assert not working_folder(target).exists()


def test_a_hidden_folder_without_a_process_is_taken_over(places, prior):
    target = places / "out.zarr"
    os.close(claim(working_folder(target)))
    (working_folder(target) / files.OLD).mkdir()
    denoise_store(places / "in.zarr", target, Settings(prior=prior), SIGMA)
    assert find_images(target)
    assert not working_folder(target).exists()


@pytest.mark.skipif(not (ROOT / "fuzz").is_dir(), reason="the fuzzer is part of the repository only")
@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        (("fuzz", "--only", "places", "--count", "150"), "150 cases, 0 broke a law"),
        (("fuzz.kills", "3", "--only", "store"), "3 kills, 0 wrong"),
    ],
)
def test_odd_places_and_kills_of_a_store_keep_the_laws(arguments, verdict):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdict in done.stdout
