"""What the documents say of the code is true of it."""

import doctest
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "paper") for path in sorted((ROOT / folder).rglob("*.py"))]
MATH = (ROOT / "docs" / "math.md").read_text()


def equations_named(text):
    return {int(number) for number in re.findall(r"Eq\. \((\d+)\)", text)}


def equations_in_the_table(text):
    return {int(number) for number in re.findall(r"^\| Eq\. \((\d+)\) \|", text, flags=re.MULTILINE)}


def test_every_equation_named_in_the_code_stands_in_the_table_of_math_md():
    for path in SOURCES:
        missing = equations_named(path.read_text()) - equations_in_the_table(MATH)
        assert not missing, f"{path.name} names Eq. {sorted(missing)}, which docs/math.md does not explain"


def test_an_equation_that_is_not_in_the_table_is_noticed():
    assert equations_named('"""As in Eq. (99)."""') - equations_in_the_table(MATH) == {99}


def names_in_the_tables(text):
    cells = [cell for line in text.splitlines() if line.startswith("| ") for cell in line.split("|")[2:4]]
    return {name for cell in cells for name in re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", cell)}


def test_every_class_and_method_named_in_math_md_exists():
    code = "\n".join(path.read_text() for path in SOURCES)
    names = names_in_the_tables(MATH)
    assert "ExplicitMixture.of" in names
    for name in names:
        owner, _, member = name.partition(".")
        assert re.search(rf"\bclass {owner}\b", code), f"docs/math.md names {name}"
        assert not member or re.search(rf"\b{member}\b", code), f"docs/math.md names {name}"


def test_the_examples_of_the_readme_run():
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert len(blocks) == 2
    assert names["clean"].shape == names["noisy"].shape == (200, 200)
    assert np.mean((names["denoised"] - names["clean"]) ** 2) < 0.3 * np.mean((names["noisy"] - names["clean"]) ** 2)
    assert names["mean"].shape == names["score"].shape == (1000, 49)


def test_every_item_of_the_paper_stands_in_the_page_of_the_reproduction():
    from paper.claims.items import ITEMS

    page = (ROOT / "docs" / "reproduction.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `([\w-]+)` \| `(paper/claims/\w+\.py)` \|", page, flags=re.MULTILINE)
    assert [name for name, _ in rows] == [item.name for item in ITEMS]
    assert [script for _, script in rows if not (ROOT / script).is_file()] == []


def test_every_setting_of_a_training_is_explained():
    from heatprior import MixtureConfig, TrainingConfig

    for heading, config in (("## Settings", TrainingConfig), ("## Mixtures of Gaussians", MixtureConfig)):
        section = (ROOT / "docs" / "training.md").read_text().partition(heading)[2].partition("\n## ")[0]
        table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
        missing = [field.name for field in fields(config) if f"`{field.name}`" not in table]
        assert missing == []


def test_the_examples_in_docstrings_run():
    from heatprior import zoo

    assert doctest.testmod(zoo).attempted > 0
    assert doctest.testmod(zoo).failed == 0


def test_the_version_is_the_same_everywhere():
    import heatprior

    version = re.escape(heatprior.__version__)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert re.search(rf"^## {version} \(", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert f'version: "{heatprior.__version__}"' in (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")


def test_the_package_takes_its_version_from_its_source_and_any_later_python():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/heatprior/version.py"
    assert project["project"]["requires-python"] == ">=3.11"


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    with (ROOT / "pyproject.toml").open("rb") as file:
        asked = {line.replace(" ", "") for line in tomllib.load(file)["project"]["dependencies"]}
    run = (
        (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8").partition("  run:\n")[2].partition("\n\n")[0]
    )
    listed = {line.strip("- ").replace("matplotlib-base", "matplotlib").replace(" ", "") for line in run.splitlines()}
    assert listed - {"python>=${{python_min}}"} == asked


def hops_of(text):
    """(file, name) of every hop in the paths of docs/architecture.md, such as `cli/denoise.py denoise`."""
    for file, names in re.findall(r"`([\w/]+\.py) ([\w., →]+)`", text):
        yield from ((file, name.rpartition(".")[2]) for name in re.split(r"[, →]+", names))


def undefined(hops):
    package = ROOT / "src" / "heatprior"
    return [
        (file, name)
        for file, name in hops
        if not (package / file).is_file() or not re.search(rf"\b(def|class) {name}\b", (package / file).read_text())
    ]


def test_every_hop_of_the_paths_through_the_code_exists():
    hops = list(hops_of((ROOT / "docs" / "architecture.md").read_text()))
    assert len(hops) > 15
    assert undefined(hops) == []
    assert undefined([("cli/denoise.py", "nonsense"), ("nowhere.py", "denoise")]) != []


def missing_files(text):
    """Files named in backticks that do not exist: below the root, the package, or the room of their row."""
    package, found = ROOT / "src" / "heatprior", []
    for line in text.splitlines():
        rooms = re.findall(r"`(\w+)/`", line.split("|")[1]) if line.startswith("| `") else []
        places = [ROOT, package, *(folder / room for room in rooms for folder in (package, ROOT))]
        for name in re.findall(r"`([\w/]+\.py)\b", line):
            anywhere = [] if rooms else package.rglob(name)
            below = [path for place in places[2:] for path in place.rglob(name)]
            if not (any((place / name).is_file() for place in places) or any(anywhere) or below):
                found.append(name)
    return found


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert missing_files(text) == []
    assert text.count(".py`") > 60
    assert missing_files("| `noise/` | `grey_scale.py` |\nSee `lazy.py`, `files.py`.") == ["grey_scale.py", "lazy.py"]
    assert missing_files("| `noise/` | `pipeline.py`, of another room |") == ["pipeline.py"]


def test_every_file_that_the_documents_link_to_exists():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        links = re.findall(r"\]\(([^)#:]+)[#)]", page.read_text())
        here = [link for link in links if not link.startswith("generated/")]  # `make docs` makes and checks those
        assert [link for link in here if not (page.parent / link).exists()] == []
