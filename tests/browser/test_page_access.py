"""Everybody can use it: axe-core finds no serious fault on any view, in either theme; small screens; the keyboard."""

import pytest
from page_server import REFUSED
from steps import give
from views import SCREENS, SERIOUS, each_view, options_of, violations


@pytest.mark.parametrize("screen", SCREENS)
def test_no_serious_fault_on_any_view(open_page, axe, pictures, screen):
    page = open_page(expected=REFUSED, **options_of(screen))  # one of the views shows files that were refused
    for name in each_view(page, pictures / "colour.jpg"):
        assert [fault for fault in violations(page, axe) if fault["impact"] in SERIOUS] == [], name


def test_axe_would_find_a_fault(page, axe):
    page.evaluate("document.getElementById('choose').textContent = ''")
    assert "button-name" in {fault["rule"] for fault in violations(page, axe)}


def test_a_small_screen_scrolls_down_only(open_page, pictures):
    page = open_page(viewport={"width": 360, "height": 700}, has_touch=True, device_scale_factor=2)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    buttons = "[...document.querySelectorAll('.views button')]"
    reached = f"{buttons}.every((button) => button.getBoundingClientRect().right <= innerWidth)"
    assert page.evaluate(fits)
    give(page, pictures / "stack.tif")
    for view in ("denoise", "restore", "prior"):
        page.click(f"[data-view={view}]")
        assert page.evaluate(fits), view
        assert page.evaluate(reached)
    page.click("[data-view=denoise]")
    assert page.locator("#viewer canvas").bounding_box()["height"] > 300


def test_the_keyboard_reaches_everything(page, pictures):
    give(page, pictures / "deep.png")
    reached = set()
    page.focus(".skip")
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    wanted = {"CANVAS", "wipe", "fit", "one", "strength", "sigma", "quality", "theme", "close"}
    assert wanted <= reached


def test_the_theme_can_be_chosen_and_stays(page):
    page.click("#theme")
    assert page.text_content("#theme").strip() == "Theme: light"
    page.click("#theme")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.get_attribute("html", "data-theme") == "dark"
