"""The wavelet prior: orthonormal, critically sampled bands, for which the diffusion of section 3.2 is exact."""

import laws
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest
from whole_images import OnGrid, analysis_matrix, span_on_grid, wavelet_prior

from heatprior import InvalidInputError
from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import tweedie
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper.claims.explicit_mixture import ExplicitMixture
from paper.wavelets import daubechies

TINY = OnGrid(wavelet_prior(1, 1, components=2), (2, 2))  # three coefficients: quadrature is possible
LARGER = {
    "Haar, two levels": OnGrid(wavelet_prior(1, 2), (4, 8)),
    "Haar, details split": OnGrid(wavelet_prior(1, 2, 1, components=9), (8, 4)),
    "Daubechies 2, longer than the grid": OnGrid(wavelet_prior(2, 2), (4, 4)),
    "Daubechies 4": OnGrid(wavelet_prior(4, 1, components=125), (6, 10)),
}
every_larger = pytest.mark.parametrize("flat", LARGER.values(), ids=LARGER)
SIGMA = 0.3


def spans(flat):
    return span_on_grid(flat.prior, flat.shape)


def draws(flat, count=4, sigma=SIGMA):
    return flat.sample(count, sigma, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "sigma", [1.0, 4.0]
)  # beside components as wide as 1 to 4: three dimensions bear no finer grid
def test_all_laws_of_quadrature_hold(sigma):
    span, y = spans(TINY), draws(TINY, sigma=sigma)
    laws.mass_is_one(TINY, span, sigma)
    laws.diffusion_is_a_semigroup(TINY, span, y, 2.0, sigma)
    laws.tweedie_is_the_posterior_mean(TINY, span, y, sigma)
    laws.variance_is_the_posterior_variance(TINY, span, y, sigma)


def test_samples_follow_the_density():
    laws.samples_follow_the_density(TINY, spans(TINY), 0.3, rng=np.random.default_rng(2))


def test_the_laws_of_samples_hold():
    span, y = spans(TINY), draws(TINY, sigma=1.0)
    laws.tweedie_is_the_posterior_mean_of_samples(TINY, span, y[0], 1.0, rng=np.random.default_rng(1))
    laws.variance_is_the_posterior_variance_of_samples(TINY, span, y[0], 1.0, rng=np.random.default_rng(1))


@pytest.mark.parametrize("flat", [TINY, *LARGER.values()], ids=["tiny", *LARGER])
@pytest.mark.parametrize("sigma", [0.05, 0.3, 2.0])
def test_all_laws_of_any_dimension_hold(flat, sigma):
    span, y = spans(flat), draws(flat, sigma=sigma)
    laws.score_is_the_gradient_of_log_prob(flat, span, y, sigma)
    laws.log_prob_solves_the_heat_equation(flat, span, y, sigma)
    laws.variance_is_tweedies_second_formula(flat, span, y, sigma)
    laws.samples_obey_steins_identity(flat, span, sigma, rng=np.random.default_rng(4))
    laws.sigma_per_patch_is_patch_by_patch(flat, y, np.array([0.1, 0.2, 0.3, 0.4]))


@every_larger
def test_the_basis_is_orthonormal_and_leaves_out_the_coarsest_approximation(flat):
    matrix, _ = analysis_matrix(flat.prior, flat.shape)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), rtol=0, atol=1e-12)
    assert len(matrix) == matrix.shape[1] - matrix.shape[1] // flat.prior.unit**2
    np.testing.assert_allclose(matrix @ np.ones(matrix.shape[1]), 0.0, rtol=0, atol=1e-12)


def test_it_is_the_patch_prior_of_its_basis_and_so_has_its_multiplied_out_mixture_as_oracle():
    prior = TINY.prior
    matrix, band = analysis_matrix(prior, (2, 2))
    patches = PatchPrior(FilterBank(prior.norms[band, None] * matrix), Experts(prior.experts.logits[band], 0.8))
    y = draws(TINY)
    np.testing.assert_allclose(TINY.log_prob(y, SIGMA), patches.log_prob(y, SIGMA), rtol=1e-12)
    mixture = ExplicitMixture.of(patches)
    np.testing.assert_allclose(TINY.log_prob(y, SIGMA), mixture.log_prob(y, SIGMA), rtol=1e-10)
    np.testing.assert_allclose(TINY.score(y, SIGMA), mixture.score(y, SIGMA), rtol=1e-9, atol=1e-9)


@every_larger
def test_cycle_spinning_is_the_mean_over_all_shifts(flat):
    prior, (height, width) = flat.prior, flat.shape
    image = 0.5 * draws(flat, 1).reshape(height, width)  # within the reach of the tables
    shifts = [(i, j) for i in range(prior.unit) for j in range(prior.unit)]
    means = [prior.posterior(np.roll(image, s, (0, 1)), SIGMA).mean for s in shifts]
    back = [np.roll(mean, (-i, -j), (0, 1)) for mean, (i, j) in zip(means, shifts, strict=True)]
    spun = prior.denoise(image, SIGMA)
    np.testing.assert_allclose(spun, np.mean(back, axis=0), rtol=0, atol=1e-4)  # tables and float32
    assert np.abs(spun - back[0]).max() > 1e-2  # one basis is another thing
    shifted = prior.denoise(np.roll(image, (1, 3), (0, 1)), SIGMA)
    np.testing.assert_allclose(shifted, np.roll(spun, (1, 3), (0, 1)), rtol=0, atol=1e-5)


def test_pieces_of_haars_basis_add_up():
    """Its coefficients belong to blocks: the density of an image is the product over pieces of 2^levels pixels."""
    prior = wavelet_prior(1, 2, 1)
    image = prior.sample(1, SIGMA, rng=np.random.default_rng(9), shape=(8, 12))[0]
    pieces = [image[i : i + 4, j : j + 4] for i in (0, 4) for j in (0, 4, 8)]
    np.testing.assert_allclose(prior.log_prob(np.stack(pieces), SIGMA).sum(), prior.log_prob(image, SIGMA), rtol=1e-12)


def test_images_of_any_size_can_be_denoised_but_only_multiples_have_a_density():
    prior = wavelet_prior(1, 3)
    image = np.random.default_rng(0).standard_normal((13, 9))
    assert np.isfinite(prior.denoise(image, SIGMA)).all()
    with pytest.raises(
        InvalidInputError, match=r"^images are 13×9 pixels but a basis of 3 levels needs multiples of 8"
    ):
        prior.log_prob(image, SIGMA)
    assert prior.sample(2, rng=np.random.default_rng(0), shape=(13, 9)).shape == (2, 13, 9)


def test_each_band_of_a_sample_follows_its_expert():
    """Kolmogorov–Smirnov, 2048 coefficients for each band; by chance one band in 1000 fails for a seed."""
    prior = wavelet_prior(2, 2, components=9)
    samples = prior.sample(8, SIGMA, rng=np.random.default_rng(5), shape=(64, 64))
    means = prior.experts.means
    for xi, weights, c in zip(prior.norms, prior.experts.weights, prior.analyse(samples), strict=True):
        width = np.hypot(prior.experts.base_sigma, xi * SIGMA)
        u = xi * c.reshape(-1)[:2048]

        def cdf(x, width=width, weights=weights):
            return ndtr((x[:, None] - means) / width) @ weights

        assert kstest(u, cdf).pvalue > 1e-3
        assert kstest(1.2 * u, cdf).pvalue < 1e-2


@pytest.mark.parametrize("order", range(1, 9))
def test_daubechies_filters_are_orthonormal_with_vanishing_moments(order):
    taps = daubechies(order)
    for m in range(order):
        np.testing.assert_allclose(taps[2 * m :] @ taps[: taps.size - 2 * m], float(m == 0), rtol=0, atol=1e-12)
    mirror = taps[::-1] * (-1.0) ** np.arange(taps.size)
    places = np.arange(taps.size) / taps.size
    moments = [mirror @ places**k for k in range(order + 1)]
    np.testing.assert_allclose(moments[:order], 0.0, rtol=0, atol=1e-9)
    assert abs(moments[order]) > 1e-6  # and no more than that


def test_they_are_those_of_pywavelets():
    pywt = pytest.importorskip("pywt")
    for order in range(1, 9):
        np.testing.assert_allclose(daubechies(order)[::-1], pywt.Wavelet(f"db{order}").dec_lo, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WaveletBasis(np.ones(2), 2), "not orthonormal"),
        (lambda: WaveletBasis(np.ones(3), 2), "even number of taps"),
        (lambda: WaveletBasis(daubechies(1), 0), "1 to 12 levels"),
        (lambda: WaveletBasis(daubechies(1), 2, 2), "fewer splits"),
        (lambda: daubechies(9), "expected 1 to 8"),
        (lambda: wavelet_prior(1, 1).log_prob(np.zeros((2, 2), int), 0.1), "expected floats"),
        (lambda: wavelet_prior(1, 1).log_prob(np.full((2, 2), np.nan), 0.1), "NaN or infinite"),
        (lambda: wavelet_prior(1, 1).log_prob(np.zeros(4), 0.1), r"expected \(H, W\)"),
        (lambda: wavelet_prior(1, 1).sample(-1, rng=np.random.default_rng(0)), "expected 0 or more"),
        (
            lambda: WaveletPrior(WaveletBasis(daubechies(1), 1), np.ones(2), Experts(np.zeros((3, 2)))),
            "each band needs one of each",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_tweedie_takes_one_sigma_for_each_image_even_where_there_are_as_many_as_rows():
    prior = wavelet_prior(1, 2)
    sigmas = np.linspace(0.05, 0.4, 8)
    y = prior.sample(8, sigmas, rng=np.random.default_rng(0), shape=(8, 8))
    each = [tweedie(prior, image, sigma) for image, sigma in zip(y, sigmas, strict=True)]
    np.testing.assert_allclose(tweedie(prior, y, sigmas), each, rtol=1e-12)
    np.testing.assert_allclose(tweedie(prior, y, sigmas), prior.posterior(y, sigmas).mean, rtol=1e-9, atol=1e-12)
    wrong = y + sigmas[:, None] ** 2 * prior.score(y, sigmas)  # a sigma for each row
    assert np.abs(wrong - each).max() > 1e-3
