from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from PIL import Image
from synthetic import folder_of_images

from heatprior.cli import evaluate as module
from heatprior.restoration import evaluation
from paper.weights.handmade import dct_prior

QUICK = ("--prior", "mine.safetensors")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEATPRIOR_DATA", raising=False)
    dct_prior(3).save("mine.safetensors")
    folder_of_images(tmp_path / "photos", 3, (20, 24))
    (tmp_path / "nothing").mkdir()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "zero.png").touch()
    (tmp_path / "small").mkdir()
    Image.fromarray(np.zeros((5, 9), np.uint8)).save(tmp_path / "small" / "a.png")
    (tmp_path / "notes.txt").write_text("precious")
    (tmp_path / "old.json").write_text("precious")
    return tmp_path


@pytest.mark.usefixtures("workplace")
def test_prints_a_table_and_writes_the_same_figures(run: Run):
    outcome = run("evaluate", "photos", "-o", "new.json", *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    head, *rows, about, wrote = outcome.out.splitlines()
    assert head.split() == ["σ", "PSNR", "SSIM", "s/Mpx"]
    assert about == "3 of 3 images of photos, mine.safetensors, 1 core"
    assert wrote == "wrote new.json"
    record = json.loads(Path("new.json").read_text())
    assert (record["images"], record["count"], record["steps"], record["threads"]) == ("photos", 3, None, 1)
    assert len(record["each"]) == 12
    for row, mean in zip(rows, record["mean"], strict=True):
        level, psnr, ssim, _ = map(float, row.split())
        each = [result for result in record["each"] if result["level"] == level]
        assert [result["file"] for result in each] == ["00.png", "01.png", "02.png"]
        assert mean["psnr"] == pytest.approx(np.mean([result["psnr"] for result in each]))
        assert (psnr, ssim) == (round(mean["psnr"], 2), round(mean["ssim"], 4))
        assert mean["seconds_per_megapixel"] == np.median([result["seconds_per_megapixel"] for result in each])


@pytest.mark.usefixtures("workplace")
def test_levels_images_and_steps_can_be_chosen(run: Run):
    options = ("--sigma", 10, "--sigma", 30, "--limit", 2, "--steps", 1, "-o", "new.json")
    outcome = run("evaluate", "photos", *options, *QUICK)
    assert "2 of 3 images of photos, mine.safetensors, one step, 1 core\n" in outcome.out
    record = json.loads(Path("new.json").read_text())
    assert [mean["level"] for mean in record["mean"]] == [10, 30]
    assert record["steps"] == 1
    assert len(record["each"]) == 4
    assert record["steps"] == 1
    run("evaluate", "photos", *options[:6], "-o", "several.json", *QUICK)
    assert json.loads(Path("several.json").read_text())["mean"] != record["mean"]


@pytest.mark.usefixtures("workplace")
def test_sigma_is_in_the_units_of_the_files(run: Run):
    Path("deep").mkdir()
    for path in sorted(Path("photos").iterdir()):
        Image.fromarray(np.asarray(Image.open(path).convert("L")).astype(np.uint16) * 257).save(f"deep/{path.name}")
    few, deep = (
        run("evaluate", folder, "--sigma", sigma, "--limit", 1, *QUICK).out.split()
        for folder, sigma in (("photos", 10), ("deep", 2570))
    )
    assert deep[4] == "2570"
    assert few[5:7] == deep[5:7]


def test_the_levels_in_the_help_are_those_of_the_library():
    """The help must not load the library, so it repeats them."""
    assert tuple(module.LEVELS) == evaluation.LEVELS


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("", "FOLDER"),
        ("missing", "does not exist; give a folder"),
        ("notes.txt", "is a file; give a folder"),
        ("nothing", "holds no images"),
        ("mixed", "the file is empty"),
        ("small", "at least 7×7"),
        ("photos --sigma 0", "expected positive numbers"),
        ("photos --sigma -1", "expected positive numbers"),
        ("photos --sigma nan", "expected positive numbers"),
        ("photos --sigma abc", "--help"),
        ("photos --limit 0", "--help"),
        ("photos --threads 0", "--help"),
        ("photos --threads 100000", "the number of cores"),
        ("photos --prior patch99", "shipped are"),
        ("photos -o new.txt", "ends in .json"),
        ("photos -o old.json", "--force"),
        ("photos -o missing/new.json", "create the folder first"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, workplace: Path, arguments: str, remedy: str):
    before = sorted(workplace.rglob("*"))
    quick = () if "--prior" in arguments else QUICK
    assert_refused(run("evaluate", *arguments.split(), *quick), remedy)
    assert sorted(workplace.rglob("*")) == before
    assert (workplace / "old.json").read_text() == "precious"


@pytest.mark.skipif(not os.environ.get("HEATPRIOR_DATA"), reason="BSDS500 is not there")
def test_a_validation_image_has_the_psnr_that_the_protocol_gives_by_hand(run: Run, tmp_path: Path):
    from heatprior import load
    from heatprior.images import read_grey
    from heatprior.priors.protocol import denoise_once
    from paper import bsds500

    first = bsds500.validation()[0]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / first.name).symlink_to(first.resolve())
    output = tmp_path / "new.json"
    options = ("--sigma", 25, "--prior", "patch7", "--steps", 1)
    assert run("evaluate", tmp_path / "one", *options, "-o", output).code == 0
    clean = read_grey(first) / 255
    noisy = clean + 25 / 255 * np.random.default_rng(1000).standard_normal(clean.shape)
    denoised = np.clip(denoise_once(load("patch7"), noisy, 25 / 255), 0, 1)
    expected = -10 * np.log10(np.mean((denoised - clean) ** 2))
    # in float32 and by tables: right to 1e-5 of full scale, so to 1e-3 dB
    assert json.loads(output.read_text())["mean"][0]["psnr"] == pytest.approx(expected, abs=1e-3)
