"""The run of a mixture has the same folder as that of a patch prior, and one more column in its log."""

import numpy as np
import pytest
from synthetic import folder_of_images
from test_runs import timeless

import heatprior as hp
from heatprior.learning.mixture_training import MixtureTraining
from heatprior.learning.runs import Run, RunSettings
from heatprior.learning.train import gather
from heatprior.learning.training import LIKELIHOOD_COLUMNS, Loop


@pytest.fixture
def photos(tmp_path):
    return folder_of_images(tmp_path / "photos")


def mixture_loop(photos, config):
    material = gather(config, str(photos), validation=str(photos))
    return Loop(MixtureTraining(config, material.source), material.validation)


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_a_mixture_has_the_same_folder_with_the_likelihood_of_what_is_held_out(tmp_path, photos, sigma):
    config = hp.MixtureConfig(size=3, shapes=2, contrasts=2, batch=40, steps=15, sigma=sigma)
    settings = RunSettings(config, str(photos), str(photos), None, "digest")
    runs_of_it = [Run(tmp_path / name) for name in ("whole", "broken")]
    for run in runs_of_it:
        run.begin(settings)
        assert run.settings() == settings
    whole, broken = runs_of_it
    countdown = iter(range(7))
    whole.train(mixture_loop(photos, config))
    broken.train(mixture_loop(photos, config), stop=lambda: next(countdown, None) is None)
    broken.train(mixture_loop(photos, config))
    assert sorted(path.name for path in whole.folder.iterdir()) == sorted(path.name for path in broken.folder.iterdir())
    for name in ("prior.safetensors", "config.json"):
        assert (broken.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert timeless(broken.folder) == timeless(whole.folder)
    rows = whole.log().rows()
    assert tuple(rows[0]) == LIKELIHOOD_COLUMNS
    assert [row["step"] for row in rows if np.isfinite(row["log_likelihood"])] == [10, 15]
    # Of images that are noisy themselves there is no PSNR.
    assert [row["step"] for row in rows if np.isfinite(row["psnr25"])] == ([] if sigma else [10, 15])
    prior = hp.load(whole.folder / "prior.safetensors")
    assert isinstance(prior, hp.GaussianMixturePrior)
    assert ("psnr15" in prior.card["validation"]) == (sigma == 0.0)
    assert prior.card["validation"]["log_likelihood"] == round(rows[-1]["log_likelihood"], 2)
