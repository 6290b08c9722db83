"""Items are made once: a record is kept as long as nothing has changed that its result depends on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import heatprior as hp
from paper.bsds500 import DataMissingError
from paper.claims import retraining
from paper.claims.bench import BSD68, TRAINING, Bench
from paper.claims.item import Check, Finding, Item, Picture, Table
from paper.claims.runner import reproduce
from paper.weights.handmade import dct_prior


class Workshop:
    """Two items that count how often they are made."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.made: list[str] = []
        self.folder, self.data = folder, data
        self.items = [self.item("one", BSD68), self.item("two", TRAINING)]
        dct_prior(3).save(data / "mine.safetensors")

    def item(self, name: str, images: str) -> Item:
        def make(bench: Bench, settings) -> Finding:
            self.made.append(name)
            bench.progress(0.5)
            check = Check("is large", f"{settings['size']}", settings["size"] > 1, "it is small")
            return Finding(
                {"size": settings["size"]}, [check], [Picture(Figure(), "a picture")], [Table("t", ["a"], [])]
            )

        return Item(name, name.title(), "Figure 1", "It is large.", make, {"size": 2}, {"size": 1}, ["mine"], [images])

    def run(self, *, quick: bool = False, **options):
        reports: list[tuple[str, str, bool]] = []
        bench = Bench(self.data, quick, {"mine": self.data / "mine.safetensors"})
        items = options.pop("items", self.items)
        reproduce(
            self.folder,
            bench,
            items,
            self.items,
            report=lambda record, kept: reports.append((record["item"], record["verdict"], kept)),
            **options,
        )
        return reports


@pytest.fixture
def workshop(tmp_path: Path, data: Path) -> Workshop:
    return Workshop(tmp_path / "deep" / "out", data)


def test_pictures_records_and_the_page_are_written(workshop: Workshop):
    told: list[float] = []
    assert workshop.run(progress=told.append) == [("one", "holds", False), ("two", "holds", False)]
    names = sorted(path.name for path in workshop.folder.iterdir())
    assert names == ["index.html", "one.json", "one.png", "two.json", "two.png"]
    record = json.loads((workshop.folder / "one.json").read_text())
    assert record["figures"] == {"size": 2}
    assert record["checks"] == [{"claim": "is large", "measured": "2", "holds": True, "reason": "it is small"}]
    assert {"commit", "time", "seconds", "depends_on"} <= set(record)
    assert told == [0.5, 1.0, 1.5, 2.0]


def test_what_is_done_is_kept(workshop: Workshop):
    workshop.run()
    assert workshop.run() == [("one", "holds", True), ("two", "holds", True)]
    assert workshop.made == ["one", "two"]
    workshop.run(again=True)
    assert workshop.made == ["one", "two"] * 2


def test_a_quick_run_is_another_run(workshop: Workshop):
    workshop.run()
    assert workshop.run(quick=True) == [("one", "does not hold", False), ("two", "does not hold", False)]


def change_prior(workshop: Workshop) -> None:
    dct_prior(4).save(workshop.data / "mine.safetensors")


def change_images(workshop: Workshop) -> None:
    (workshop.data / "bsd68" / "00.png").unlink()


def change_settings(workshop: Workshop) -> None:
    workshop.items[0] = replace(workshop.items[0], full={"size": 3})


def lose_picture(workshop: Workshop) -> None:
    (workshop.folder / "one.png").unlink()


def damage_record(workshop: Workshop) -> None:
    (workshop.folder / "one.json").write_text('{"half": ')


@pytest.mark.parametrize("change", [change_prior, change_images, change_settings, lose_picture, damage_record])
def test_what_has_changed_is_made_again(workshop: Workshop, change):
    workshop.run()
    change(workshop)
    assert workshop.run()[0] == ("one", "holds", False)


def test_one_item_leaves_the_others_on_the_page(workshop: Workshop):
    workshop.run(items=workshop.items[1:])
    page = (workshop.folder / "index.html").read_text()
    assert "<h2>Two</h2>" in page
    assert "Not made yet: one." in page
    workshop.run(items=workshop.items[:1])
    page = (workshop.folder / "index.html").read_text()
    assert page.index("<h2>One</h2>") < page.index("<h2>Two</h2>")
    assert "Not made yet" not in page


def test_an_item_that_fails_leaves_what_is_done(workshop: Workshop):
    def fail(*_):
        raise hp.InvalidInputError("no")

    workshop.items[1] = replace(workshop.items[1], make=fail)
    with pytest.raises(hp.InvalidInputError):
        workshop.run()
    assert sorted(path.name for path in workshop.folder.iterdir()) == ["index.html", "one.json", "one.png"]
    assert "Not made yet: two." in (workshop.folder / "index.html").read_text()


def test_missing_images_are_told_before_any_work(workshop: Workshop):
    for path in (workshop.data / "bsds500" / "train").iterdir():
        path.unlink()
    with pytest.raises(DataMissingError):
        workshop.run()
    assert workshop.made == []
    assert not workshop.folder.exists()
    assert workshop.run(items=workshop.items[:1]) == [("one", "holds", False)]


def test_priors_trained_anew_are_kept_until_the_images_change(data: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(retraining, "QUICK_STEPS", 2)
    said: list[str] = []

    def again() -> dict[str, Path]:
        return retraining.retrained(tmp_path / "priors", Bench(data, quick=True), ["patch7"], report=said.append)

    path = again()["patch7"]
    fresh, shipped = hp.load(path), hp.load("patch7")
    assert fresh.card["hqs"] == shipped.card["hqs"]
    assert (fresh.card["training"]["size"], fresh.card["training"]["steps"]) == (7, 2)
    before = path.read_bytes()
    again()
    assert said == ["trained patch7, 2 steps"]
    (data / "bsds500" / "train" / "00.png").unlink()
    again()
    assert len(said) == 2
    assert path.read_bytes() != before
