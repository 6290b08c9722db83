from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import tifffile
from command_line import Run, assert_refused
from PIL import Image
from synthetic import landscape

import heatprior as hp
from heatprior.images import read_image
from heatprior.priors.handmade import dct_prior
from heatprior.restoration import denoising

SIGMA = 20


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with noisy images of all sorts in it; none larger than needed."""
    monkeypatch.chdir(tmp_path)
    dct_prior(3).save("mine.safetensors")
    rng = np.random.default_rng(0)
    clean = 255 * landscape((20, 24), rng)
    noisy = np.clip(np.rint(clean + SIGMA * rng.standard_normal(clean.shape)), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save("noisy.png", dpi=(300, 300))
    Path("photos/trip/day").mkdir(parents=True)
    Image.fromarray(noisy).save("photos/a.png")
    Image.fromarray(np.dstack([noisy] * 3)).save("photos/trip/b.jpg")
    np.save("photos/trip/day/c.npy", (noisy / 255).astype(np.float32))
    tifffile.imwrite("stack.tif", np.stack([noisy, noisy[::-1]]).astype(np.uint16) * 257, imagej=True)
    np.save("map.npy", np.full(noisy.shape, float(SIGMA)))
    np.save("small-map.npy", np.full((5, 5), float(SIGMA)))
    np.save("degrees.npy", noisy.astype(np.float32))
    Image.fromarray(noisy[:1, :1]).save("dot.png")
    Path("cut.png").write_bytes(Path("noisy.png").read_bytes()[:300])
    Path("zero.tif").touch()
    Path("nothing").mkdir()
    Path("notes.txt").write_text("not an image\n")
    Path("old.png").write_text("precious")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(path: str, **options: object) -> np.ndarray:
    image = read_image(Path(path))
    return hp.denoise(image.pixels, SIGMA, prior="mine.safetensors", channel_axis=image.channel_axis, **options)


QUICK = ("--prior", "mine.safetensors")


def test_a_file_is_what_the_library_makes_of_it_and_is_told_in_one_line(run: Run, workplace: Path):
    outcome = run("denoise", "noisy.png", "-o", "clean.png", "--sigma", SIGMA, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(r"wrote clean\.png: 20×24 pixels, grey, uint8, from noisy\.png, \d+\.\d s\n", outcome.out)
    clean = read_image(workplace / "clean.png")
    np.testing.assert_array_equal(clean.pixels, expected("noisy.png"))
    assert not np.array_equal(clean.pixels, read_image(workplace / "noisy.png").pixels)
    assert clean.carried.dpi == pytest.approx((300, 300), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--method", "eb"], {"method": "eb"}),
        (["--method", "hqs"], {"method": "hqs"}),
        (["--white", "200"], {"white": 200}),
    ],
)
@pytest.mark.usefixtures("workplace")
def test_options_reach_the_library(run: Run, arguments: list[str], options: dict[str, object]):
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, *QUICK, *arguments).code == 0
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, expected("noisy.png", **options))


@pytest.mark.usefixtures("workplace")
def test_the_shipped_prior_is_the_default(run: Run):
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA).code == 0
    noisy = read_image(Path("noisy.png")).pixels
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, hp.denoise(noisy, SIGMA, prior="tuned"))


@pytest.mark.parametrize("name", ["map.npy", "map.tif"])
@pytest.mark.usefixtures("workplace")
def test_a_map_of_one_level_does_what_the_level_does(run: Run, name: str):
    tifffile.imwrite("map.tif", np.load("map.npy"))
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", name, *QUICK).code == 0
    difference = read_image(Path("new.png")).pixels.astype(int) - expected("noisy.png")
    assert np.abs(difference).max() <= 1  # a map is interpolated between levels, and the result rounded


@pytest.mark.usefixtures("workplace")
def test_a_stack_keeps_its_pages_and_its_metadata(run: Run):
    outcome = run("denoise", "stack.tif", "-o", "new.tif", "--sigma", SIGMA * 257, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert "2 images of 20×24 pixels, grey, uint16" in outcome.out
    with tifffile.TiffFile("stack.tif") as old, tifffile.TiffFile("new.tif") as new:
        assert new.imagej_metadata == old.imagej_metadata
        assert new.series[0].shape == (2, 20, 24)
        assert new.series[0].dtype == np.uint16


def test_a_folder_is_mirrored(run: Run, workplace: Path):
    outcome = run("denoise", "photos", "-o", "clean", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert outcome.code == 0
    assert outcome.out.count("\n") == 3
    assert sorted(tree(workplace / "clean")) == ["a.png", "trip/b.jpg", "trip/day/c.npy"]
    np.testing.assert_array_equal(read_image(Path("clean/a.png")).pixels, expected("photos/a.png"))


def test_several_files_go_into_a_folder_and_one_into_one_that_exists(run: Run, workplace: Path):
    assert run("denoise", "noisy.png", "photos/a.png", "-o", "new", "--sigma", SIGMA, *QUICK).code == 0
    assert sorted(tree(workplace / "new")) == ["a.png", "noisy.png"]
    assert run("denoise", "noisy.png", "-o", "nothing", "--sigma", SIGMA, *QUICK).code == 0
    assert sorted(tree(workplace / "nothing")) == ["noisy.png"]


def test_an_output_inside_the_input_is_not_read_again(run: Run, workplace: Path):
    for _ in range(2):
        command = ("denoise", "photos", "-o", "photos/clean", "--sigma", SIGMA, "--white", 255, "--force", *QUICK)
        assert run(*command).code == 0
        assert sorted(tree(workplace / "photos" / "clean")) == ["a.png", "trip/b.jpg", "trip/day/c.npy"]


@pytest.mark.parametrize("name", ["noisy.png", "photos/trip/b.jpg", "stack.tif"])
def test_compare_draws_a_picture_beside(run: Run, workplace: Path, name: str):
    target = f"new{Path(name).suffix}"
    assert run("denoise", name, "-o", target, "--sigma", SIGMA, "--compare", *QUICK).code == 0
    assert (workplace / "new-compare.png").read_bytes().startswith(b"\x89PNG")


def test_force_replaces_an_output(run: Run, workplace: Path):
    assert run("denoise", "noisy.png", "-o", "old.png", "--sigma", SIGMA, "--force", *QUICK).code == 0
    assert (workplace / "old.png").read_bytes().startswith(b"\x89PNG")


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
        ("noisy.png -o new.png --sigma notes.txt", "it does not end in"),
        ("noisy.png -o new.png --sigma small-map.npy", "or a map (20, 24)"),
        ("noisy.png -o new.png --sigma 2e9", "units of the image, or the value of full scale (white)"),
        ("noisy.png -o new.png --sigma 20 --white 0", "expected the positive value"),
        ("noisy.png -o new.png --sigma 20 --method bm3d", "--help"),
        ("noisy.png -o new.png --sigma 20 --prior patch99", "shipped are"),
        ("noisy.png --sigma 20", "-o"),
        ("-o new.png --sigma 20", "INPUT"),
        ("cut.png -o new.png --sigma 20", "damaged or no image"),
        ("zero.tif -o new.tif --sigma 20", "the file is empty"),
        ("notes.txt -o new.png --sigma 20", "it does not end in"),
        ("missing.png -o new.png --sigma 20", "there is no such file"),
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
def test_no_psnr_is_foretold_of_clipped_noise(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    noise = SIGMA * np.random.default_rng(0).standard_normal((64, 64))
    Image.fromarray(np.clip(5 + noise, 0, 255).astype(np.uint8)).save("dark.png")
    outcome = run("denoise", "dark.png", "-o", "new.png", "--sigma", SIGMA, "--error", "error.tif", "--prior", "patch7")
    assert "saturated" in outcome.err
    assert "expected PSNR" not in outcome.out


@pytest.mark.usefixtures("workplace")
def test_errors_are_written_beside_and_the_psnr_is_foretold(run: Run):
    outcome = run(
        "denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, "--error", "error.tif", "--compare", *QUICK
    )
    assert outcome.code == 0
    assert re.search(r"expected PSNR \d+\.\d ± \d+\.\d dB", outcome.out)
    written = tifffile.imread("error.tif")
    noisy = read_image(Path("noisy.png")).pixels
    found = hp.denoise(noisy, SIGMA, prior="mine.safetensors", return_error=True)
    assert written.dtype == np.float32
    np.testing.assert_array_equal(written, found.error)
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, found.pixels)


def test_errors_of_a_folder_go_to_a_folder_and_are_refused_where_they_would_replace(run: Run, workplace: Path):
    command = ("denoise", "photos", "-o", "new", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert run(*command, "--error", "errors").code == 0
    assert sorted(str(path.relative_to("errors")) for path in Path("errors").rglob("*.tif")) == [
        "a.tif", "trip/b.tif", "trip/day/c.tif"
    ]  # fmt: skip
    before = tree(workplace)
    assert_refused(
        run("denoise", "noisy.png", "-o", "2.png", "--sigma", SIGMA, "--error", "old.png", *QUICK), "--force"
    )
    assert_refused(run("denoise", "noisy.png", "-o", "2.png", "--sigma", SIGMA, "--error", "e.jpg", *QUICK), "float32")
    assert tree(workplace) == before


@pytest.mark.usefixtures("workplace")
def test_a_full_standard_output_is_one_line():
    command = [sys.executable, "-m", "heatprior", "denoise", "noisy.png", "-o", "new.png", "--sigma", "20", *QUICK]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("workplace")
def test_warnings_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch):
    def grumble(image: np.ndarray, *_: object, **__: object) -> tuple[np.ndarray, None]:
        warnings.warn("it is\ndark", stacklevel=2)
        return image, None

    monkeypatch.setattr(denoising, "denoise_and_report", grumble)
    outcome = run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, *QUICK)
    assert outcome.code == 0
    assert outcome.err == "heatprior: warning: noisy.png: it is dark\n"


@pytest.mark.usefixtures("workplace")
def test_a_dark_image_of_sixteen_bits_is_warned_of(run: Run):
    np.save("dark.npy", np.full((20, 24), 900, np.uint16))
    assert "such as 1023" in run("denoise", "dark.npy", "-o", "new.npy", "--sigma", SIGMA, *QUICK).err
    assert run("denoise", "dark.npy", "-o", "new2.npy", "--sigma", SIGMA, "--white", 1023, *QUICK).err == ""


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
