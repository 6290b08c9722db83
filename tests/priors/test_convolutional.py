"""The convolutional prior: what holds of its theorem (section 3.2), and by how much the rest fails."""

import laws
import numpy as np
import pytest
from laws import Span
from whole_images import OnGrid, convolutional_prior

from heatprior import InvalidInputError
from heatprior.priors.convolutional import NO_BAND, ConvolutionalPrior, Tiling
from heatprior.priors.experts import Experts
from paper.claims.heat_defects import heat_defect
from paper.claims.multiplied_out import MultipliedOut

SHAPES = [(1, 2), (2, 2), (7, 5), (8, 8), (6, 9), (16, 10)]
# Two pixels, of which the one band sees the difference: the smallest case of the defect.
WEIGHTS = [0.02, 0.03, 0.05, 0.1, 0.6, 0.1, 0.05, 0.03, 0.02]
TWO_PIXELS = ConvolutionalPrior(Tiling(1, 1), np.ones(1), Experts(np.log([WEIGHTS]), reach=1.0))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tiling", [Tiling(1, 1), Tiling(3, 4), Tiling(2, 5)], ids=str)
def test_the_sets_of_frequencies_are_symmetric_and_leave_out_only_zero(tiling, shape):
    labels = tiling.labels(shape)
    negative = np.roll(labels[::-1, ::-1], 1, axis=(0, 1))
    np.testing.assert_array_equal(labels, negative)
    assert (labels == NO_BAND).sum() == 1
    assert labels[0, 0] == NO_BAND
    assert labels.max() < tiling.count


def test_rings_and_angles_are_where_they_should_be():
    labels = Tiling(3, 4).labels((64, 64))
    at = {(0, 20): 0, (20, 20): 1, (20, 0): 2, (20, -20): 3, (0, 10): 4, (10, 0): 6, (0, 5): 8, (1, 1): 9, (0, 1): 8}
    assert {place: int(labels[place]) for place in at} == at


@pytest.mark.parametrize("shape", SHAPES)
def test_responses_are_real_convolutions_of_constant_gain(shape):
    """K_jᵀ K_j = xi_j² on the frequencies of the band, and the bands together see all but the mean."""
    prior = convolutional_prior(2, 3)
    y = np.random.default_rng(0).standard_normal(shape)
    total = np.zeros(shape)
    for j in range(prior.bands.count):
        spectrum = prior.bands.spectrum(j, shape)
        full = np.zeros(shape)
        full[:] = prior.bands.labels(shape) == j
        band = np.fft.ifft2(full * np.fft.fft2(y))
        np.testing.assert_allclose(band.imag, 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.fft.irfft2(spectrum * np.fft.rfft2(y), s=shape), band.real, rtol=0, atol=1e-12)
        total += band.real
    np.testing.assert_allclose(total, y - y.mean(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_score_is_the_gradient_of_log_prob_and_sigma_goes_image_by_image(shape, sigma):
    flat = OnGrid(convolutional_prior(2, 3), shape)
    y = np.random.default_rng(1).standard_normal((4, shape[0] * shape[1]))
    width = flat.prior.experts.base_sigma / flat.prior.norms.max()
    laws.score_is_the_gradient_of_log_prob(flat, Span(np.eye(1), np.array([width]), np.ones(1)), y, sigma)
    laws.sigma_per_patch_is_patch_by_patch(flat, y, np.array([0.1, 0.2, 0.3, 0.4]))


def test_brightness_has_no_influence():
    prior, y = convolutional_prior(2, 3), np.random.default_rng(2).standard_normal((6, 9))
    np.testing.assert_allclose(prior.log_prob(y + 3.0, 0.2), prior.log_prob(y, 0.2), rtol=1e-12)
    np.testing.assert_allclose(prior.score(y, 0.2).sum(), 0.0, rtol=0, atol=1e-10)


def test_denoising_is_tweedies_formula():
    prior, y = convolutional_prior(2, 3), np.random.default_rng(3).standard_normal((12, 9))
    tweedie = y + 0.3**2 * prior.score(y, 0.3)
    np.testing.assert_allclose(prior.denoise(y, 0.3), tweedie, rtol=0, atol=1e-4)  # tables and float32
    moved = prior.denoise(np.roll(y, (2, 5), (0, 1)), 0.3)
    np.testing.assert_allclose(moved, np.roll(prior.denoise(y, 0.3), (2, 5), (0, 1)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.3, 2.0])
def test_the_covariance_of_the_components_is_diffused_rightly(sigma):
    """The law that the theorem does prove: with one component the model is a Gaussian, and exact.

    Its precision is Σ_j K_jᵀ K_j / sigma_j²(t); noise of variance sigma² must add sigma² to every eigenvalue of the
    covariance at sigma = 0, whatever the tiling.
    """
    shape, tiling = (4, 6), Tiling(2, 2)
    experts = Experts(np.tile([60.0, 0.0], (tiling.count, 1)))  # the other component has no weight to speak of
    prior = ConvolutionalPrior(tiling, np.geomspace(0.5, 2.0, tiling.count), experts)
    pixels = np.eye(24).reshape(-1, *shape)

    def covariance(sigma):
        slopes = prior.score(pixels, sigma) - prior.score(np.zeros(shape), sigma)
        return np.linalg.pinv(-slopes.reshape(24, 24), hermitian=True)

    seen = np.eye(24) - 1.0 / 24
    np.testing.assert_allclose(covariance(sigma), covariance(0.0) + sigma**2 * seen, rtol=0, atol=1e-9 * (1 + sigma**2))


def defect(prior, shape, sigma, count=400):
    truth = MultipliedOut(prior, shape)
    flat = OnGrid(prior, shape)
    y = truth.sample(count, sigma, rng=np.random.default_rng(0)).reshape(count, -1)
    return heat_defect(
        lambda y, s: flat.log_prob(y, s) - truth.log_normaliser(s),
        flat.score,
        lambda y, s: truth.log_prob(y.reshape(-1, *shape), s),
        y,
        truth.axes,
        sigma,
        prior.experts.base_sigma / prior.norms.max(),
    )


@pytest.mark.parametrize(("prior", "shape"), [(TWO_PIXELS, (1, 2)), (convolutional_prior(1, 2, 3), (2, 2))])
def test_without_noise_the_multiplied_out_mixture_is_the_model_with_its_normaliser(prior, shape):
    truth = MultipliedOut(prior, shape)
    y = np.random.default_rng(4).standard_normal((5, *shape))
    model = prior.log_prob(y, 0.0) - truth.log_normaliser(0.0)
    np.testing.assert_allclose(truth.log_prob(y, 0.0), model, rtol=1e-10)


def test_the_multiplied_out_mixture_obeys_the_laws_of_diffusion():
    """On two pixels: normalised and a semigroup, by quadrature along its one axis."""
    truth = MultipliedOut(TWO_PIXELS, (1, 2))
    span = Span(truth.axes, np.array([TWO_PIXELS.experts.base_sigma]), np.array([2.0]))

    class Flat:
        def log_prob(self, y, sigma):
            return truth.log_prob(np.reshape(y, (-1, 1, 2)), sigma)

    y = truth.sample(4, 0.3, rng=np.random.default_rng(0)).reshape(4, 2)
    laws.mass_is_one(Flat(), span, 0.3)
    laws.diffusion_is_a_semigroup(Flat(), span, y, 0.2, 0.3)


def test_two_pixels_show_the_defect():
    """docs/math.md gives these figures: the weights of the components, and Z, move with t."""
    truth = MultipliedOut(TWO_PIXELS, (1, 2))
    sigma = np.sqrt(0.1)
    z = np.linspace(-6.0, 6.0, 2401)
    images = (z[:, None] * truth.axes[0]).reshape(-1, 1, 2)
    model = np.exp(TWO_PIXELS.log_prob(images, sigma) - truth.log_normaliser(sigma))
    true = np.exp(truth.log_prob(images, sigma))
    step = z[1] - z[0]
    np.testing.assert_allclose([model.sum() * step, true.sum() * step], 1.0, rtol=1e-9)
    # pinned: stored numbers of this example
    np.testing.assert_allclose(
        np.exp([truth.log_normaliser(0.0), truth.log_normaliser(sigma)]), [1.0624, 0.7869], rtol=1e-4
    )
    np.testing.assert_allclose(np.abs(model - true).max() / true.max(), 0.0458, rtol=1e-2)


def test_the_defect_vanishes_where_a_band_has_as_many_dimensions_as_responses():
    """A negative control: with one component in the weights of the experts there is nothing to move."""
    single = ConvolutionalPrior(Tiling(1, 1), np.ones(1), Experts(np.array([[0.0, 80.0]])))
    found = defect(single, (1, 2), 0.3)
    assert found.residual < 1e-7
    assert found.total_variation < 1e-10
    several = defect(TWO_PIXELS, (1, 2), 0.3)
    assert several.residual > 1e-2
    assert several.total_variation > 1e-3


def test_a_finer_tiling_is_further_from_the_true_diffusion():
    """More bands, fewer dimensions in each of them for the same number of responses."""
    experts = np.log([0.15, 0.7, 0.15])
    one, three = (
        defect(ConvolutionalPrior(Tiling(n, 1), np.ones(n), Experts(np.tile(experts, (n, 1)))), (1, 8), 0.5, 100)
        for n in (1, 3)
    )
    assert three.residual > 1.5 * one.residual
    assert three.total_variation > 1.5 * one.total_variation


def test_a_mixture_too_large_to_write_out_is_refused():
    with pytest.raises(InvalidInputError, match=r"^5\^24 components are too many to write out; at most \d+$"):
        MultipliedOut(convolutional_prior(1, 1), (4, 6)).log_prob(np.zeros((4, 6)), 0.1)


@pytest.mark.parametrize(("scales", "orientations"), [(0, 4), (3, 0), (3, 65)])
def test_tilings_that_make_no_sense_are_refused(scales, orientations):
    with pytest.raises(InvalidInputError, match="expected 1 to 64"):
        Tiling(scales, orientations)
