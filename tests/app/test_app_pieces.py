"""The pieces of the server that need no browser: turns, quick looks, names, regions, what is shown, what is refused."""

import asyncio
import os
import re
import threading
import time
from functools import partial

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from heatprior.app.jobs import LongJob, QuickLooks, SupersededError, Turns
from heatprior.app.pictures import SIGMA, OpenedPicture, Region, halve, quantise, write_sample
from heatprior.app.tabs import plain_name, scratch_folder, sweep
from heatprior.app.views import OF_DENOISING, OF_RESTORING, Pace, ViewRequest, guess_noise, look_quickly, render
from heatprior.app.words import describe_noise
from heatprior.app.work import Choice, Restoration, denoise_picture, estimate_picture
from heatprior.data.trials import photograph
from heatprior.errors import HeatpriorError, InvalidInputError
from heatprior.files import claim
from heatprior.images import name_result


def noisy_picture(folder, sigma=10.0, shape=(96, 120)):
    ramp = np.add.outer(np.linspace(60, 180, shape[0]), np.linspace(-20, 20, shape[1]))
    noisy = ramp + np.random.default_rng(3).normal(0, sigma, shape)
    path = folder / "ramp.npy"
    np.save(path, np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
    return OpenedPicture("p", path, path.name), ramp


def steps_of_jobs(names):
    """Which job computes, step by step, if jobs of four steps each come in this order."""
    turns, order = Turns(), []

    def work(name, progress):
        for step in range(4):
            order.append(name)
            progress(step / 4)
        return {}

    ticket, jobs = turns.take(lambda: False), []
    for name in names:
        jobs.append(LongJob(partial(work, name), turns, str).start())
        while len(turns._line) <= len(jobs):  # the first has its turn
            time.sleep(0.01)
    turns.give(ticket)
    for job in jobs:
        job.wait(60)
    assert [job.state for job in jobs] == ["done"] * len(jobs)
    return "".join(order)


def test_jobs_take_turns_whatever_came_first(monkeypatch):
    monkeypatch.setattr("heatprior.app.jobs.SLICE", -1.0)
    assert steps_of_jobs("abcdefghij") == 4 * "abcdefghij"


def test_without_turns_the_second_job_would_wait(monkeypatch):
    monkeypatch.setattr("heatprior.app.jobs.SLICE", 1e9)
    assert steps_of_jobs("ab") == "aaaabbbb"


def test_a_job_ends_when_it_is_cancelled_even_while_it_waits():
    turns = Turns()
    ticket = turns.take(lambda: False)
    job = LongJob(lambda progress: progress(0.5) or {}, turns, str).start()
    job.cancel()
    job.wait(20)
    assert job.state == "cancelled"
    turns.give(ticket)


@pytest.mark.parametrize("error", [InvalidInputError("too small"), MemoryError(), ZeroDivisionError("x")])
def test_a_job_that_fails_says_why_and_lets_the_next_one_go(error):
    def work(_):
        raise error

    turns = Turns()
    job = LongJob(work, turns, str).start()
    job.wait(20)
    assert job.state == "failed"
    assert job.error
    turns.give(turns.take(lambda: False))


def test_of_each_tab_only_the_newest_look_waits():
    gate = threading.Event()

    async def many():
        looks = QuickLooks()
        first = asyncio.create_task(looks.run("a", lambda _: gate.wait(20)))
        await asyncio.sleep(0.05)
        older = asyncio.create_task(looks.run("a", lambda _: "older"))
        other = asyncio.create_task(looks.run("b", lambda _: "other"))
        await asyncio.sleep(0)
        newer = asyncio.create_task(looks.run("a", lambda _: "newer"))
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(first, older, other, newer, return_exceptions=True)

    first, older, other, newer = asyncio.run(many())
    assert first is True
    assert isinstance(older, SupersededError)
    assert (other, newer) == ("other", "newer")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a.png", "a/b.png", "a\\b.png", "c:a.png", "a\0.png", "a\n.png", "x" * 300]
)
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(InvalidInputError):
        plain_name(name)


def test_plain_names_stay_as_they_are():
    for name in ("photo.png", "scan 1 (ä).nii.gz", "..hidden"):
        assert plain_name(name) == name


def test_the_folder_goes_with_the_server_and_what_a_killed_one_left_is_swept(tmp_path):
    with scratch_folder(tmp_path) as folder:
        (folder / "given.png").write_bytes(b"x")
        sweep(tmp_path)
        assert folder.is_dir()  # its server lives
        left, somebodys = tmp_path / "heatprior-app-left", tmp_path / "heatprior-app-results"
        os.close(claim(left))  # as by a process that ended
        (left / "given.png").write_bytes(b"x")
        somebodys.mkdir()
        (somebodys / "lock").touch()
        sweep(tmp_path)
        assert not left.exists()
        assert (somebodys / "lock").exists()
    assert list(tmp_path.iterdir()) == [somebodys]


def test_a_region_stays_inside_and_on_the_grid_of_its_step():
    region = Region.within((100, 90), -5, 37, 200, 30, 8)
    assert region == Region(0, 32, 90, 35, 8)
    assert region.window == (slice(4, 9), slice(0, 12))
    assert region.grow(2, (100, 90)) == Region(0, 16, 90, 67, 8)
    for bad in ((0, 0, 9, 9, 3), (0, 0, 9, 9, 128), (95, 0, 9, 9, 1), (0, 0, -5, 9, 1)):
        with pytest.raises(InvalidInputError):
            Region.within((100, 90), *bad)


@pytest.mark.parametrize("shape", [(8, 6), (7, 5), (1, 9), (9, 4, 3)])
def test_halving_takes_means(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    padded = np.pad(pixels, [(0, shape[0] % 2), (0, shape[1] % 2)] + [(0, 0)] * (len(shape) - 2), mode="edge")
    means = sum(padded[i::2, j::2].astype(float) for i in (0, 1) for j in (0, 1)) / 4
    np.testing.assert_allclose(halve(pixels), means)


def test_what_is_shown_of_other_types_than_8_bits():
    shown = quantise(np.array([[-1.0, 0.0, 0.5, 1.0, 2.0, np.nan]]), 0.0, 1.0)
    assert shown.tolist() == [[0, 0, 128, 255, 255, 128]]


def test_a_quick_look_takes_the_noise_off_at_every_reduction(tmp_path):
    picture, clean = noisy_picture(tmp_path)
    picture.noise[0, "auto"] = guess_noise(picture, 0, "auto")
    for step in (1, 2):
        region = Region.within(picture.frame_shape, 16, 16, 64, 48, step)
        look = look_quickly(picture, 0, region, Choice(), Pace(*OF_DENOISING), lambda _: None)
        truth, noisy = clean, picture.frame(0)
        for _ in range(step - 1):
            truth, noisy = halve(truth), halve(noisy)
        truth, noisy = (pixels[region.window] for pixels in (truth, noisy))
        assert look.shape == truth.shape
        assert np.std(look - truth) < 0.65 * np.std(noisy - truth)  # the fast quality leaves noise in smooth pictures


def test_a_quick_look_at_deblurring_is_sharper_at_every_reduction_that_shows_the_blur(tmp_path):
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.uniform(60, 190, (12, 16)), np.ones((10, 10)))
    np.save(tmp_path / "soft.npy", gaussian_filter(blocks, 3.0) + rng.normal(0, 1.0, blocks.shape))
    picture = OpenedPicture("p", tmp_path / "soft.npy", "soft.npy")
    picture.noise[0, "auto"] = guess_noise(picture, 0, "auto")
    wanted = Restoration.read({"task": "deblur", "width": "3", "sigma": "1"})
    for step in (1, 2):
        region = Region.within(picture.frame_shape, 32, 32, 64, 64, step)
        look = look_quickly(picture, 0, region, wanted, Pace(*OF_RESTORING), lambda _: None)
        soft, sharp = picture.reduce(0, step)[region.window], blocks if step == 1 else halve(blocks)
        assert np.std(look - sharp[region.window]) < 0.7 * np.std(soft - sharp[region.window])
    filling = Restoration.read({"task": "inpaint"})
    with pytest.raises(InvalidInputError, match="no quick look"):
        look_quickly(picture, 0, region, filling, Pace(*OF_RESTORING), lambda _: None)


def test_noise_is_named_beside_what_the_picture_uses(tmp_path):
    """Eight photons a pixel are strong noise, however far below full scale they lie."""
    light = 8.0 + 3.0 * np.sin(np.add.outer(np.arange(128) / 9, np.arange(128) / 13))
    np.save(tmp_path / "counts.npy", (100 + 51 * np.random.default_rng(0).poisson(light)).astype(np.uint16))
    picture = OpenedPicture("p", tmp_path / "counts.npy", "counts.npy")
    words = estimate_picture(picture, 0, "affine", lambda _: None)["noise"]
    assert 0.8 * 51 * np.sqrt(8.0) < words["sigma"] < 1.25 * 51 * np.sqrt(8.0)
    said = " ".join([words["headline"], *words["sentences"]])
    assert "65535" not in said
    assert "trong noise" in said
    photons = float(re.search(r"about ([\d.]+) photons", said)[1])
    assert 6.0 < photons < 10.0
    first = describe_noise(guess_noise(picture, 0, "affine"), picture.ends(0))
    assert "the rest is still being examined" in " ".join(first["sentences"])


def test_a_look_that_only_refines_gives_way_to_a_newer_one_and_a_first_one_does_not(tmp_path):
    picture, _ = noisy_picture(tmp_path)
    region = Region.within(picture.frame_shape, 0, 0, 120, 96, 1)
    first = ViewRequest("denoised", 0, region, Choice(), None)
    assert render(picture, first, Pace(*OF_DENOISING), is_old=lambda: True).region == region
    refining = first._replace(choice=Choice(strength=2.0), closeness="exact")
    with pytest.raises(SupersededError):
        render(picture, refining, Pace(*OF_DENOISING), is_old=lambda: True)
    assert render(picture, refining, Pace(*OF_DENOISING)).region == region


def test_the_errors_of_a_result_are_a_map_if_they_were_asked_for(tmp_path):
    picture, _ = noisy_picture(tmp_path, shape=(48, 56))
    results = [
        denoise_picture(picture, Choice(10.0, quality="fast", error=error), lambda _: None)["result"]
        for error in (True, False)
    ]
    errors = picture.error_map(0, results[0])
    assert errors.shape == (48, 56)
    assert 0.5 < np.median(errors) < 10.0
    np.testing.assert_array_equal(*(picture.result(name).load() for name in results))
    with pytest.raises(InvalidInputError, match="ask for them"):
        picture.error_map(0, results[1])


def test_the_pace_reduces_what_would_take_too_long():
    pace = Pace(*OF_DENOISING)
    region = Region(0, 0, 1000, 1000, 1)
    assert pace.step_for(region, 3) > pace.step_for(Region(0, 0, 100, 100, 1), 3) == 1
    pace.learn(20_000, 300.0)  # compiled meanwhile
    assert pace.step_for(Region(0, 0, 120, 96, 1), 1) == 2  # something to look at is left
    for _ in range(60):
        pace.learn(100_000, 0.1)  # what does not grow with a look is no reason to reduce it further
    assert pace.step_for(region, 3) == 2
    for _ in range(60):
        pace.learn(1_000_000, 0.01)
    assert pace.step_for(region, 3) == 1


def test_choices_are_read_and_said_as_the_command_line_has_them():
    choice = Choice.read({"sigma": "20", "strength": "1.5", "quality": "fast"})
    assert choice.keywords == {"quality": "fast", "sigma": 30.0}
    assert choice.command("a b.png", "c.png") == "heatprior denoise 'a b.png' -o c.png --sigma 30.0 --quality fast"
    assert Choice.read({}).command("a.png", "c.png") == "heatprior denoise a.png -o c.png"
    stronger = Choice.read({"strength": "1.5"})
    assert stronger.keywords == {"quality": "default", "strength": 1.5, "noise": "auto"}
    assert stronger.command("a.png", "c.png") == "heatprior denoise a.png -o c.png --strength 1.5"
    counted = Choice.read({"noise": "affine", "strength": "1.5"})
    assert counted.command("a.png", "c.png") == "heatprior denoise a.png -o c.png --noise affine --strength 1.5"
    assert Choice.read({"noise": "affine", "sigma": "20"}).noise == "auto"  # how much there is was given
    assert name_result("scan.nii.gz", "denoised") == "scan-denoised.nii.gz"
    for bad in (
        {"sigma": "-1"},
        {"sigma": "nan"},
        {"strength": "0"},
        {"quality": "none"},
        {"sigma": "x"},
        {"noise": "pink"},
    ):
        with pytest.raises(HeatpriorError):
            Choice.read(bad)


def test_the_example_of_the_page_has_the_noise_that_was_added(tmp_path):
    write_sample(tmp_path / "photograph.png")
    noisy = OpenedPicture("p", tmp_path / "photograph.png", "photograph.png").frame(0)
    clean = photograph()
    assert noisy.shape == clean.shape
    wall = np.s_[20:120, 400:500]  # far from black and white, so that nothing is clipped
    assert abs(np.std(noisy[wall] - clean[wall].astype(float)) - SIGMA) < 1.0
