"""Where results go: beside their inputs by default, several into a folder and never into the name of one file."""

from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from PIL import Image

from heatprior.images import name_result

NOISY = np.random.default_rng(0).normal(120, 20, (20, 24)).clip(0, 255).astype(np.uint8)
FAST = ("--sigma", 20, "--quality", "fast")


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("scans").mkdir()
    for name in ("a.png", "b.png", "scans/c.png"):
        Image.fromarray(NOISY).save(name)
    return tmp_path


def test_names_of_results():
    names = {
        "photo.png": "photo-denoised.png",
        "volume.ome.zarr": "volume-denoised.ome.zarr",
        "scans": "scans-denoised",
    }
    assert {name: name_result(name, "denoised") for name in names} == names
    assert name_result("scan.NII.GZ", "denoised") == "scan-denoised.NII.GZ"


def test_without_an_output_results_lie_beside_their_inputs(run: Run, pictures: Path):
    outcome = run("denoise", "a.png", *FAST)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("wrote a-denoised.png: 24×20 pixels")
    assert run("denoise", "b.png", "scans", *FAST).code == 0
    assert {path.name for path in pictures.iterdir()} >= {"b-denoised.png", "scans-denoised"}
    assert (pictures / "scans-denoised" / "c.png").is_file()
    assert_refused(run("denoise", "a.png", *FAST), "--force")
    assert run("upscale", "a.png", "--sigma", 20, "--prior", "patch7").code == 0
    assert (pictures / "a-enlarged.png").is_file()


def test_several_inputs_and_the_name_of_one_file_are_refused(run: Run, pictures: Path):
    assert_refused(run("denoise", "a.png", "b.png", "-o", "one.png", *FAST), "give a folder, such as -o one")
    assert_refused(run("denoise", "scans", "-o", "one.png", *FAST), "the name of one file")
    assert not (pictures / "one.png").exists()
