"""Priors by name: a shipped one or an exhibit, of which no user's `load` knows."""

import pytest

import heatprior as hp
import paper
from heatprior import zoo

SHIPPED = ["conv", "fast7", "mixture", "patch15", "patch7", "tuned", "wavelet-density"]


def test_the_wheel_ships_what_a_user_chooses():
    assert zoo.names() == SHIPPED


@pytest.mark.parametrize("path", sorted(paper.EXHIBITS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_exhibits_load_here_and_nowhere_else(path):
    assert paper.load(path.stem).card["name"] == path.stem
    with pytest.raises(hp.PriorFileError, match="or give a path"):
        hp.load(path.stem)


def test_a_shipped_prior_and_a_path_load_too(tmp_path):
    assert paper.load("patch7").card == hp.load("patch7").card
    paper.load("patch7").save(tmp_path / "mine.safetensors")
    assert paper.load(str(tmp_path / "mine.safetensors")).card == hp.load("patch7").card
