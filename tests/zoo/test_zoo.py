import numpy as np
import pytest

from heatprior import PriorFileError, load
from heatprior.zoo import as_prior, names

every_name = pytest.mark.parametrize("name", names())


def noisy(prior):
    """A patch or image of the prior, with so much noise that dynamics are short."""
    return prior.sample(1, 10.0, rng=np.random.default_rng(0))


def test_some_prior_is_shipped():
    assert names()


@every_name
def test_every_shipped_prior_loads_and_its_card_says_how_it_was_made(name):
    prior = load(name)
    assert prior.card["name"] == name
    assert prior.card["made"]
    assert prior.card["trained on"] == "BSDS500, train and test"
    assert "seed" in prior.card["training"]
    assert np.isfinite(prior.log_prob(noisy(prior), 0.1)).all()


@every_name
def test_a_shipped_prior_can_be_saved_and_loaded_by_its_path(name, tmp_path):
    load(name).save(tmp_path / "copy.safetensors")
    copy, y = load(tmp_path / "copy.safetensors"), noisy(load(name))
    np.testing.assert_allclose(copy.log_prob(y, 0.1), load(name).log_prob(y, 0.1), rtol=1e-6)
    assert copy.card == load(name).card


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(PriorFileError) as refusal:
        load("no-such-prior")
    assert all(name in str(refusal.value) for name in names())
    assert "or give a path" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    with pytest.raises(PriorFileError, match="the prior is a NoneType; expected a name"):
        load(None)


def test_a_name_with_a_suffix_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PriorFileError, match=r"cannot read no\.safetensors: there is no such file; give the path"):
        load("no.safetensors")


def test_a_shipped_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / names()[0]).mkdir()
    assert load(names()[0]).card


def test_a_shipped_prior_is_loaded_once_and_a_file_anew(tmp_path):
    first = load("patch7")
    assert load("patch7") is first
    assert as_prior("patch7") is first
    first.save(tmp_path / "copy.safetensors")
    assert load(tmp_path / "copy.safetensors") is not load(tmp_path / "copy.safetensors")
