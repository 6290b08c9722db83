"""A person gives several files, a folder, or drops them: each is done by the same settings, bad ones are told."""

import io
import shutil
import zipfile
from pathlib import Path

from page_server import REFUSED
from steps import choose, drop, until


def saved_archive(page):
    page.wait_for_selector("#queue-save:enabled")
    with page.expect_download() as download:
        page.click("#queue-save")
    return zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes()))


def counted(page, words):
    until(page, f"document.getElementById('queue-count').textContent.startsWith('{words}')")


def test_a_queue_does_what_can_be_done_and_tells_the_rest(open_page, pictures, denoised):
    page = open_page(expected=REFUSED)
    page.set_input_files("#files", [str(pictures / name) for name in ("deep.png", "broken.png", "stack.tif")])
    until(page, "document.getElementById('name').textContent === 'deep.png'")
    choose(page, sigma="5200", quality="fast")
    page.click("#queue-start")
    counted(page, "2 of 3")
    archive = saved_archive(page)
    assert "broken.png" in page.inner_text(".queue-list .failed")
    assert archive.namelist() == ["deep.png", "stack.tif"]
    for name in archive.namelist():
        assert archive.read(name) == denoised(name, "--sigma", "5200", "--quality", "fast")
    page.click(".queue-list li:last-child button")
    until(page, "document.getElementById('name').textContent === 'stack.tif'")
    assert page.input_value("#sigma") == "5200"  # the settings are for all of them


def test_other_settings_begin_the_queue_again_and_clearing_ends_it(open_page, pictures, denoised):
    page = open_page(expected=REFUSED)
    page.set_input_files("#files", str(pictures / "small.png"))
    until(page, "document.getElementById('name').textContent === 'small.png'")
    choose(page, sigma="20", quality="fast")
    for _ in range(2):
        drop(page, pictures / "small.png", pictures / "text.png")
    for sigma in ("20", "30"):
        choose(page, sigma=sigma)
        page.click("#queue-start")
        counted(page, "2 of 4")
        archive = saved_archive(page)
        assert archive.namelist() == ["small-2.png", "small.png"]  # of one name, and both kept
        assert {archive.read(name) for name in archive.namelist()} == {
            denoised("small.png", "--sigma", sigma, "--quality", "fast")
        }
    page.click("#queue-clear")
    assert page.is_hidden("#queue")
    drop(page, pictures / "small.png", pictures / "colour.jpg")
    counted(page, "0 of 2")
    assert page.is_disabled("#queue-save")


def test_a_folder_keeps_its_places_and_two_files_of_one_name_do_not_meet(page, pictures, denoised, tmp_path):
    for place, name in (("scans/a", "small.png"), ("scans/b", "small.png")):
        (tmp_path / place).mkdir(parents=True)
        shutil.copy(pictures / name, tmp_path / place / name)
    page.set_input_files("#folder", str(tmp_path / "scans"))
    until(page, "document.getElementById('name').textContent === 'small.png'")
    choose(page, sigma="20", quality="fast")
    page.click("#queue-start")
    counted(page, "2 of 2")
    archive = saved_archive(page)
    assert sorted(archive.namelist()) == ["scans/a/small.png", "scans/b/small.png"]
    assert {archive.read(name) for name in archive.namelist()} == {
        denoised("small.png", "--sigma", "20", "--quality", "fast")
    }


def test_a_queue_can_be_cancelled_and_goes_on_where_it_was(page, pictures):
    page.set_input_files("#files", [str(pictures / name) for name in ("small.png", "middle.png", "deep.png")])
    until(page, "document.getElementById('name').textContent === 'small.png'")
    choose(page, sigma="20", quality="best")
    page.click("#queue-start")
    until(page, "/^[1-9]/.test(document.querySelectorAll('.queue-list .state')[1].textContent)")  # some per cent
    page.click("#queue-cancel")
    page.wait_for_selector("#queue-start:not([hidden])")
    states = page.evaluate("[...document.querySelectorAll('.queue-list .state')].map((each) => each.textContent)")
    assert states == ["done", "cancelled", ""]
    choose(page, quality="fast")
    page.click("#queue-start")
    counted(page, "3 of 3")


def test_a_file_is_dropped_onto_the_page(page, pictures):
    drop(page, pictures / "small.png")
    until(page, "document.getElementById('name').textContent === 'small.png'")
    drop(page, pictures / "deep.png", pictures / "colour.jpg")
    counted(page, "0 of 2")
    assert page.inner_text("#name") == "small.png"  # what is looked at stays
