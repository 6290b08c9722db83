"""Outputs that are refused before any work is done."""

import os

import pytest

from heatprior import OutputFileError
from heatprior.cli.batches import check_output


def test_an_output_is_accepted_where_it_can_be_written(tmp_path):
    check_output(tmp_path / "new.png", force=False)
    (tmp_path / "old.png").touch()
    check_output(tmp_path / "old.png", force=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "it is a folder; give a file name inside it"),
        ("missing/new.png", "does not exist; create the folder first"),
        ("old.png/new.png", "is a file; create the folder first"),
        ("old.png", "exists already; choose another name or add --force to replace it"),
    ],
)
def test_an_output_that_could_not_be_written_is_refused_at_once(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.png").touch()
    with pytest.raises(OutputFileError) as refusal:
        check_output(tmp_path / name, force=False)
    assert message in str(refusal.value)
    assert str(tmp_path / name) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputFileError, match="is not writable; choose another"):
            check_output(tmp_path / "new.png", force=False)
    finally:
        tmp_path.chmod(0o700)
