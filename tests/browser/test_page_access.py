"""Everybody can use it: axe-core finds no serious fault on any view, in either theme; small screens; the keyboard."""

import pytest
from steps import give, until

SERIOUS = ("serious", "critical")


def faults(page, axe):
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{fault['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for fault in found
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_on_any_view(open_page, axe, pictures, scheme):
    page = open_page(color_scheme=scheme)
    assert faults(page, axe) == []
    give(page, pictures / "stack.tif")
    until(page, "!document.querySelector('[data-mode=noise]').disabled")
    assert faults(page, axe) == []
    page.click("[data-view=restore]")
    for task in ("upscale", "inpaint", "deblur"):
        page.check(f"[name=task][value={task}]")
        assert faults(page, axe) == []
    page.select_option("#blur", "motion")
    assert faults(page, axe) == []
    page.click("[data-view=prior]")
    until(page, "document.querySelectorAll('.filter .curve').length === 48")
    until(page, "document.querySelector('.likelihood .curve') !== null")
    assert faults(page, axe) == []


def test_axe_would_find_a_fault(page, axe):
    page.evaluate("document.getElementById('choose').textContent = ''")
    assert any("button-name" in fault for fault in faults(page, axe))


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
    wanted = {"CANVAS", "wipe", "fit", "one", "strength", "sigma", "quality", "adapt", "theme", "close"}
    assert wanted <= reached


def test_the_theme_can_be_chosen_and_stays(page):
    page.click("#theme")
    assert page.text_content("#theme").strip() == "Theme: light"
    page.click("#theme")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.get_attribute("html", "data-theme") == "dark"
