"""The kernel of denoising with mixtures against its twin, which compares all shapes for every patch."""

import numpy as np
import pytest

from examples import gaussian_mixture, with_learnt_step
from heatprior.kernels.candidates import RUN
from heatprior.kernels.patches import EVERY, average, extract
from heatprior.kernels.shapes import SLOPE, add_changes, changes_plain
from heatprior.noise_value import NoiseSpectrum
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import shape_tables
from heatprior.priors.protocol import tweedie

RIVAL = 0.3
ONE_LEVEL = np.zeros((1, 1), np.int32)
MIXTURES = {
    "EPLL's": gaussian_mixture(3, 7, seed=1, narrowest=0.01),
    "one shape": gaussian_mixture(3, 1, (0.25, 4.0), seed=2),
    "contrasts": gaussian_mixture(4, 5, (0.1, 1.0, 10.0), seed=3, narrowest=0.02),
    "more axes than a register has": gaussian_mixture(6, 3, (0.5, 2.0), seed=4, narrowest=0.003),
}
CORRELATED = NoiseSpectrum(1.0 + 0.9 * np.cos(2 * np.pi * np.add.outer(np.arange(16), np.arange(16)) / 16))
every_mixture = pytest.mark.parametrize("name", MIXTURES)


def noisy(shape, seed=0, sigma=0.3):
    """Shades, so that neighbouring patches differ in contrast, and noise."""
    rng = np.random.default_rng(seed)
    shades = np.cumsum(rng.standard_normal(shape), axis=1) / 10
    return (shades + sigma * rng.standard_normal(shape)).astype(np.float32)


def kernel(prior, image, sigmas, levels=ONE_LEVEL, candidates=None, grid=EVERY, guide=None, **options):
    """The mean change of every pixel; all shapes are candidates unless told otherwise."""
    total = np.zeros((2, *image.shape), np.float32)
    shapes = len(prior.covariances) if candidates is None else candidates
    places = tuple(grid.starts(length, prior.size) for length in image.shape)
    add_changes(image, prior.size, places, levels, shape_tables(prior, sigmas, **options), shapes, total, guide)
    return total[0] / total[1]


def twin(prior, image, sigmas, levels=ONE_LEVEL, guide=None, **options):
    patches = extract(image.astype(np.float64), prior.size)
    tables = shape_tables(prior, sigmas, **options)
    guides = None if guide is None else extract(guide.astype(np.float64), prior.size)
    each = np.broadcast_to(levels.ravel() if levels.size > 1 else levels[0], len(patches))
    changes, weights = np.zeros(patches.shape), np.zeros(patches.shape)
    for level in np.unique(each):
        here = each == level
        own = None if guides is None else guides[here]
        changes[here], weights[here] = changes_plain(patches[here], tables, level, own)
    total, counted = (average(values, image.shape, prior.size) for values in (weights * changes, weights))
    return total / counted


@every_mixture
@pytest.mark.parametrize("shape", [(6, 6), (7, 40), (41, 7), (23, RUN // 4)])
def test_with_all_shapes_as_candidates_the_kernel_is_its_twin(name, shape):
    prior, image = MIXTURES[name], noisy(shape)
    expected = twin(prior, image, (0.2,))
    np.testing.assert_allclose(kernel(prior, image, (0.2,)), expected, atol=1e-5)
    assert np.abs(twin(prior, image, (0.21,)) - expected).max() > 1e-4


@every_mixture
def test_the_kernel_is_its_twin_for_one_noise_level_per_patch(name):
    prior, image = MIXTURES[name], noisy((20, 33), 1)
    rng = np.random.default_rng(2)
    levels = rng.integers(0, 6, (21 - prior.size, 34 - prior.size)).astype(np.int32)
    sigmas = tuple(np.geomspace(0.05, 0.5, 6).tolist())
    expected = twin(prior, image, sigmas, levels)
    np.testing.assert_allclose(kernel(prior, image, sigmas, levels), expected, atol=1e-5)
    assert np.abs(kernel(prior, image, sigmas, levels[::-1].copy()) - expected).max() > 1e-3


def alone(prior: GaussianMixturePrior, k: int) -> GaussianMixturePrior:
    """Shape k at all its contrasts, and no other."""
    return GaussianMixturePrior(prior.covariances[k : k + 1], prior.log_weights[k : k + 1], prior.contrasts)


def peaks(prior: GaussianMixturePrior, patches, sigma):
    """log max_g π_kg G(y; 0, c_g Σ_k + sigma² Id), (n, K), from the covariances themselves."""
    u = patches @ prior.basis.T
    found = np.full((len(u), len(prior.covariances)), -np.inf)
    for k, covariance in enumerate(prior.covariances):
        for g, contrast in enumerate(prior.contrasts):
            seen = contrast * covariance + sigma**2 * np.eye(u.shape[1])
            squares = np.einsum("nd,nd->n", u, np.linalg.solve(seen, u.T).T)
            value = prior.log_weights[k, g] - 0.5 * (squares + np.linalg.slogdet(seen)[1])
            found[:, k] = np.maximum(found[:, k], value)
    return found


def test_a_patch_becomes_the_posterior_mean_over_the_best_shape_and_its_rivals():
    prior, sigma = with_learnt_step(MIXTURES["contrasts"], rival=RIVAL), 0.1
    patches = prior.sample(60, sigma, rng=np.random.default_rng(0))
    found = peaks(prior, patches, sigma)
    shares = np.exp(found - found.max(axis=1, keepdims=True))
    shares = np.where(shares < RIVAL, 0.0, shares)
    shares /= shares.sum(axis=1, keepdims=True)
    means = np.stack([alone(prior, k).posterior(patches, sigma).mean for k in range(len(prior.covariances))], axis=1)
    off = []
    for patch, own, share, mean in zip(patches, found, shares, means, strict=True):
        result = patch + kernel(prior, patch.reshape(4, 4).astype(np.float32), (sigma,)).ravel()
        np.testing.assert_allclose(result, share @ mean, atol=1e-5)
        off.append(np.abs(result - mean[np.argsort(own)[-2]]).max())
    assert np.median(off) > 0.01  # the second best is another
    assert len(set(shares.argmax(axis=1))) > 2  # and not always the same
    rivals = (shares > 0.0).sum(axis=1)
    assert rivals.min() == 1
    assert rivals.max() > 1


def test_without_rivals_it_is_the_mean_of_the_best_shape_alone():
    prior, sigma = MIXTURES["contrasts"], 0.1
    patches = prior.sample(60, sigma, rng=np.random.default_rng(0))
    best = peaks(prior, patches, sigma).argmax(axis=1)
    for patch, k in zip(patches, best, strict=True):
        result = patch + kernel(prior, patch.reshape(4, 4).astype(np.float32), (sigma,)).ravel()
        np.testing.assert_allclose(result, alone(prior, k).posterior(patch, sigma).mean, atol=1e-5)


@every_mixture
def test_patches_count_by_their_place_and_by_their_components(name):
    plain, image = MIXTURES[name], noisy((20, 33), 1)
    prior = with_learnt_step(plain)
    expected = twin(prior, image, (0.2,))
    np.testing.assert_allclose(kernel(prior, image, (0.2,)), expected, atol=1e-5)
    assert np.abs(kernel(plain, image, (0.2,)) - expected).max() > 1e-3


def test_only_ratios_of_weights_count():
    prior, image = with_learnt_step(MIXTURES["contrasts"]), noisy((20, 33))
    expected = kernel(prior, image, (0.2,))
    for factor in (3.0, 1e-30, 1e30):
        entry = {key: (factor * np.array(values)).tolist() for key, values in prior.card["step"].items()}
        entry.update(rival=RIVAL, candidates=4)
        other = GaussianMixturePrior(prior.covariances, prior.log_weights, prior.contrasts, {"step": entry})
        np.testing.assert_allclose(kernel(other, image, (0.2,)), expected, atol=1e-6)


@every_mixture
def test_rivals_and_weights_have_the_noise_level_of_each_patch(name):
    prior, image = with_learnt_step(MIXTURES[name]), noisy((20, 33), 1)
    levels = np.random.default_rng(2).integers(0, 6, (21 - prior.size, 34 - prior.size)).astype(np.int32)
    sigmas = tuple(np.geomspace(0.05, 0.5, 6).tolist())
    expected = twin(prior, image, sigmas, levels)
    np.testing.assert_allclose(kernel(prior, image, sigmas, levels), expected, atol=1e-5)
    assert np.abs(kernel(prior, image, sigmas, levels[::-1].copy()) - expected).max() > 1e-3


def test_few_candidates_are_enough_where_neighbours_are_alike():
    """Half an image is smooth along rows, half along columns: away from the border, two candidates are all it takes."""
    rng = np.random.default_rng(3)
    along_rows, along_columns = rng.standard_normal((30, 1)).repeat(30, 1), rng.standard_normal((1, 30)).repeat(30, 0)
    image = np.concatenate([along_rows, along_columns])
    image = (0.3 * image + 0.02 * rng.standard_normal(image.shape)).astype(np.float32)
    rows, columns = np.divmod(np.arange(16), 4)
    basis = MIXTURES["contrasts"].basis
    shapes = [basis @ (0.1 * (same == same[:, None]) + 1e-4 * np.eye(16)) @ basis.T for same in (rows, columns)]
    shapes += list(MIXTURES["contrasts"].covariances)
    prior = GaussianMixturePrior(np.array(shapes), np.zeros((len(shapes), 1)))
    inside = np.r_[0:26, 34:60]
    whole = kernel(prior, image, (0.02,))[inside]
    np.testing.assert_allclose(kernel(prior, image, (0.02,), candidates=2)[inside], whole, atol=1e-6)
    assert np.abs(kernel(alone(prior, 0), image, (0.02,))[inside] - whole).max() > 0.1


def test_more_candidates_than_shapes_change_nothing():
    prior, image = MIXTURES["EPLL's"], noisy((20, 21))
    np.testing.assert_array_equal(kernel(prior, image, (0.2,), candidates=20), kernel(prior, image, (0.2,)))


# A guide: one more direction of the prior, in which a patch may lie.


def beside(guide, share, seed=5):
    """A difference that is a part of its guide, and noise."""
    return (share * guide + noisy(guide.shape, seed, 0.1)).astype(np.float32)


def with_slope(prior, guide):
    """The mixture whose every component comes a second time with the guide (d,) as one more direction."""
    covariances = (prior.contrasts[:, None, None, None] * prior.covariances).reshape(-1, *prior.covariances.shape[1:])
    wider = covariances + float(SLOPE) ** 2 * np.outer(guide, guide)
    log_weights = np.tile(prior.log_weights.T.ravel(), 2)[:, None]
    return GaussianMixturePrior(np.concatenate([covariances, wider]), log_weights)


@pytest.mark.parametrize(("sigma", "negligible"), [(0.02, 0.0), (0.2, 0.0), (0.2, 0.03), (0.02, 0.03)])
@pytest.mark.parametrize("spectrum", [None, CORRELATED], ids=["white", "correlated"])
def test_beside_a_guide_a_patch_becomes_its_mean_by_tweedie(sigma, negligible, spectrum):
    """y + sigma² C ∇ log f(y): of the mixture that has the guide as a direction, and of that with another guide not."""
    prior, image, off = MIXTURES["one shape"], noisy((6, 30), 3, 0.1), []
    colour, kept = beside(image, 0.7), {"negligible": negligible, "spectrum": spectrum}
    noise = np.eye(8) if spectrum is None else prior.basis @ spectrum.covariance(3) @ prior.basis.T
    root = np.linalg.cholesky(noise)
    for column in range(28):
        guide, y = (values[:3, column : column + 3] for values in (image, colour))
        coordinates = [prior.basis @ values.ravel().astype(float) for values in (guide, y, image[3:, :3])]
        white, y_white, wrong = (np.linalg.solve(root, values) for values in coordinates)
        inverse = np.linalg.inv(root)
        own = GaussianMixturePrior(inverse @ prior.covariances @ inverse.T, prior.log_weights, prior.contrasts)
        expected, other = (
            (root @ tweedie_of(with_slope(own, v), y_white, sigma) - coordinates[1]) @ prior.basis
            for v in (white, wrong)
        )
        found = kernel(prior, y.copy(), (sigma,), guide=guide.copy(), **kept).ravel()
        np.testing.assert_allclose(found, expected, atol=1e-5 if negligible == 0.0 else 0.05 * np.abs(y).max())
        off.append(np.abs(other - expected).max())
    assert np.median(off) > 0.03 * sigma


def tweedie_of(prior, coordinates, sigma):
    return prior.basis @ tweedie(prior, coordinates @ prior.basis, sigma)


@every_mixture
@pytest.mark.parametrize("negligible", [0.0, 0.03, 0.5])
@pytest.mark.parametrize("spectrum", [None, CORRELATED], ids=["white", "correlated"])
def test_beside_a_guide_the_kernel_is_its_twin(name, negligible, spectrum):
    """Axes that are left out are seen by the guide too."""
    prior, guide = with_learnt_step(MIXTURES[name]), noisy((23, 40), 4, 0.1)
    image, options = beside(guide, 0.6), {"negligible": negligible, "spectrum": spectrum}
    expected = twin(prior, image, (0.2,), guide=guide, **options)
    np.testing.assert_allclose(kernel(prior, image, (0.2,), guide=guide, **options), expected, atol=1e-5)
    assert np.abs(kernel(prior, image, (0.2,), guide=guide[::-1].copy(), **options) - expected).max() > 1e-3


@every_mixture
def test_beside_a_guide_patches_have_noise_levels_of_their_own(name):
    prior, guide = with_learnt_step(MIXTURES[name]), noisy((20, 33), 1)
    image, levels = beside(guide, 0.6), np.random.default_rng(2).integers(0, 6, (21 - prior.size, 34 - prior.size))
    levels, sigmas = levels.astype(np.int32), tuple(np.geomspace(0.05, 0.5, 6).tolist())
    expected = twin(prior, image, sigmas, levels, guide)
    np.testing.assert_allclose(kernel(prior, image, sigmas, levels, guide=guide), expected, atol=1e-5)


def test_a_guide_without_contrast_tells_nothing():
    prior, image = MIXTURES["contrasts"], noisy((20, 33))
    flat = np.full(image.shape, 0.4, np.float32)
    np.testing.assert_allclose(kernel(prior, image, (0.2,), guide=flat), kernel(prior, image, (0.2,)), atol=1e-6)


@pytest.mark.parametrize("sigma", [1e-5, 1e-3])
def test_with_next_to_no_noise_a_difference_stays_beside_its_guide(sigma):
    guide = noisy((20, 33))
    change = kernel(MIXTURES["contrasts"], beside(guide, 0.7), (sigma,), guide=guide)
    assert np.abs(change).max() < 5 * sigma
