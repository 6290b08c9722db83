"""The examples in docstrings and pages run as they stand; the gallery's run when the site is built."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import heatprior as hp

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


def is_error(name):
    return isinstance(getattr(hp, name), type) and issubclass(getattr(hp, name), Exception)


PUBLIC = {name: getattr(hp, name) for name in hp.__all__ if name != "operators" and not is_error(name)}
PUBLIC |= {f"operators.{name}": getattr(hp.operators, name) for name in hp.operators.__all__}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_runs(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={"load": hp.load})
    assert example.examples
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """What the examples take for granted: images, a folder of them, an operator."""
    import skimage.data
    from PIL import Image
    from scipy.sparse import identity

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    grey = skimage.data.camera()[100:148, 100:148]
    colour = skimage.data.astronaut()[100:164, 200:264]
    photo = np.clip(colour + 8 * rng.standard_normal(colour.shape), 0, 255).astype(np.uint8)
    for folder in ("photos", "other photos"):
        Path(folder).mkdir()
        Image.fromarray(skimage.data.camera()[::4, ::4]).save(f"{folder}/a.png")
    noisy = grey / 255.0 + 0.1 * rng.standard_normal(grey.shape)
    seen = rng.random(grey.shape) < 0.5
    return {
        "hp": hp, "np": np, "rng": rng, "sigma": 0.1, "image": noisy, "noisy": noisy, "photo": photo, "photos": [photo],
        "kernel": np.ones((3, 3)) / 9.0, "seen": seen, "kspace": np.fft.fft2(noisy, norm="ortho"),
        "sinogram": noisy.ravel(), "matrix": identity(noisy.size),
    }  # fmt: skip


# Where an example is about something larger: smaller, to be done in time.
SMALLER = {
    "training": [("size=7, steps=2000", "size=3, steps=20, batch=200"), ("report=print", "report=None")],
    "errors": [("20, rng=rng", "2, rng=rng")],
    "inverse": [("photo, hp.operators.Blur", "image, hp.operators.Blur"), ("(256, 256)", "(48, 48)"),
                ("photo, hp.operators.Mask", "image, hp.operators.Mask"), ("sigma=2)", "sigma=0.05)")],
}  # fmt: skip
ELSEWHERE = {"torch", "large"}  # what they need is not installed here; tests/torch_modules runs those of torch
WITH_EXAMPLES = [page for page in PAGES if "```python" in page.read_text() and page.stem not in ELSEWHERE]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore:.*(colours|noise|sigma|correlated|clipped)")
def test_the_examples_of_a_page_run(page, stand_ins):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        code = block
        for large, small in SMALLER.get(page.stem, []):
            code = code.replace(large, small)
        exec(compile(code, page.name, "exec"), stand_ins)
