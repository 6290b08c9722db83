"""What the mixture of Gaussians takes and gives: shapes, types, refusals that name the remedy, and its file."""

from dataclasses import replace

import numpy as np
import pytest

from examples import GAUSSIAN_MIXTURES, gaussian_mixture
from heatprior import GaussianMixturePrior, InvalidInputError, PriorFileError, load
from heatprior.priors import gaussian_mixture as module
from heatprior.store import PriorFile, write_prior_file

every_mixture = pytest.mark.parametrize("prior", GAUSSIAN_MIXTURES.values(), ids=GAUSSIAN_MIXTURES)


def patches(prior, sigma, count=5):
    return prior.sample(count, sigma, rng=np.random.default_rng(0))


METHODS = {
    "log_prob": lambda prior, y, sigma: [prior.log_prob(y, sigma)],
    "score": lambda prior, y, sigma: [prior.score(y, sigma)],
    "posterior": lambda prior, y, sigma: list(prior.posterior(y, sigma)),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
PRIOR = GAUSSIAN_MIXTURES["five shapes on 4×4"]


@every_method
@pytest.mark.parametrize("leading", [(), (1,), (2, 3)])
@pytest.mark.parametrize("per_patch", [False, True])
def test_leading_axes_are_kept_and_each_patch_is_on_its_own(method, leading, per_patch):
    y = np.random.default_rng(0).random((*leading, 16))
    sigma = np.random.default_rng(1).random(leading if per_patch else ())
    sigmas = np.broadcast_to(sigma, leading)
    for i, result in enumerate(method(PRIOR, y, sigma)):
        alone = [method(PRIOR, y[index], sigmas[index])[i] for index in np.ndindex(*leading)]
        np.testing.assert_allclose(result, np.array(alone).reshape(result.shape), rtol=1e-11, atol=1e-12)


@every_method
@pytest.mark.parametrize("leading", [(0,), (2, 0)])
def test_no_patches_give_no_results(method, leading):
    for result in method(PRIOR, np.zeros((*leading, 16)), 0.1):
        assert result.shape[: len(leading)] == leading


@every_method
def test_neither_chunks_nor_the_order_of_noise_levels_show(method, monkeypatch):
    y, sigma = patches(PRIOR, 0.1, 60), np.tile([0.3, 0.1, 0.2], 20)
    expected = method(PRIOR, y, sigma)
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 5 * 15 * 7)  # seven patches
    for result, right in zip(method(PRIOR, y, sigma), expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-11, atol=1e-12)


@every_method
@pytest.mark.parametrize(
    ("given", "returned"), [("float64", "float64"), ("float32", "float32"), ("float16", "float32")]
)
def test_results_have_the_type_of_the_patches(method, given, returned):
    y = patches(PRIOR, 0.1).astype(given)
    for result, right in zip(method(PRIOR, y, 0.1), method(PRIOR, y.astype(np.float64), 0.1), strict=True):
        assert result.dtype == returned
        np.testing.assert_allclose(result, right, rtol=1e-6, atol=1e-7)  # computed in double precision, rounded once


@every_method
@pytest.mark.parametrize(
    ("y", "sigma", "message"),
    [
        (np.zeros((2, 9)), 0.1, "patches have 9 pixels but this prior acts on 16"),
        (np.zeros((2, 16), np.uint8), 0.1, "patches are uint8; expected floats"),
        (np.full((2, 16), np.nan), 0.1, "patches hold NaN or infinite values"),
        (np.full((2, 16), 1e30), 0.1, "patches hold values beyond"),
        (np.zeros((2, 16)), -0.1, "sigma is -0.1; it must be finite and not negative"),
        (np.zeros((2, 16)), [0.1, 0.2, 0.3], "sigma has shape"),
        (np.zeros((0, 16)), np.nan, "sigma is nan"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(method, y, sigma, message):
    with pytest.raises(InvalidInputError) as refusal:
        method(PRIOR, y, sigma)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_a_negative_count_of_samples_is_refused_and_zero_is_none():
    with pytest.raises(InvalidInputError, match="count is -1; expected 0 or more"):
        PRIOR.sample(-1, rng=np.random.default_rng(0))
    assert PRIOR.sample(0, rng=np.random.default_rng(0)).shape == (0, 16)


GOOD = {"covariances": np.stack([np.eye(3), 2 * np.eye(3)]), "log_weights": np.zeros((2, 1)), "contrasts": np.ones(1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"covariances": np.eye(3)}, r"expected \(K, d, d\)"),
        ({"covariances": np.zeros((0, 3, 3))}, r"expected \(K, d, d\)"),
        ({"covariances": np.ones((2, 3, 4))}, r"expected \(K, d, d\)"),
        ({"covariances": np.stack([np.eye(4)] * 2)}, "expected b² − 1"),
        ({"log_weights": np.zeros(2)}, "do not match 2 covariances"),
        ({"log_weights": np.zeros((2, 2))}, "do not match 2 covariances"),
        ({"contrasts": np.ones((1, 1))}, "do not match"),
        ({"covariances": np.stack([np.eye(3), np.nan * np.eye(3)])}, "NaN or infinite"),
        ({"log_weights": np.array([[0.0], [-np.inf]])}, "NaN or infinite"),
        ({"contrasts": np.zeros(1)}, "the least contrast is 0"),
        ({"contrasts": -np.ones(1)}, "the least contrast is -1"),
        ({"covariances": np.stack([np.eye(3), np.diag([1.0, 1.0, -0.1])])}, "covariance 1 has an eigenvalue of -0.1"),
        ({"covariances": np.stack([np.diag([1.0, 1.0, 0.0]), np.eye(3)])}, "covariance 0 has an eigenvalue of 0"),
    ],
)
def test_parameters_that_are_no_mixture_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        GaussianMixturePrior(**{**GOOD, **changes})


def test_weights_are_normalised_and_arrays_cannot_be_changed():
    prior = GaussianMixturePrior(**{**GOOD, "log_weights": np.array([[5.0], [3.0]])})
    np.testing.assert_allclose(np.exp(prior.log_weights).sum(), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        prior.covariances[0] = 0.0


def test_parameters_are_counted():
    assert gaussian_mixture(8, 50, (0.25, 1.0, 4.0)).parameters == 50 * 63 * 64 // 2 + 150


# A factor of relative error e changes squares by 2e, and the log-density by that times its own size, about a hundred.
@pytest.mark.parametrize(("dtype", "tolerance", "smaller"), [("float32", 1e-4, False), ("float16", 0.2, True)])
@every_mixture
def test_a_mixture_comes_back_with_its_card(prior, tmp_path, dtype, tolerance, smaller):
    path, card = tmp_path / "prior.safetensors", {"name": "test", "nested": {"sigma": [0.0, 0.4]}}
    replace(prior, card=card).save(path, dtype=dtype)
    loaded = load(path)
    assert isinstance(loaded, GaussianMixturePrior)
    assert loaded.card == card
    np.testing.assert_array_equal(loaded.contrasts, prior.contrasts)
    y = patches(prior, 0.1, 50)
    np.testing.assert_allclose(loaded.log_prob(y, 0.1), prior.log_prob(y, 0.1), rtol=0, atol=tolerance)
    replace(prior, card=card).save(tmp_path / "single.safetensors")
    assert (path.stat().st_size < (tmp_path / "single.safetensors").stat().st_size) == smaller


def tensors(prior):
    lower = np.tril_indices(len(prior.basis))
    return {
        "factors": np.linalg.cholesky(prior.covariances)[:, lower[0], lower[1]].astype(np.float32),
        "log_weights": prior.log_weights.astype(np.float32),
        "contrasts": prior.contrasts,
    }


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("factors", lambda x: x[:, :-1], r"are not \(K, d \(d \+ 1\) / 2\)"),
        ("factors", lambda x: x[0], r"are not \(K, d \(d \+ 1\) / 2\)"),
        ("factors", lambda x: x[:1], "do not match 1 covariances"),
        ("factors", lambda x: 0 * x, "has an eigenvalue of 0"),
        ("factors", lambda x: np.nan * x, "NaN or infinite"),
        ("log_weights", lambda x: x + 0.1, "the weights of the components sum to 1.1"),
        ("log_weights", lambda x: x + np.nan, "sum to nan"),
        ("log_weights", lambda x: x + 1e4, "the weights of the components sum to"),
        ("log_weights", lambda x: x.ravel(), r"are not \(K, d"),
        ("contrasts", lambda x: 0 * x, "the least contrast is 0"),
        ("contrasts", lambda x: x[:-1], "do not match"),
    ],
)
def test_a_file_that_holds_no_mixture_is_refused(tmp_path, name, change, message):
    path, right = tmp_path / "prior.safetensors", tensors(PRIOR)
    write_prior_file(path, PriorFile("mixture", right, {}))
    load(path)
    write_prior_file(path, PriorFile("mixture", {**right, name: change(right[name])}, {}))
    with pytest.raises(PriorFileError, match=message) as refusal:
        load(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_cut_short_or_lacks_an_array_is_refused(tmp_path):
    path = tmp_path / "prior.safetensors"
    PRIOR.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(PriorFileError, match="damaged or cut short"):
        load(path)
    write_prior_file(path, PriorFile("mixture", {"factors": tensors(PRIOR)["factors"]}, {}))
    with pytest.raises(PriorFileError, match="lacks contrasts, log_weights"):
        load(path)
