from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from PIL import Image
from synthetic import landscape

import heatprior as hp
from heatprior.noise.profiles import NoiseProfile

SIGMA = 20


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = 60 + 130 * landscape((96, 120), rng)
    noisy = np.rint(clean + SIGMA * rng.standard_normal(clean.shape)).clip(0, 255).astype(np.uint8)
    Image.fromarray(noisy).save("noisy.png")
    Image.fromarray(np.dstack([noisy] * 3)).save("colour.png")
    np.save("stack.npy", np.stack([noisy, noisy]))
    np.save(
        "smeared.npy", (clean + SIGMA * np.repeat(rng.standard_normal((96, 60)), 2, axis=1)).astype(np.float32) / 255
    )
    Image.fromarray(np.full((32, 32), 7, np.uint8)).save("plain.png")
    Image.fromarray(noisy[:3, :3]).save("dot.png")
    Path("old.json").write_text("precious")
    return tmp_path


@pytest.mark.usefixtures("workplace")
def test_sigma_is_told_with_its_interval_in_one_line(run: Run):
    outcome = run("noise", "noisy.png")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(
        r"noisy\.png: white noise, sigma [\d.]+ of 255 \(90 %: [\d.]+ to [\d.]+\), the same everywhere\n", outcome.out
    )


def test_json_holds_what_the_library_finds(run: Run, workplace: Path):
    assert run("noise", "noisy.png", "colour.png", "stack.npy", "-o", "noise.json", "--noise", "affine").code == 0
    one, colour, stack = json.loads((workplace / "noise.json").read_text())
    report = hp.estimate_noise(np.asarray(Image.open("noisy.png")), "affine")
    (channel,) = one["channels"]
    assert channel["sigma"] == pytest.approx(255 * report.channels[0].level.sigma)
    assert channel["gain"] == pytest.approx(255 * report.channels[0].affine.gain)
    assert channel["interval90"][0] < channel["sigma"] < channel["interval90"][1]
    assert channel["sigma"] == pytest.approx(SIGMA, rel=0.05)
    assert [len(image["channels"]) for image in (colour, stack)] == [3, 2]


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("kind", ["auto", "constant", "affine", "map", "camera"])
def test_a_file_of_many_channels_has_one_line_and_one_warning_at_most(run: Run, kind: str):
    for name in ("colour.png", "stack.npy"):
        outcome = run("noise", name, "--noise", kind)
        assert outcome.out.count("\n") == 1
        assert outcome.err.count("\n") <= 1


def test_a_picture_shows_the_map(run: Run, workplace: Path):
    for name in ("noisy.png", "colour.png", "plain.png"):
        assert run("noise", name, "--picture", "map.png", "--force").code == 0
        assert (workplace / "map.png").read_bytes().startswith(b"\x89PNG")


def test_camera_noise_is_said_in_one_line_for_all_colours(run: Run, workplace: Path):
    outcome = run("noise", "colour.png", "--noise", "camera", "-o", "noise.json")
    assert outcome.code == 0
    line, _ = outcome.out.splitlines()
    assert re.fullmatch(r"colour\.png: camera noise, treated as sigma [\d.]+ of 255", line)
    channels = json.loads((workplace / "noise.json").read_text())[0]["channels"]
    assert {channel["model"] for channel in channels} == {"camera"}
    assert len({channel["sigma"] for channel in channels}) == 1


@pytest.mark.usefixtures("workplace")
def test_an_image_without_noise_is_said_to_have_none(run: Run):
    out = run("noise", "plain.png").out
    assert out == "plain.png: no noise found; if you see some: heatprior denoise --strength 2 or --sigma 10\n"


def test_doubts_are_warnings(run: Run, workplace: Path):
    clipped = np.clip(np.asarray(Image.open("noisy.png")).astype(int) * 6 - 700, 0, 255).astype(np.uint8)
    Image.fromarray(clipped).save("clipped.png")
    outcome = run("noise", "clipped.png", "--noise", "constant", "-o", "noise.json")
    assert outcome.code == 0
    assert outcome.err.startswith("heatprior: warning: clipped.png: ")
    assert "clipped" in outcome.err
    assert json.loads((workplace / "noise.json").read_text())[0]["channels"][0]["doubts"]
    outcome = run("denoise", "clipped.png", "-o", "clean.png", "--noise", "constant", "--quality", "fast")
    assert (outcome.code, outcome.err.count("\n")) == (0, 1)


@pytest.mark.usefixtures("workplace")
def test_an_image_without_noise_is_left_as_it_is(run: Run):
    outcome = run("denoise", "plain.png", "-o", "clean.png", "--quality", "fast")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1].endswith(
        "; no noise found, picture unchanged; if you see noise: --strength 2 or --sigma 10"
    )
    np.testing.assert_array_equal(np.asarray(Image.open("clean.png")), np.asarray(Image.open("plain.png")))


@pytest.mark.usefixtures("workplace")
def test_strength_scales_what_was_found(run: Run):
    noisy = np.asarray(Image.open("noisy.png"))
    assert run("denoise", "noisy.png", "-o", "half.png", "--strength", "0.5", "--quality", "fast").code == 0
    half = np.asarray(Image.open("half.png"))
    np.testing.assert_array_equal(half, hp.denoise(noisy, strength=0.5, quality="fast"))
    whole = hp.denoise(noisy, quality="fast")
    assert np.std(half.astype(float) - noisy) < 0.8 * np.std(whole.astype(float) - noisy)
    outcome = run("denoise", "noisy.png", "-o", "other.png", "--strength", "2", "--sigma", "5")
    assert outcome.code != 0
    assert "--strength is for noise that is estimated" in outcome.err


def test_a_camera_profile_is_denoised_with(run: Run, workplace: Path):
    NoiseProfile.measure(0.05 * np.random.default_rng(0).standard_normal((96, 96))).save("camera.json")
    profile = NoiseProfile.load("camera.json")
    assert len(profile.channels) == 1
    outcome = run("denoise", "noisy.png", "-o", "clean.png", "--noise", "camera.json", "--quality", "fast")
    assert (outcome.code, outcome.err) == (0, "")
    expected = hp.denoise(np.asarray(Image.open("noisy.png")), noise=profile, quality="fast")
    np.testing.assert_array_equal(np.asarray(Image.open("clean.png")), expected)
    for arguments, remedy in (
        ("colour.png -o other.png --noise camera.json", "give one of images of this kind"),
        ("noisy.png -o other.png --noise old.json", "cannot read the noise profile"),
        ("noisy.png -o other.png --noise camera.json --sigma 5", "leave out --sigma"),
    ):
        outcome = run("denoise", *arguments.split())
        assert outcome.code != 0
        assert remedy in outcome.err
        assert not (workplace / "other.png").exists()


@pytest.mark.usefixtures("workplace")
def test_denoising_without_sigma_tells_what_it_found(run: Run):
    outcome = run("denoise", "noisy.png", "-o", "clean.png", "--quality", "fast")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"; removed white noise, sigma [\d.]+ of 255$", outcome.out.splitlines()[0])
    expected = hp.denoise(np.asarray(Image.open("noisy.png")), quality="fast")
    np.testing.assert_array_equal(np.asarray(Image.open("clean.png")), expected)
    outcome = run("denoise", "colour.png", "-o", "clean2.png", "--quality", "fast", "--noise", "map")
    assert "; removed noise that differs from place to place, " in outcome.out


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("missing.png", "there is no such file"),
        ("dot.png", "give a larger image"),
        ("noisy.png -o old.json", "--force"),
        ("noisy.png colour.png --picture map.png", "give one"),
        ("noisy.png --noise loud", "--help"),
        ("noisy.png --white -1", "positive value"),
        ("noisy.png -o noise.txt", "ends in .json"),
        ("noisy.png -o noise.json --picture map.jpg", "ends in .png, .pdf, .svg"),
        ("noisy.png -o same.png --picture same.png", "ends in .json"),
        (".", "is a folder; give its images"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run: Run, workplace: Path, arguments: str, remedy: str):
    assert_refused(run("noise", *arguments.split()), remedy)
    assert (workplace / "old.json").read_text() == "precious"


def test_an_input_is_never_replaced(run: Run, workplace: Path):
    (workplace / "link.png").symlink_to("noisy.png")
    before = {path: path.read_bytes() for path in workplace.iterdir()}
    for arguments in (
        "noisy.png --picture noisy.png",
        "link.png --picture noisy.png",
        "noisy.png -o noisy.png",
    ):
        outcome = run("noise", *arguments.split(), "--force")
        assert_refused(outcome, "ends in .json" if "-o noisy.png" in arguments else "inputs are never replaced")
    assert {path: path.read_bytes() for path in workplace.iterdir()} == before


@pytest.mark.usefixtures("workplace")
def test_of_several_images_the_bad_ones_are_told_and_the_others_go_on(run: Run):
    outcome = run("noise", "dot.png", "noisy.png")
    assert outcome.code == 1
    assert outcome.out.startswith("noisy.png: white noise")
    assert "dot.png" in outcome.err
