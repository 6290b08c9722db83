"""A person sharpens, fills in and enlarges: what is saved is what the command line makes, byte for byte."""

import io

import numpy as np
from PIL import Image
from steps import begin_restoring, paint, save, set_range, settled, shown_modes, until, wait_for_whole


def test_a_blurred_picture_is_made_sharp_as_by_the_command(page, pictures, by_command):
    begin_restoring(page, pictures / "small.png", "deblur")
    assert shown_modes(page) == ["wipe", "noisy", "denoised", "difference"]  # a quick look is there at once
    assert "preview" in page.inner_text("#whole-state")
    page.fill("#width", "1.2")
    page.fill("#restore-sigma", "6")
    before = settled(page)
    page.click("#whole")
    wait_for_whole(page)
    assert settled(page) != before
    assert "heatprior deblur small.png -o small-sharpened.png --gaussian 1.2 --sigma 6.0" in page.text_content(
        "#command"
    )
    assert save(page) == by_command("deblur", "small.png", "--gaussian", "1.2", "--sigma", "6")
    page.select_option("#blur", "motion")
    assert page.is_visible("#length")
    assert page.is_disabled("#save")  # that result belonged to another choice
    page.fill("#length", "5")
    set_range(page, "#degrees", 30)
    page.click("#whole")
    wait_for_whole(page)
    assert save(page) == by_command("deblur", "small.png", "--motion", "5,30", "--sigma", "6")
    page.click("[data-view=denoise]")
    assert page.is_visible("#strength")
    assert page.is_hidden("#restore-settings")
    until(page, "document.getElementById('noise-headline').textContent.includes('σ')")


def test_what_is_painted_over_is_filled_in_and_nothing_else_changes(page, pictures, by_command):
    begin_restoring(page, pictures / "small.png", "inpaint")
    assert "Paint over" in page.inner_text("#whole-state")
    bare = settled(page)
    paint(page, (0.3, 0.4), (0.6, 0.5))
    assert settled(page) != bare
    page.check("[name=brush-tool][value=erase]")
    paint(page, (0.3, 0.4), (0.6, 0.5))
    page.check("[name=brush-tool][value=paint]")
    paint(page, (0.4, 0.3), (0.45, 0.7))
    mask = save(page, "#mask-save")
    (pictures / "painted.png").write_bytes(mask)
    covered = np.asarray(Image.open(io.BytesIO(mask)).convert("L")) > 127
    assert 0.005 < covered.mean() < 0.5
    page.click("#whole")
    wait_for_whole(page)
    saved = save(page)
    assert saved == by_command("inpaint", "small.png", "--mask", str(pictures / "painted.png"))
    given, filled = (np.asarray(Image.open(source)) for source in (pictures / "small.png", io.BytesIO(saved)))
    np.testing.assert_array_equal(given[~covered], filled[~covered])
    assert (given[covered] != filled[covered]).any()


def test_a_small_picture_becomes_a_large_one_beside_which_it_is_still_seen(page, pictures, by_command):
    begin_restoring(page, pictures / "small.png", "upscale")
    page.fill("#restore-sigma", "6")
    page.click("#whole")
    wait_for_whole(page)
    assert shown_modes(page) == ["wipe", "noisy", "denoised"]
    wiped = settled(page)
    page.click("[data-mode=noisy]")
    assert settled(page) != wiped
    assert save(page) == by_command("upscale", "small.png", "--factor", "2", "--sigma", "6")


def test_what_cannot_be_filled_in_is_told(page, pictures):
    begin_restoring(page, pictures / "small.png", "inpaint")
    page.set_input_files("#mask-file", str(pictures / "deep.png"))
    page.wait_for_selector("#problem:not([hidden])")
    assert "same size" in page.inner_text("#problem")
    page.click("#whole")
    until(page, "document.getElementById('problem').textContent.includes('No pixel is missing')")
    page.set_input_files("#mask-file", str(pictures / "scratch.png"))
    until(page, "document.getElementById('problem').hidden")
    assert not page.is_disabled("#whole")
