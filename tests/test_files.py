import os
import signal

import pytest

from heatprior import OutputFileError
from heatprior.files import discard_unfinished, make_folder, replacing


def test_the_file_appears_whole_when_the_block_ends(tmp_path):
    path = tmp_path / "result.txt"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == path.parent
        assert temporary.suffix == path.suffix
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


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it forks among threads: the child only writes
def test_what_a_killed_process_left_goes_with_the_next_that_writes_the_same(tmp_path):
    path, other = tmp_path / "result.txt", tmp_path / "other.txt"
    left_behind(path)
    assert [hidden.name for hidden in tmp_path.iterdir()] == [".result-heatprior.txt"]
    with replacing(other) as temporary:
        temporary.write_text("new")
    assert len(list(tmp_path.iterdir())) == 2  # what belongs to another file is not touched
    with replacing(path) as temporary:
        assert temporary.read_text() == ""
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
        discard_unfinished(path)
        assert one.exists()
        one.write_text("one")
        two.write_text("two")
    assert path.read_text() == "one"  # the last to finish
    assert list(tmp_path.iterdir()) == [path]


def test_a_hidden_file_that_leads_elsewhere_is_left_alone(tmp_path):
    path, precious = tmp_path / "result.txt", tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / ".result-heatprior.txt").symlink_to(precious)
    with replacing(path) as temporary:
        temporary.write_text("new")
    discard_unfinished(path)
    assert precious.read_text() == "precious"
    assert path.read_text() == "new"
    (tmp_path / ".result-heatprior.txt").unlink()
    (tmp_path / ".result-heatprior.txt").hardlink_to(precious)
    with replacing(path) as temporary:
        temporary.write_text("newer")
    assert precious.read_text() == "precious"


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
