"""What the patch prior takes and gives: shapes, types, and refusals that name the remedy."""

import numpy as np
import pytest

from examples import patch_prior
from heatprior import InvalidInputError, tweedie
from heatprior.kernels.expert_moments import mixture_moments_plain

PRIOR = patch_prior(3, 8, 125)
METHODS = {
    "log_prob": lambda y, sigma: [PRIOR.log_prob(y, sigma)],
    "score": lambda y, sigma: [PRIOR.score(y, sigma)],
    "posterior": lambda y, sigma: list(PRIOR.posterior(y, sigma)),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def patches(*leading, dtype=np.float64):
    return np.random.default_rng(0).uniform(0.0, 1.0, (*leading, 9)).astype(dtype)


@every_method
@pytest.mark.parametrize("leading", [(), (1,), (4,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("per_patch", [False, True])
def test_leading_axes_are_kept_and_each_patch_is_on_its_own(method, leading, per_patch):
    y = patches(*leading)
    sigma = np.random.default_rng(1).uniform(0.0, 1.0, leading if per_patch else ())
    results = method(y, sigma)
    sigmas = np.broadcast_to(sigma, leading)
    for i, result in enumerate(results):
        alone = [method(y[index], sigmas[index])[i] for index in np.ndindex(*leading)]
        expected = np.array(alone).reshape(result.shape)
        # A matrix product may order its sums by the number of its rows.
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-12)


@every_method
@pytest.mark.parametrize("leading", [(0,), (0, 3), (2, 0)])
def test_no_patches_give_no_results(method, leading):
    for result in method(patches(*leading), 0.1):
        assert result.shape[: len(leading)] == leading
        assert result.size == 0


@every_method
def test_sigma_broadcasts_over_the_leading_axes(method):
    y, sigma = patches(2, 3), np.array([0.1, 0.2, 0.3])
    for shared, spelt_out in zip(method(y, sigma), method(y, np.tile(sigma, (2, 1))), strict=True):
        np.testing.assert_array_equal(shared, spelt_out)


@every_method
@pytest.mark.parametrize("rows", [1023, 1024, 1025, 2500])
def test_chunks_do_not_show(method, rows):
    y, sigma = patches(rows), np.random.default_rng(1).uniform(0.0, 1.0, rows)
    for whole, ends in zip(method(y, sigma), method(y[[0, -1]], sigma[[0, -1]]), strict=True):
        np.testing.assert_allclose(whole[[0, -1]], ends, rtol=1e-11, atol=1e-12)


@every_method
@pytest.mark.parametrize(
    ("given", "returned"),
    [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("longdouble", "float64")],
)
def test_results_have_the_type_of_the_patches(method, given, returned):
    for result in method(patches(3, dtype=given), 0.1):
        assert result.dtype == returned


@every_method
@pytest.mark.parametrize("sigma", [0, 1, np.float32(0.5), np.int64(2), [0.1, 0.2, 0.3], np.array([1, 2, 3])])
def test_sigma_may_be_any_kind_of_number(method, sigma):
    expected = method(patches(3), np.asarray(sigma, dtype=np.float64))
    for result, right in zip(method(patches(3), sigma), expected, strict=True):
        np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize("sigma", [0.0, 1e-6, 0.05, 100.0])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_single_precision_gives_the_results_of_the_plain_twin(sigma, scale):
    y = scale * (patches(300, dtype=np.float32) - np.float32(0.5))
    bank, experts = PRIOR.filters, PRIOR.experts
    u, variances = bank.analyse(y.astype(np.float64)), experts.base_sigma**2 + (sigma * bank.norms) ** 2
    twin = mixture_moments_plain(u, np.broadcast_to(variances, u.shape), experts.log_weights, experts.means)
    shrink = (sigma * bank.norms) ** 2 / variances
    axes = bank.matrix / bank.norms[:, None]
    variance = (shrink * experts.base_sigma**2 + shrink**2 * twin.variance) / bank.norms**2 @ axes**2 + sigma**2 / 9
    expected = {
        "log_prob": [twin.log_density.sum(axis=-1) + np.log(bank.norms).sum()],
        "score": [((twin.mean - u) / variances) @ bank.matrix],
        "posterior": [y + (shrink * (twin.mean - u)) @ (axes / bank.norms[:, None]), variance],
    }
    for name, method in METHODS.items():
        for result, right in zip(method(y, sigma), expected[name], strict=True):
            # 1e-5 of each value, or of the typical one where a sum passes through zero.
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6 * np.abs(right).mean())


@every_method
def test_patches_and_sigma_are_left_as_they_are(method):
    y, sigma = patches(3), np.full(3, 0.1)
    y.flags.writeable = sigma.flags.writeable = False
    method(y, sigma)
    np.testing.assert_array_equal(y, patches(3))


BAD_PATCHES = {
    "too many pixels": (patches(2).repeat(2, axis=1), "patches have 18 pixels but this prior acts on 9 (3×3); extract"),
    "too few pixels": (patches(2)[:, :4], "patches have 4 pixels but this prior acts on 9 (3×3); extract"),
    "a number": (np.float64(0.5), "patches have 1 pixels but this prior acts on 9 (3×3); extract them with size=3"),
    "8-bit integers": (np.zeros((2, 9), np.uint8), "patches are uint8; expected floats scaled to [0, 1] (divide"),
    "booleans": (np.zeros((2, 9), bool), "patches are bool; expected floats"),
    "NaN": (np.full((2, 9), np.nan), "patches hold NaN or infinite values; fill or leave out"),
    "one NaN among many": (np.where(np.arange(27000).reshape(3000, 9) == 26000, np.nan, 0.5), "patches hold NaN or"),
    "infinity": (np.full((2, 9), np.inf), "patches hold NaN or infinite values; fill or leave out"),
}


@every_method
@pytest.mark.parametrize("bad", BAD_PATCHES)
def test_bad_patches_are_refused_in_one_line_with_the_remedy(method, bad):
    y, message = BAD_PATCHES[bad]
    with pytest.raises(InvalidInputError) as refusal:
        method(y, 0.1)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


BAD_SIGMA = {
    "negative": (-0.1, "sigma is -0.1; it must be finite and not negative"),
    "negative for one patch": ([0.1, -1e-9, 0.1], "it must be finite and not negative"),
    "NaN": (np.nan, "it must be finite and not negative"),
    "far too large": (1e200, "sigma is 1e+200; it must be finite and not negative, at most 1e+06"),
    "infinite": (np.inf, "it must be finite and not negative"),
    "of the wrong length": (
        [0.1, 0.2],
        "sigma has shape (2,) but the patches are (3,); give one number, or one per patch",
    ),
    "with an axis too many": (np.full((3, 1, 1), 0.1), "sigma has shape (3, 1, 1) but the patches are (3,); give"),
    "a string": ("much", "sigma is of type <U4; expected a number or an array of numbers"),
    "missing": (None, "sigma is of type object; expected a number"),
    "complex": (0.1 + 0j, "sigma is of type complex128; expected a number"),
    "boolean": (True, "sigma is of type bool; expected a number"),
}


@every_method
@pytest.mark.parametrize("bad", BAD_SIGMA)
def test_bad_sigma_is_refused_in_one_line_with_the_remedy(method, bad):
    sigma, message = BAD_SIGMA[bad]
    with pytest.raises(InvalidInputError) as refusal:
        method(patches(3), sigma)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("bad", BAD_SIGMA)
def test_sampling_and_tweedie_refuse_bad_sigma_too(bad):
    sigma, _ = BAD_SIGMA[bad]
    with pytest.raises(InvalidInputError):
        PRIOR.sample(3, sigma, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError):
        tweedie(PRIOR, patches(3), sigma)


def test_bad_sigma_is_refused_also_without_patches():
    with pytest.raises(InvalidInputError, match="not negative"):
        PRIOR.log_prob(patches(0), -1.0)


def test_a_negative_count_of_samples_is_refused_and_zero_is_none():
    with pytest.raises(InvalidInputError, match="count is -1; expected 0 or more"):
        PRIOR.sample(-1, rng=np.random.default_rng(0))
    assert PRIOR.sample(0, rng=np.random.default_rng(0)).shape == (0, 9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tweedie_keeps_the_type_of_the_patches(dtype):
    assert tweedie(PRIOR, patches(3, dtype=dtype), [0.1, 0.2, 0.3]).dtype == dtype
