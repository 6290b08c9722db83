"""What is fetched is checked by content, and what does not match leaves nothing behind."""

import hashlib
import io
import re
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from heatprior import OutputFileError
from paper import bsds500
from paper.bsds500 import DataMissingError
from paper.bsds500 import fetch as module
from paper.bsds500.fetch import BSDS500, MATLAB_LUMA, Archive, fetch, folder_digest

SPLITS = {"train": ["1.jpg", "22.jpg"], "val": ["37073.jpg", "7.jpg", "101.jpg"], "test": ["9.jpg"]}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def jpeg(number):
    pixels = np.random.default_rng(number).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "jpeg")
    return file.getvalue()


def packed(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


CONTENTS = {split: {name: jpeg(int(name[:-4])) for name in names} for split, names in SPLITS.items()}
MEMBERS = {
    f"BSR/BSDS500/data/images/{split}/{name}": content
    for split, files in CONTENTS.items()
    for name, content in files.items()
} | {
    "BSR/BSDS500/data/images/train/Thumbs.db": b"clutter",
    "BSR/BSDS500/data/groundTruth/train/1.mat": b"clutter",
    "../outside.jpg": b"evil",
}


def grey(content):
    with Image.open(io.BytesIO(content)) as image:
        return np.rint(np.asarray(image) @ MATLAB_LUMA).astype(np.uint8)


@pytest.fixture
def archive(tmp_path):
    """A server with a small archive, and what it should hold."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "small.tgz").write_bytes(packed(MEMBERS))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "served"))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    pixels = hashlib.sha256(b"".join(grey(CONTENTS["val"][name]).tobytes() for name in ("101.jpg", "7.jpg")))
    yield Archive(
        url=f"http://127.0.0.1:{server.server_port}/small.tgz",
        member=BSDS500.member,
        digests={split: folder_digest(files) for split, files in CONTENTS.items()},
        bsd68=pixels.hexdigest(),
    )
    server.shutdown()
    server.server_close()
    thread.join()


def everything_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_images_arrive_and_bsd68_is_made_of_them(tmp_path, archive):
    folder = tmp_path / "some" / "data"
    fetch(folder, archive)
    assert everything_in(folder) == [
        "bsd68/test001.png",
        "bsd68/test002.png",
        "bsds500/test/9.jpg",
        "bsds500/train/1.jpg",
        "bsds500/train/22.jpg",
        "bsds500/val/101.jpg",
        "bsds500/val/37073.jpg",
        "bsds500/val/7.jpg",
    ]
    assert len(bsds500.training(folder)) == 3
    assert [path.name for path in bsds500.validation(folder)] == ["37073.jpg"]
    for path, name in zip(bsds500.bsd68(folder), ("101.jpg", "7.jpg"), strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), grey(CONTENTS["val"][name]))


def test_a_bsd68_that_is_there_is_left_alone(tmp_path, archive):
    (tmp_path / "data" / "bsd68").mkdir(parents=True)
    (tmp_path / "data" / "bsd68" / "mine.png").touch()
    fetch(tmp_path / "data", archive)
    assert [path.name for path in bsds500.bsd68(tmp_path / "data")] == ["mine.png"]


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (packed({**MEMBERS, "BSR/BSDS500/data/images/train/1.jpg": jpeg(2)}), "its 2 images of train are not those"),
        (packed({**MEMBERS, "BSR/BSDS500/data/images/test/10.jpg": jpeg(2)}), "its 2 images of test are not those"),
        (packed({name: content for name, content in MEMBERS.items() if "/7.jpg" not in name}), "its 2 images of val"),
        (packed({}), "its 0 images of train"),
        (packed(MEMBERS)[:2000], "it is not an archive, or is damaged or cut short"),
        (packed(MEMBERS)[:2000] + bytes(2000), "thrown away"),
        (b"<html>moved</html>", "it is not an archive"),
        (b"", "it is not an archive"),
    ],
    ids=["changed", "added", "missing", "none", "cut", "damaged", "page", "empty"],
)
def test_what_is_not_the_data_set_is_thrown_away(tmp_path, archive, served, message):
    (tmp_path / "served" / "small.tgz").write_bytes(served)
    with pytest.raises(DataMissingError, match=message) as refusal:
        fetch(tmp_path / "data", archive)
    assert "set HEATPRIOR_DATA to the folder that holds bsds500/train" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "data").exists()


def test_a_decoder_that_differs_is_noticed(tmp_path, archive):
    with pytest.raises(DataMissingError, match="not BSD68, pixel by pixel"):
        fetch(tmp_path / "data", replace(archive, bsd68="0" * 64))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("path", ["missing.tgz", None])
def test_a_server_that_does_not_give_it_is_one_line(tmp_path, archive, path):
    url = archive.url.replace("small.tgz", path) if path else "http://127.0.0.1:9/nothing.tgz"
    with pytest.raises(DataMissingError, match="check the network") as refusal:
        fetch(tmp_path / "data", replace(archive, url=url))
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "data").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path, archive):
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError, match="choose another folder"):
        fetch(tmp_path / "file" / "data", archive)


def test_a_data_set_with_images_missing_is_not_mixed_with_another(tmp_path, archive):
    """Nothing is downloaded, and the advice is not the command that was just tried."""
    (tmp_path / "data" / "bsds500" / "train").mkdir(parents=True)
    with pytest.raises(OutputFileError, match="lacks images; move it away") as refusal:
        fetch(tmp_path / "data", replace(archive, url="http://127.0.0.1:9/nothing.tgz"))
    assert "python -m" not in str(refusal.value)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["bsds500"]


def test_the_true_archive_is_described():
    assert re.fullmatch(BSDS500.member, "BSR/BSDS500/data/images/val/101085.jpg")
    assert not re.fullmatch(BSDS500.member, "BSR/BSDS500/data/images/val/../x.jpg")
    assert set(BSDS500.digests) == {"train", "val", "test"}
    assert module.BSDS500.url.startswith("http")
