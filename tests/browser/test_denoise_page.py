"""A person denoises pictures: sees, wipes, zooms, changes the strength, cancels, saves."""

import numpy as np
import pytest
from page_server import REFUSED
from steps import choose, give, legend, save, set_range, settled, until, wait_for_noise, wait_for_whole


def test_a_picture_of_16_bits_from_the_file_to_the_saved_result(page, pictures, denoised):
    give(page, pictures / "deep.png")
    wait_for_noise(page)
    assert page.inner_text("#noise-headline").startswith("σ ≈ ")
    assert "The picture uses " in page.inner_text("#noise-sentences")
    assert "90 %" in page.inner_text("#noise-sentences")
    wait_for_whole(page)
    assert "heatprior denoise deep.png -o deep-denoised.png" in page.text_content("#command")
    assert save(page) == denoised("deep.png")


def test_colours_in_a_jpeg_with_a_level_that_was_given(page, pictures, denoised):
    give(page, pictures / "colour.jpg")
    choose(page, sigma="20")
    until(page, "document.getElementById('strength-value').textContent.includes('as given')")
    wait_for_whole(page)
    assert "--sigma 20.0" in page.text_content("#command")
    assert save(page) == denoised("colour.jpg", "--sigma", "20")
    choose(page, quality="fast")
    wait_for_whole(page)
    assert "--quality fast" in page.text_content("#command")
    assert save(page) == denoised("colour.jpg", "--sigma", "20", "--quality", "fast")


def test_a_stack_by_its_slider(page, pictures, denoised):
    give(page, pictures / "stack.tif")
    choose(page, quality="fast")
    wait_for_noise(page)
    first = settled(page)
    assert page.inner_text("#frame-number") == "1 of 3"
    set_range(page, "#frame", 3)
    assert page.inner_text("#frame-number") == "3 of 3"
    wait_for_noise(page)
    assert settled(page) != first
    wait_for_whole(page)
    assert save(page) == denoised("stack.tif", "--quality", "fast")
    choose(page, sigma="2000", quality="fast")  # whatever is found in each frame
    page.check("#error")
    wait_for_whole(page)
    page.click("[data-mode=error]")
    third = settled(page)
    set_range(page, "#frame", 2)
    assert settled(page) != third  # each frame has errors of its own


def test_wiping_zooming_and_what_is_shown(page, pictures):
    give(page, pictures / "large.png")
    choose(page, sigma="20", quality="fast")
    wait_for_whole(page)  # from now on nothing changes by itself
    wait_for_noise(page)
    fitted = settled(page)
    page.focus("#viewer canvas")
    page.keyboard.press(".")
    page.keyboard.press(".")
    assert page.input_value("#wipe") == "600"
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
    assert close not in (fitted, wiped, noisy_only)
    page.mouse.move(400, 300)
    page.mouse.down()
    page.mouse.move(300, 250)
    page.mouse.up()
    assert settled(page) != close
    page.mouse.wheel(0, -240)
    until(page, "document.getElementById('zoom').textContent === '200 %'")
    page.focus("#viewer canvas")
    views = set()
    for key in "wndxm":
        page.keyboard.press(key)
        views.add(settled(page))
    assert len(views) == 5
    page.keyboard.press("0")
    page.keyboard.press("w")
    set_range(page, "#wipe", 500)
    assert settled(page) == fitted


def test_the_wipe_is_dragged_by_its_line(page, pictures):
    give(page, pictures / "deep.png")
    box = page.locator("#viewer canvas").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, middle, steps=4)
    page.mouse.up()
    assert abs(int(page.input_value("#wipe")) - 250) < 10


def test_what_was_taken_off_and_where_the_noise_is_are_shown_with_their_scales(page, pictures):
    give(page, pictures / "deep.png")
    choose(page, sigma="5200", quality="fast")
    wait_for_whole(page)
    wait_for_noise(page)
    page.click("[data-mode=difference]")
    low, high = legend(page)
    assert low == -high
    assert 2 * 5200 < high < 4 * 5200  # three standard deviations of what was taken off
    page.click("[data-mode=noise]")
    low, high = legend(page)
    assert low == 0  # so that nearly the same everywhere looks so
    assert high / 2 < 5243 < 1.4 * high  # 0.08 of full scale was added, then cut off at black
    page.click("[data-mode=denoised]")
    until(page, "document.getElementById('legend').hidden")


def test_the_strength_changes_what_is_seen_and_the_whole_follows(page, pictures):
    give(page, pictures / "deep.png")
    choose(page, quality="fast")
    wait_for_noise(page)
    page.click("[data-mode=denoised]")
    views = []
    for value in (-60, 0, 60):
        page.evaluate("performance.clearMeasures()")
        set_range(page, "#strength", value)
        until(page, "performance.getEntriesByName('strength to view').length > 0")
        views.append(settled(page))
    assert len(set(views)) == 3
    assert "× 2.3" in page.inner_text("#strength-value")
    wait_for_whole(page)
    page.click("#reset")
    assert page.is_disabled("#save")  # that result belonged to another strength
    until(page, "document.getElementById('strength-value').textContent.startsWith('as estimated')")


def test_the_error_of_each_pixel_is_a_map_and_the_result_stays_the_same(page, pictures, denoised):
    give(page, pictures / "deep.png")
    choose(page, sigma="5200", quality="fast")
    page.check("#error")
    wait_for_whole(page)
    page.click("[data-mode=denoised]")
    clean = settled(page)
    page.click("[data-mode=error]")
    assert 0 < legend(page)[1] < 5200
    assert settled(page) != clean
    assert save(page) == denoised("deep.png", "--sigma", "5200", "--quality", "fast")
    page.uncheck("#error")
    assert page.is_disabled("[data-mode=error]")


def test_cancelling_ends_the_work_and_it_can_be_begun_again(page, pictures):
    give(page, pictures / "middle.png")
    choose(page, sigma="20", quality="best")  # it lasts long enough to be cancelled
    until(page, "document.getElementById('whole-state').textContent.startsWith('Denoising')")
    page.click("#cancel")
    until(page, "document.getElementById('whole-state').textContent.startsWith('Cancelled')")
    assert page.is_disabled("#save")
    wait_for_noise(page)
    assert page.is_visible("#whole")  # begun again by whoever cancelled it, not by itself
    choose(page, quality="fast")
    wait_for_whole(page)


@pytest.mark.parametrize("name", ["broken.png", "text.png"])
def test_a_bad_file_is_told_and_what_was_open_stays(open_page, pictures, name):
    page = open_page(expected=REFUSED)
    page.set_input_files("#files", str(pictures / name))
    page.wait_for_selector("#problem:not([hidden])")
    told = page.inner_text("#problem")
    assert name in told
    assert "/" not in told  # not where it lies on the server
    give(page, pictures / "deep.png")
    assert page.is_hidden("#problem")
    page.set_input_files("#files", str(pictures / name))
    page.wait_for_selector("#problem:not([hidden])")
    assert page.inner_text("#name") == "deep.png"
    choose(page, quality="fast")  # the next choice takes the message away
    assert page.is_hidden("#problem")
    wait_for_whole(page)


def test_two_hundred_megapixels_are_looked_at_and_a_file_beyond_the_limit_is_not_taken(open_page, tmp_path):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    row = (96 + 32 * np.sin(np.arange(20_000) / 90)).astype(np.uint8)
    rows = np.broadcast_to(row, (10_000, 20_000))
    Image.fromarray(rows).save(tmp_path / "huge.png", compress_level=1)
    page = open_page(expected=REFUSED)
    give(page, tmp_path / "huge.png")
    assert "20000×10000" in page.inner_text("#description")
    page.click("#one")
    settled(page)
    assert page.is_visible("#whole")  # so large a picture is denoised as a whole when asked to
    page.click("[data-view=restore]")
    page.check("[name=task][value=inpaint]")
    assert "too large to paint on" in page.inner_text("#whole-state")
    assert page.is_disabled("#mask-save")
    np.save(tmp_path / "larger.npy", np.zeros(45_000_000, np.uint8))
    page.set_input_files("#files", str(tmp_path / "larger.npy"))
    page.wait_for_selector("#problem:not([hidden])")
    assert "larger than 40 MB" in page.inner_text("#problem")


def test_the_example_shows_the_noise_that_was_added(page):
    page.click("#sample")
    until(page, "document.getElementById('noise-headline').textContent.includes('σ')")  # at once, from its middle
    level = float(page.inner_text("#noise-headline").split()[2])
    assert 18 < level < 26  # 22 was added
