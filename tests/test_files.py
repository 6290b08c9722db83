import os
import signal
from pathlib import Path

import pytest

from heatprior import OutputFileError
from heatprior.files import WORDS, claim, discard_unfinished, keep_apart, make_folder, replacing, working_folder


def test_the_file_appears_whole_when_the_block_ends(tmp_path):
    path = tmp_path / "result.txt"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent.parent == path.parent  # on the same disk
        assert temporary.name == path.name
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_old_file_stays_when_the_block_fails(tmp_path, error):
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_new_files_have_the_usual_permissions(tmp_path):
    usual, path = tmp_path / "usual", tmp_path / "result"
    usual.touch()
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.stat().st_mode == usual.stat().st_mode


def left_behind(path, content="half of it"):
    """What a process leaves that is killed while it writes `path`."""
    pid = os.fork()
    if pid == 0:
        with replacing(path) as temporary:
            temporary.write_text(content)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it forks among threads: the child only writes
def test_what_a_killed_process_left_goes_with_the_next_that_writes_the_same(tmp_path):
    path, other = tmp_path / "result.txt", tmp_path / "other.txt"
    left_behind(path)
    assert [hidden.name for hidden in tmp_path.iterdir()] == [".result.txt-heatprior"]
    with replacing(other) as temporary:
        temporary.write_text("new")
    assert len(list(tmp_path.iterdir())) == 2  # what belongs to another file is not touched
    with replacing(path) as temporary:
        assert not temporary.exists()
        temporary.write_text("new")
    assert sorted(tmp_path.iterdir()) == [other, path]
    assert path.read_text() == "new"
    left_behind(path)
    discard_unfinished(path)
    discard_unfinished(other)
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_two_that_write_the_same_file_do_not_meet(tmp_path):
    path = tmp_path / "result.txt"
    with replacing(path) as one, replacing(path) as two:
        assert one != two
        one.write_text("one")
        two.write_text("two")
        discard_unfinished(path)
    assert path.read_text() == "one"  # the last to finish
    assert list(tmp_path.iterdir()) == [path]


def somebodys(place, kind, precious):
    """Something of the name of a hidden folder that is not ours."""
    if kind == "file":
        place.write_text("precious")
    elif kind == "link":
        precious.mkdir()
        (precious / "mine").write_text("precious")
        place.symlink_to(precious)
    elif kind == "dangling link":
        place.symlink_to(precious / "nowhere")
    else:
        place.mkdir()
        (place / "result.txt").write_text("precious")
        marker = place / place.name
        if kind == "folder with a file like the marker":
            marker.write_text("precious")
        elif kind == "folder with an empty file like the marker":
            marker.touch()
        elif kind == "folder with a link like the marker":
            precious.write_bytes(WORDS)
            marker.symlink_to(precious)


@pytest.mark.parametrize(
    "kind",
    [
        "file",
        "link",
        "dangling link",
        "folder",
        "folder with a file like the marker",
        "folder with an empty file like the marker",
        "folder with a link like the marker",
    ],
)
def test_what_has_the_name_of_a_hidden_folder_but_is_not_ours_is_left_alone(tmp_path, kind):
    path = tmp_path / "result.txt"
    somebodys(working_folder(path), kind, tmp_path / "precious")

    def everything():
        return {
            str(one): one.readlink() if one.is_symlink() else one.read_bytes() if one.is_file() else None
            for one in tmp_path.rglob("*")
            if one != path
        }

    before = everything()
    assert claim(working_folder(path)) is None
    discard_unfinished(path)
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert everything() == before


def test_no_file_that_is_there_is_written_to_until_the_end(tmp_path):
    """Whatever file lies beside the result, of whatever name, stays as it was: what is written is new."""
    path = tmp_path / "c.png"
    names = [".c-heatprior.png", ".c.png-heatprior.png", ".c.png-heatprior.old", ".c.png-heatprior.journal", "c.png~"]
    for name in names:
        (tmp_path / name).write_text(name)
    with replacing(path) as temporary:
        assert not temporary.exists()
        temporary.write_text("new")
    assert {name: (tmp_path / name).read_text() for name in names} == {name: name for name in names}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it forks among threads: the child only writes
@pytest.mark.parametrize("moment", ["mkdir", "marker", "renamed"])
def test_a_kill_at_any_moment_leaves_nothing_that_the_next_run_cannot_remove(tmp_path, moment):
    path = tmp_path / "result.txt"
    folder = working_folder(path)
    folder.mkdir()
    if moment != "mkdir":
        (folder / folder.name).write_bytes(b"" if moment == "marker" else WORDS)
    discard_unfinished(path)
    assert not folder.exists()


def test_more_than_was_put_into_a_hidden_folder_stays_there(tmp_path):
    path = tmp_path / "result.txt"
    with replacing(path) as temporary:
        temporary.write_text("new")
        (temporary.parent / "precious").write_text("precious")
    assert (working_folder(path) / "precious").read_text() == "precious"
    with replacing(path) as temporary:
        temporary.write_text("newer")
    assert (working_folder(path) / "precious").read_text() == "precious"
    assert path.read_text() == "newer"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder with an input in it, names for both, and other places."""
    monkeypatch.chdir(tmp_path)
    for name in ("in.zarr/sub", "other/deep", "around/in2"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("in.zarr/scan.tif", "in.zarr/sub/x.tif", "other/x.tif", "around/in2/x.tif"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("in.zarr")
    (tmp_path / "file").symlink_to("in.zarr/scan.tif")
    (tmp_path / "hard.tif").hardlink_to("in.zarr/scan.tif")
    (tmp_path / "other" / "way").symlink_to("../around/in2")
    return tmp_path


@pytest.mark.parametrize(
    ("output", "given", "word"),
    [
        ("in.zarr", "in.zarr", "is"),
        ("link", "in.zarr", "is"),
        ("in.zarr", "link", "is"),
        ("other/../in.zarr", "in.zarr", "is"),
        ("hard.tif", "in.zarr/scan.tif", "is"),
        ("file", "in.zarr/scan.tif", "is"),
        ("in.zarr", "in.zarr/scan.tif", "contains"),
        ("in.zarr", "file", "contains"),
        ("link", "in.zarr/sub/x.tif", "contains"),
        (".", "in.zarr", "contains"),
        ("in.zarr/..", "in.zarr/sub/x.tif", "contains"),
        ("other", "other/way/x.tif", "contains"),  # the link on the way to the input is in the output
        ("around", "other/way/x.tif", "contains"),
        ("in.zarr/new.zarr", "in.zarr", "lies within"),
        ("in.zarr/sub/new/deep.png", "in.zarr", "lies within"),
        ("link/new.zarr", "in.zarr", "lies within"),
        ("link/sub/../new.zarr", "in.zarr", "lies within"),
        ("other/../in.zarr/new.zarr", "link", "lies within"),
        ("other/way/new", "around", "lies within"),
        ("file", "in.zarr", "lies within"),  # a link into it
    ],
)
@pytest.mark.usefixtures("places")
def test_an_output_that_is_contains_or_lies_within_an_input_is_refused(output, given, word):
    with pytest.raises(OutputFileError, match=rf"{word} the input .*; inputs are never (replaced|changed): choose"):
        keep_apart([Path("elsewhere"), Path(output)], [Path("other/x.tif"), Path(given)])


@pytest.mark.parametrize(
    ("output", "given"),
    [
        ("in.zarr/../new.zarr", "in.zarr"),
        ("link/../new.zarr", "in.zarr"),
        ("in.zarr2", "in.zarr"),
        ("in.zarr/new.tif", "in.zarr/scan.tif"),
        ("other", "in.zarr/scan.tif"),
        ("other/deep", "other/x.tif"),
        ("new/new/new.png", "hard.tif"),
        ("around", "nowhere"),
    ],
)
@pytest.mark.usefixtures("places")
def test_an_output_beside_an_input_is_not_refused(output, given):
    keep_apart([Path(output)], [Path(given)])


def test_what_a_killed_process_left_is_not_removed_while_it_is_an_input(tmp_path):
    path = tmp_path / "c.png"
    folder = working_folder(path)
    os.close(claim(folder))
    (folder / "c.png").write_text("half")
    with pytest.raises(OutputFileError, match="contains the input"):
        keep_apart([path], [folder / "c.png"])


def test_a_name_as_long_as_a_name_may_be(tmp_path):
    path = tmp_path / ("x" * 251 + ".txt")
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_made_with_those_it_is_in_or_refused(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError, match=r"cannot make the folder .*; choose another place"):
        make_folder(tmp_path / "file" / "b")
