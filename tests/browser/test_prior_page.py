"""A person plays with the prior: one slider moves filters' potentials, samples and scores; the picture's likelihood."""

import re

from steps import give, set_range, until


def test_diffusion_widens_what_is_seen(page, pictures):
    give(page, pictures / "deep.png")
    page.click("[data-view=prior]")
    until(page, "document.querySelectorAll('.filter').length === 48")
    until(page, "document.querySelectorAll('.filter .curve').length === 48")
    until(page, "document.querySelector('.potential .curve') !== null")
    before = page.get_attribute(".potential .curve", "d")
    set_range(page, ".sigma", 70)
    until(page, f"document.querySelector('.potential .curve').getAttribute('d') !== '{before}'")
    assert "σ = 0.196" in page.inner_text(".sigma-value")
    words = until(
        page, "document.querySelector('.likelihood-words').textContent.match(/highest at σ = [0-9.e+]+/)?.[0]"
    )
    level = float(re.search(r"[\d.e+]+$", words.rstrip("."))[0]) / 65535
    assert 0.04 < level < 0.16  # 0.08 was added
    page.focus(".filter[aria-selected=true]")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('.which').textContent === '2'")
    page.click(".again")
    page.select_option(".names", "patch15")
    until(page, "document.querySelectorAll('.filter').length === 112")


def test_whoever_is_quicker_than_the_server_sees_what_was_chosen_last(page):
    """Views, priors and levels are changed while answers are under way; the console stays empty."""
    for view in ("prior", "denoise", "prior"):
        page.click(f"[data-view={view}]")
    until(page, "document.querySelectorAll('.filter').length === 48")
    for name, tick in (("patch15", 40), ("patch7", 60), ("patch15", 80)):
        page.select_option(".names", name)
        set_range(page, ".sigma", tick)
    until(page, "document.querySelectorAll('.filter .curve').length === 112")
    until(page, "document.querySelector('.potential .plot').getAttribute('aria-label').endsWith('0.256')")
