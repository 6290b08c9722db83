"""Every item of the paper can be made, of any images, and says what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import heatprior as hp
from paper.claims.bench import Bench
from paper.claims.denoising_table import TABLE
from paper.claims.item import Check, verdict
from paper.claims.items import ITEMS, chosen
from paper.claims.plots import DPI, save_diagram

TINY = {
    "filters7": {"patches": 3000, "filters": 3},
    "filters15": {"patches": 1000, "filters": 3},
    "single": {"patches": 3000, "filters": 2},
    "paper-training7": {"patches": 3000, "filters": 2, "samples": 500},
    "paper-training15": {"patches": 1000, "filters": 2, "samples": 200},
    "discrepancy": {"patches": 3000},
    "samples": {"patches": 500},
    "table1": {"images": 1},
    "fields-of-experts": {"images": 1},
    "noise-estimation": {"patches": 20},
    "blind-denoising": {"images": 1},
    "projection": {"banks": 1, "steps": 12},
    "heat-equation": {"samples": 2, "tiny": 2},
}


def assert_nothing_is_clipped(figure: Figure) -> None:
    """All that is drawn, letters too, lies on the paper, but for a pixel."""
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    pixel = 1.0 / DPI
    assert drawn.x0 >= -pixel
    assert drawn.y0 >= -pixel
    assert drawn.x1 <= width + pixel
    assert drawn.y1 <= height + pixel


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_an_item_says_what_it_found_and_shows_it(item, data: Path, tmp_path: Path):
    told: list[float] = []
    bench = Bench(data, quick=True, progress=told.append)
    finding = item.make(bench, TINY[item.name])
    json.loads(json.dumps(finding.figures, allow_nan=False))
    assert finding.checks
    assert finding.pictures
    assert all(check.claim and check.measured for check in finding.checks)
    assert all(check.reason for check in finding.checks if check.holds is None)
    for number, picture in enumerate(finding.pictures):
        save_diagram(picture.figure, tmp_path / f"{number}.png", dpi=DPI)
        assert_nothing_is_clipped(picture.figure)
        assert picture.caption
    for table in finding.tables:
        assert {len(row) for row in table.rows} == {len(table.head)}
    assert told == sorted(told)
    assert told
    assert 0 <= told[0] <= told[-1] <= 1


def test_denoising_is_judged_on_all_images_only(data: Path):
    bench = Bench(data)
    assert {check.holds for check in TABLE.make(bench, {"images": 1}).checks} == {None}
    whole = TABLE.make(bench, TABLE.full)  # all two of them
    assert {check.holds for check in whole.checks} <= {True, False}
    assert_nothing_is_clipped(whole.pictures[0].figure)


def test_the_settings_of_the_tests_are_those_of_the_items():
    for item in ITEMS:
        assert set(item.full) == set(item.quick) == set(TINY[item.name])


def test_names_are_given_once_and_chosen_in_the_order_of_the_page():
    names = [item.name for item in ITEMS]
    assert len(set(names)) == len(names)
    assert chosen([]) == list(ITEMS)
    assert [item.name for item in chosen(["table1", "filters7"])] == ["filters7", "table1"]
    with pytest.raises(hp.InvalidInputError, match="'table2' here; there are filters7, "):
        chosen(["table1", "table2"])


@pytest.mark.parametrize(
    ("holds", "word"),
    [
        ([True, True], "holds"),
        ([True, False], "holds in part"),
        ([False, False], "does not hold"),
        ([None, None], "not judged"),
        ([True, None], "holds as far as judged"),
        ([False, None], "does not hold"),
    ],
)
def test_a_verdict_is_as_good_as_its_claims(holds, word):
    assert verdict([Check("claim", "measured", one) for one in holds]) == word
