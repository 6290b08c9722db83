"""`heatprior denoise` refuses in one line, and leaves nothing partial and no input changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from denoising_folder import QUICK, SIGMA, tree
from PIL import Image


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("dot.png -o new.png", "give a larger image"),
        ("noisy.png -o new.png --noise many", "--help"),
        ("noisy.png -o new.png --sigma 20 --noise map", "leave out --sigma, or --noise"),
        ("noisy.png -o new.png --sigma 0", "expected a positive number"),
        ("noisy.png -o new.png --sigma -1", "expected a positive number"),
        ("noisy.png -o new.png --sigma nan", "expected a positive number"),
        ("noisy.png -o new.png --sigma inf", "expected a positive number"),
        ("noisy.png -o new.png --sigma abc", "expected a number, or a file (.npy, .tif)"),
        ("noisy.png -o new.png --sigma missing.npy", "there is no such file"),
        ("noisy.png -o new.png --sigma notes.txt", "its name does not end in"),
        ("noisy.png -o new.png --sigma small-map.npy", "or a map (20, 24)"),
        ("noisy.png -o new.png --sigma 2e9", "units of the image, or the value of full scale (white)"),
        ("noisy.png -o new.png --sigma 20 --white 0", "expected the positive value"),
        ("noisy.png -o new.png --sigma 20 --quality bm3d", "--help"),
        ("noisy.png -o new.png --sigma 20 --prior patch99", "shipped are"),
        ("-o new.png --sigma 20", "INPUT"),
        ("cut.png -o new.png --sigma 20", "damaged or no image"),
        ("zero.tif -o new.tif --sigma 20", "the file is empty"),
        ("notes.txt -o new.png --sigma 20", "its name does not end in"),
        ("missing.png -o new.png --sigma 20", "there is no such file; check its name"),
        ("dot.png -o new.png --sigma 20", "give a larger image"),
        ("nothing -o new --sigma 20", "holds no images"),
        ("missing nothing -o notes.txt --sigma 20", "several images need a folder"),
        ("noisy.png -o new.gif --sigma 20", "ends in .png"),
        ("noisy.png -o new --sigma 20", "ends in .png"),
        ("degrees.npy -o new.png --sigma 20 --white 255", "PNG cannot hold float32; choose .tif or .npy"),
        ("stack.tif -o new.jpg --sigma 20", "JPEG holds one image"),
        ("noisy.png -o missing/new.png --sigma 20", "create the folder first"),
        ("photos -o missing/new --sigma 20", "create it first"),
        ("photos -o notes.txt --sigma 20", "several images need a folder"),
        ("photos -o notes.txt/new --sigma 20", "create it first"),
        ("noisy.png -o old.png --sigma 20", "--force"),
        ("noisy.png -o noisy.png --sigma 20", "inputs are never replaced"),
        ("noisy.png -o noisy.png --sigma 20 --force", "inputs are never replaced"),
        ("noisy.png -o photos/../noisy.png --sigma 20 --force", "inputs are never replaced"),
        ("noisy.png -o . --sigma 20 --force", "inputs are never replaced"),
        ("photos -o photos --sigma 20 --force", "inputs are never replaced"),
        ("noisy.png -o map.npy --sigma map.npy --force", "inputs are never replaced"),
        ("noisy.png photos/a.png nothing/../noisy.png -o new --sigma 20", "would be written twice"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, workplace: Path, arguments: str, remedy: str):
    before = tree(workplace)
    quick = () if "--prior" in arguments else QUICK
    assert_refused(run("denoise", *arguments.split(), *quick), remedy)
    assert tree(workplace) == before
    assert not (workplace / "new").exists()


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.usefixtures("workplace")
def test_an_input_is_kept_through_links_too(run: Run, link: object):
    link("noisy.png", "link.png")
    before = Path("noisy.png").read_bytes()
    for command in (("noisy.png", "-o", "link.png"), ("link.png", "-o", "noisy.png")):
        outcome = run("denoise", *command, "--sigma", SIGMA, "--force", *QUICK)
        assert_refused(outcome, "inputs are never replaced")
    Path("same").symlink_to("photos")
    assert_refused(run("denoise", "photos", "-o", "same", "--sigma", SIGMA, "--force", *QUICK), "never replaced")
    assert Path("noisy.png").read_bytes() == before
    assert Path("link.png").read_bytes() == before


def test_a_picture_to_compare_does_not_replace_an_input_either(run: Run, workplace: Path):
    Image.open("noisy.png").save("photos/a-compare.png")
    before = tree(workplace)
    command = ("photos/a.png", "photos/a-compare.png", "-o", "new", "--compare", "--sigma", SIGMA, *QUICK)
    assert_refused(run("denoise", *command), "would be written twice")
    command = ("noisy.png", "photos/a-compare.png", "-o", "photos", "--sigma", SIGMA, "--force", *QUICK)
    assert_refused(run("denoise", *command), "never replaced")
    assert tree(workplace) == before


def test_outputs_that_exist_are_told_before_any_work(run: Run, workplace: Path):
    Path("clean").mkdir()
    for name in ("clean/a.png", "clean/b.png"):
        Path(name).write_text("precious")
    Image.open("noisy.png").save("photos/b.png")
    before = tree(workplace)
    outcome = run("denoise", "photos", "-o", "clean", "--sigma", SIGMA, *QUICK)
    assert_refused(outcome, "2 of 4 outputs exist already, such as clean/a.png")
    assert tree(workplace) == before


def test_bad_files_in_a_folder_are_told_and_the_rest_goes_on(run: Run, workplace: Path):
    for name in ("cut.png", "zero.tif", "dot.png"):
        (workplace / name).rename(workplace / "photos" / "trip" / name)
    outcome = run("denoise", "photos", "-o", "clean", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert outcome.code == 1
    cut, dot, zero, count = outcome.err.splitlines()
    assert cut.startswith("heatprior: error: cannot read photos/trip/cut.png: ")
    assert dot.startswith("heatprior: error: cannot denoise photos/trip/dot.png: ")
    assert zero.startswith("heatprior: error: cannot read photos/trip/zero.tif: the file is empty")
    assert count == "heatprior: 3 of 6 failed, see above"
    assert sorted(tree(workplace / "clean")) == ["a.png", "trip/b.jpg", "trip/day/c.npy"]


@pytest.mark.parametrize("bad", ["cut.png", "missing.png", "nothing", "notes.txt"])
def test_bad_ones_among_several_are_told_and_the_rest_goes_on(run: Run, workplace: Path, bad: str):
    outcome = run("denoise", bad, "noisy.png", "-o", "new", "--sigma", SIGMA, *QUICK)
    assert outcome.code == 1
    assert bad in outcome.err
    assert outcome.err.endswith("1 of 2 failed, see above\n")
    assert sorted(tree(workplace / "new")) == ["noisy.png"]


def test_if_all_fail_no_folder_is_left(run: Run, workplace: Path):
    before = sorted(workplace.rglob("*"))
    assert run("denoise", "cut.png", "zero.tif", "-o", "new", "--sigma", SIGMA, *QUICK).code == 1
    assert sorted(workplace.rglob("*")) == before


@pytest.mark.parametrize("target", ["new.png", "photos"])
def test_refuses_a_folder_that_is_not_writable(run: Run, workplace: Path, monkeypatch: pytest.MonkeyPatch, target: str):
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    before = tree(workplace)
    assert_refused(run("denoise", "noisy.png", "-o", target, "--sigma", SIGMA, *QUICK), "choose another")
    assert_refused(run("denoise", "photos", "-o", "new", "--sigma", SIGMA, *QUICK), "choose another")
    assert tree(workplace) == before


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("noisy.png", "heatprior.images.png._put"),
        ("photos/trip/b.jpg", "pathlib.Path.write_bytes"),
        ("stack.tif", "shutil.copyfile"),
        ("photos/trip/day/c.npy", "numpy.lib.format.write_array_header_1_0"),
    ],
)
def test_a_full_disk_leaves_no_partial_file(
    run: Run, workplace: Path, monkeypatch: pytest.MonkeyPatch, name: str, writer: str
):
    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = tree(workplace)
    monkeypatch.setattr(writer, fill)
    outcome = run("denoise", name, "-o", f"new{Path(name).suffix}", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert_refused(outcome, "No space left on device; choose another place")
    assert tree(workplace) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.usefixtures("workplace")
def test_a_full_standard_output_is_one_line():
    command = [sys.executable, "-m", "heatprior", "denoise", "noisy.png", "-o", "new.png", "--sigma", "20", *QUICK]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("workplace")
def test_checks_the_outputs_before_it_reads(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heatprior.images.read_image", lambda _: pytest.fail("read before the output was checked"))
    assert_refused(run("denoise", "noisy.png", "-o", "old.png", "--sigma", SIGMA, *QUICK), "--force")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_leaves_no_partial_file(workplace: Path):
    np.save("large.npy", np.zeros((6000, 6000), np.float32))
    before = sorted(path for path in workplace.rglob("*"))
    command = [sys.executable, "-m", "heatprior", "denoise", "noisy.png", "large.npy", "-o", "new", "--sigma", "0.1"]
    before_all = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    process = subprocess.Popen([*command, "--white", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before_all)
    while process.poll() is None and not Path("new/noisy.png").exists():
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert sorted(workplace.rglob("*")) == sorted([*before, workplace / "new", workplace / "new" / "noisy.png"])
