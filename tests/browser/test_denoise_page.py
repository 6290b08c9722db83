"""A person denoises pictures: sees, wipes, zooms, changes the strength, cancels, saves."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from steps import give, save, set_range, settled, until, wait_for_whole


def test_a_picture_of_16_bits_from_the_file_to_the_saved_result(page, pictures, denoised):
    give(page, pictures / "deep.png")
    until(page, "!document.querySelector('[data-mode=noise]').disabled")
    assert "65535" in page.inner_text("#noise-headline")
    assert "90 %" in page.inner_text("#noise-sentences")
    wait_for_whole(page)
    assert page.inner_text("#command") == "" or "heatprior denoise deep.png" in page.text_content("#command")
    assert save(page) == denoised("deep.png")


def test_colours_in_a_jpeg_with_a_level_that_was_given(page, pictures, denoised):
    give(page, pictures / "colour.jpg")
    page.fill("#sigma", "20")
    page.press("#sigma", "Enter")
    until(page, "document.getElementById('strength-value').textContent.includes('as given')")
    wait_for_whole(page)
    assert "--sigma 20.0" in page.text_content("#command")
    assert save(page) == denoised("colour.jpg", "--sigma", "20")
    page.select_option("#quality", "fast")
    until(page, "document.getElementById('save').disabled")
    wait_for_whole(page)
    assert save(page) == denoised("colour.jpg", "--sigma", "20", "--fast")


def test_a_stack_by_its_slider(page, pictures, denoised):
    give(page, pictures / "stack.tif")
    first = settled(page)
    assert page.inner_text("#frame-number") == "1 of 3"
    set_range(page, "#frame", 3)
    assert page.inner_text("#frame-number") == "3 of 3"
    assert settled(page) != first
    wait_for_whole(page)
    assert save(page) == denoised("stack.tif")


def test_wiping_zooming_and_what_is_shown(page, pictures):
    give(page, pictures / "large.png")
    page.click("#cancel") if page.is_visible("#cancel") else None
    fitted = settled(page)
    page.focus("#viewer canvas")
    page.keyboard.press(".")
    page.keyboard.press(".")
    wiped = settled(page)
    assert wiped != fitted
    page.focus("#wipe")
    page.keyboard.press("End")
    noisy_only = settled(page)
    page.click("[data-mode=noisy]")
    assert page.get_attribute("[data-mode=noisy]", "aria-checked") == "true"
    page.click("#one")
    assert page.inner_text("#zoom") == "100 %"
    close = settled(page)
    assert close not in (fitted, noisy_only)
    page.mouse.move(400, 300)
    page.mouse.down()
    page.mouse.move(300, 250)
    page.mouse.up()
    assert settled(page) != close
    page.mouse.wheel(0, -240)
    until(page, "document.getElementById('zoom').textContent === '200 %'")
    page.focus("#viewer canvas")
    views = set()
    for key in "wndx0":
        page.keyboard.press(key)
        views.add(settled(page))
    assert len(views) >= 4
    page.click("[data-mode=difference]")
    until(page, "!document.getElementById('legend').hidden")


def test_the_strength_changes_what_is_seen_and_the_whole_follows(page, pictures):
    give(page, pictures / "deep.png")
    page.click("[data-mode=denoised]")
    views = []
    for value in (-60, 0, 60):
        set_range(page, "#strength", value)
        until(page, "performance.getEntriesByName('strength to view').length > 0")
        page.evaluate("performance.clearMeasures()")
        views.append(settled(page))
    assert len(set(views)) == 3
    assert "× 2.3" in page.inner_text("#strength-value")
    wait_for_whole(page)
    page.click("#reset")
    until(page, "document.getElementById('strength-value').textContent.startsWith('as estimated')")


def test_the_error_of_each_pixel_is_a_map_and_the_result_stays_the_same(page, pictures, denoised):
    give(page, pictures / "deep.png")
    page.fill("#sigma", "5200")
    page.press("#sigma", "Enter")
    page.check("#error")
    wait_for_whole(page)
    assert "PSNR should be" in page.inner_text("#whole-state")
    page.click("[data-mode=denoised]")
    clean = settled(page)
    page.click("[data-mode=error]")
    until(page, "!document.getElementById('legend').hidden")
    assert settled(page) != clean
    assert save(page) == denoised("deep.png", "--sigma", "5200")
    page.uncheck("#error")
    assert page.is_disabled("[data-mode=error]")


def test_cancelling_ends_the_work_and_it_can_be_begun_again(page, pictures):
    give(page, pictures / "middle.png")
    page.fill("#sigma", "20")
    page.select_option("#quality", "best")  # it lasts long enough to be cancelled
    until(page, "!document.getElementById('progress-row').hidden")
    until(page, "document.getElementById('whole-state').textContent.startsWith('Denoising')")
    page.click("#cancel")
    until(page, "document.getElementById('whole-state').textContent.startsWith('Cancelled')")
    assert page.is_disabled("#save")
    page.select_option("#quality", "fast")
    wait_for_whole(page)


@pytest.mark.parametrize("name", ["broken.png", "text.png"])
def test_a_bad_file_is_told_and_the_server_goes_on(open_page, pictures, name):
    page = open_page(expected_complaints=True)  # Chromium itself logs the refusal
    page.set_input_files("#files", str(pictures / name))
    page.wait_for_selector("#problem:not([hidden])")
    told = page.inner_text("#problem")
    assert name in told
    assert "/" not in told  # not where it lies on the server
    give(page, pictures / "deep.png")
    assert page.is_hidden("#problem")


def test_two_hundred_megapixels_are_looked_at_and_a_file_beyond_the_limit_is_not_taken(open_page, tmp_path):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    row = (96 + 32 * np.sin(np.arange(20_000) / 90)).astype(np.uint8)
    rows = np.broadcast_to(row, (10_000, 20_000))
    Image.fromarray(rows).save(tmp_path / "huge.png", compress_level=1)
    page = open_page(expected_complaints=True)
    give(page, tmp_path / "huge.png")
    assert "10000×20000" in page.inner_text("#description")
    page.click("#one")
    settled(page)
    assert page.is_visible("#whole")  # so large a picture is denoised as a whole when asked to
    np.save(tmp_path / "larger.npy", np.zeros(45_000_000, np.uint8))
    page.set_input_files("#files", str(tmp_path / "larger.npy"))
    page.wait_for_selector("#problem:not([hidden])")
    assert "larger than 40 MB" in page.inner_text("#problem")


def test_a_queue_does_what_can_be_done_and_tells_the_rest(open_page, pictures, denoised):
    page = open_page(expected_complaints=True)
    page.set_input_files("#files", [str(pictures / name) for name in ("deep.png", "broken.png", "stack.tif")])
    until(page, "document.getElementById('name').textContent === 'deep.png'")
    page.fill("#sigma", "5200")
    page.click("#queue-start")
    until(page, "document.getElementById('queue-count').textContent.startsWith('2 of 3')")
    page.wait_for_selector("#queue-save:enabled")
    assert "broken.png" in page.inner_text(".queue-list .failed")
    with page.expect_download() as download:
        page.click("#queue-save")
    archive = zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes()))
    assert archive.namelist() == ["deep.png", "stack.tif"]
    assert archive.read("deep.png") == denoised("deep.png", "--sigma", "5200")
    assert archive.read("stack.tif") == denoised("stack.tif", "--sigma", "5200")


def test_the_example_shows_the_noise_that_was_added(page):
    page.click("#sample")
    until(page, "document.getElementById('noise-headline').textContent.includes('σ')")
    until(page, "!document.querySelector('[data-mode=noise]').disabled")
    level = float(page.inner_text("#noise-headline").split()[2])
    assert 18 < level < 26
