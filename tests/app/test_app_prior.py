"""What the view of the prior shows is what the prior says."""

import numpy as np
import pytest

from heatprior import load
from heatprior.app.pictures import OpenedPicture
from heatprior.app.prior_page import describe_filters, expert, likelihood, parse_sigma, potentials, samples
from heatprior.errors import InvalidInputError


def test_filters_come_by_rising_norm():
    about = describe_filters("patch7")
    assert about["norms"] == sorted(about["norms"])
    assert len(about["filters"]) == about["count"] == 48
    np.testing.assert_allclose(np.linalg.norm(about["filters"], axis=1), about["norms"], rtol=1e-3)


def test_diffusion_widens_a_potential_and_the_score_is_its_slope():
    quiet, loud = (np.array(potentials("patch7", sigma)["potentials"]) for sigma in (0.0, 0.2))
    assert np.ptp(loud, axis=1).max() < np.ptp(quiet, axis=1).max()
    found = expert("patch7", 5, 0.1)
    slope = -np.gradient(found["potential"], found["responses"])
    np.testing.assert_allclose(slope[2:-2], found["score"][2:-2], atol=0.05 * np.abs(slope).max())


def test_samples_are_a_picture_that_depends_on_the_seed():
    assert samples("patch7", 0.1, 1).startswith(b"BM")
    assert samples("patch7", 0.1, 1) != samples("patch7", 0.1, 2)


def test_the_likelihood_is_highest_near_the_noise_that_was_added(tmp_path):
    prior, sigma = load("patch7"), 0.1
    patches = prior.sample(400, sigma, rng=np.random.default_rng(5)).reshape(20, 20, 7, 7)
    path = tmp_path / "mosaic.npy"
    np.save(path, (0.5 + patches.swapaxes(1, 2).reshape(140, 140)).astype(np.float32))
    found = likelihood("patch7", OpenedPicture("p", path, path.name), 0)
    assert 0.8 * sigma < found["best"] < 1.3 * sigma  # most of the windows cut across four patches of the mosaic


@pytest.mark.parametrize("sigma", ["-0.1", "0.7", "x", "nan"])
def test_noise_levels_that_make_no_sense_are_refused(sigma):
    with pytest.raises(InvalidInputError):
        parse_sigma(sigma)


def test_no_other_prior_is_read():
    with pytest.raises(InvalidInputError):
        describe_filters("../../etc/passwd")
