"""The loss is the denoising error of the prior, and its gradient is exact."""

import numpy as np
import pytest
from scipy.special import log_softmax

from examples import filter_bank, patch_prior
from heatprior import tweedie
from heatprior.kernels import threads
from heatprior.learning.patch_training import FILTERS, LOGITS, NoisyBatch, match_scores

REACH = 0.8


def batch_of(size, counts=(40, 33), *, seed=0):
    """Patches with structure and noise of all levels, in pieces of unequal size."""
    rng = np.random.default_rng(seed)
    pieces = []
    for count in counts:
        clean = np.cumsum(rng.normal(scale=0.15, size=(size * size, count)), axis=0)
        sigma = rng.uniform(0.0, 0.4, count)
        sigma[0], sigma[1] = 1e-6, 2.0
        pieces.append(NoisyBatch(clean, rng.standard_normal(clean.shape), sigma))
    return pieces


def tilted_filters(size, count):
    return np.random.default_rng(7).normal(scale=1.0 / size, size=(count, size * size))


POINTS = {
    "orthogonal filters": lambda: [filter_bank(2, 3).matrix.copy(), np.random.default_rng(1).normal(size=(3, 5))],
    "filters that are not orthogonal": lambda: [tilted_filters(2, 3), np.random.default_rng(2).normal(size=(3, 6))],
    "more filters than pixels": lambda: [tilted_filters(2, 6), np.random.default_rng(3).normal(size=(6, 2))],
    "filters that see the brightness": lambda: [
        filter_bank(2, 4, zero_mean=False).matrix.copy(),
        np.random.default_rng(4).normal(size=(4, 3)),
    ],
    "logits over a range of 80": lambda: [filter_bank(2, 3).matrix.copy(), np.linspace(-80, 0, 15).reshape(3, 5)],
    "logits over a range of 1000": lambda: [
        filter_bank(2, 3).matrix.copy(),
        1000.0 * np.random.default_rng(5).random((3, 5)),
    ],
    "large logits that hardly differ": lambda: [
        filter_bank(2, 3).matrix.copy(),
        1e5 + np.random.default_rng(6).normal(size=(3, 5)),
    ],
    "long and short filters": lambda: [
        np.array([[0.01], [1.0], [6.0]]) * filter_bank(2, 3).matrix,
        np.random.default_rng(8).normal(size=(3, 125)),
    ],
}
every_point = pytest.mark.parametrize("make", POINTS.values(), ids=POINTS)


def loss_on(batch):
    """The loss alone, as a function of the point."""
    return lambda point: match_scores(batch, REACH, point, ())[0]


def slope_by_differences(function, point, block, direction, step):
    """Central differences of two widths, extrapolated: an error of the fourth order."""

    def slope(width):
        ahead, behind = ([x.copy() for x in point] for _ in range(2))
        ahead[block] += width * direction
        behind[block] -= width * direction
        return (function(ahead) - function(behind)) / (2 * width)

    return (4 * slope(step / 2) - slope(step)) / 3


@every_point
@pytest.mark.parametrize("block", [FILTERS, LOGITS])
def test_the_gradient_is_that_of_finite_differences(make, block):
    point, batch = make(), batch_of(2)
    _, (gradient,) = match_scores(batch, REACH, point, (block,))
    # Differences of width 1e-4 of a loss of size 1 are right to 1e-12, by their curvature and by rounding/width.
    step = 1e-4
    tolerance = 1e-6 * max(np.abs(gradient).max(), 1e-2)
    for index in np.ndindex(gradient.shape):
        if gradient.size > 100 and index[1] % 13:
            continue
        direction = np.zeros(gradient.shape)
        direction[index] = 1.0
        assert gradient[index] == pytest.approx(
            slope_by_differences(loss_on(batch), point, block, direction, step), rel=0, abs=tolerance
        )


def test_the_gradient_of_the_papers_start_is_that_of_finite_differences_in_any_direction():
    point = [filter_bank(5, 24).matrix.copy(), np.random.default_rng(0).normal(size=(24, 125))]
    batch, rng = batch_of(5), np.random.default_rng(1)
    _, gradients = match_scores(batch, REACH, point)
    for block, gradient in enumerate(gradients):
        for _ in range(5):
            direction = rng.standard_normal(gradient.shape)
            direction /= np.linalg.norm(direction)
            expected = slope_by_differences(loss_on(batch), point, block, direction, 1e-3)
            assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_a_gradient_that_forgets_the_width_of_the_experts_is_noticed():
    """Without the derivative in the variance, which depends on the norms of the filters, the slope is wrong."""
    point, batch = POINTS["orthogonal filters"](), batch_of(2)
    _, (gradient,) = match_scores(batch, REACH, point, (FILTERS,))
    stretch = point[FILTERS] / np.linalg.norm(point[FILTERS])
    right = slope_by_differences(loss_on(batch), point, FILTERS, stretch, 1e-4)

    def loss_at_fixed_width(moved):
        longer = np.linalg.norm(moved[FILTERS]) / np.linalg.norm(point[FILTERS])
        narrower = [NoisyBatch(p.clean, p.noise, p.sigma / longer) for p in batch]
        return loss_on(narrower)(moved)

    assert (gradient * stretch).sum() == pytest.approx(right, rel=1e-6)
    wrong = slope_by_differences(loss_at_fixed_width, point, FILTERS, stretch, 1e-4)
    assert wrong != pytest.approx(right, rel=0.01)


@every_point
def test_single_precision_keeps_six_digits_of_the_loss_and_four_of_its_gradients(make):
    point, batch = make(), batch_of(2, (400, 333))
    single = [NoisyBatch(*(x.astype(np.float32) for x in (p.clean, p.noise, p.sigma))) for p in batch]
    value, gradients = match_scores(single, REACH, point)
    expected, exact = match_scores(batch, REACH, point)
    assert value == pytest.approx(expected, rel=1e-6)
    for gradient, of_double in zip(gradients, exact, strict=True):
        assert gradient.dtype == np.float64
        # Chains and moments keep five digits of float32.
        assert np.linalg.norm(gradient - of_double) < 1e-4 * np.linalg.norm(of_double)
    other = [NoisyBatch(p.clean, p.noise, np.float32(1.01) * p.sigma) for p in single]  # the control
    value, gradients = match_scores(other, REACH, point)
    assert value != pytest.approx(expected, rel=1e-6)
    for gradient, of_double in zip(gradients, exact, strict=True):
        assert np.linalg.norm(gradient - of_double) > 1e-4 * np.linalg.norm(of_double)


def test_the_loss_is_the_denoising_error_of_the_prior_over_the_noise():
    """Eq. (4), by the prior's own posterior mean; zero-mean patches and noise, as the filters see them."""
    prior = patch_prior(3, 8, 25)
    pieces = [NoisyBatch(p.clean - p.clean.mean(axis=0), p.noise - p.noise.mean(axis=0), p.sigma) for p in batch_of(3)]
    errors = []
    for piece in pieces:
        clean, noisy = piece.clean.T, (piece.clean + piece.sigma * piece.noise).T
        denoised = tweedie(prior, noisy, piece.sigma)
        errors.append(((denoised - clean) ** 2).sum(axis=1) / piece.sigma**2)
    point = [prior.filters.matrix, prior.experts.logits]
    value, _ = match_scores(pieces, prior.experts.reach, point, ())
    assert value == pytest.approx(np.concatenate(errors).mean(), rel=1e-9)


def test_value_and_gradients_agree_however_they_are_asked_for():
    point, batch = POINTS["orthogonal filters"](), batch_of(2)
    value, both = match_scores(batch, REACH, point)
    assert match_scores(batch, REACH, point, ()) == (value, [])
    for block in (FILTERS, LOGITS):
        value_of_one, (gradient,) = match_scores(batch, REACH, point, (block,))
        assert value_of_one == value
        np.testing.assert_array_equal(gradient, both[block])


def test_the_loss_does_not_depend_on_how_the_batch_is_cut():
    point = POINTS["orthogonal filters"]()
    pieces = batch_of(2, (30, 30))
    whole = NoisyBatch(
        *(np.concatenate([getattr(p, name) for p in pieces], axis=-1) for name in NoisyBatch.__annotations__)
    )
    value, gradients = match_scores(pieces, REACH, point)
    value_of_whole, gradients_of_whole = match_scores([whole], REACH, point)
    assert value == pytest.approx(value_of_whole, rel=1e-13)
    for gradient, of_whole in zip(gradients, gradients_of_whole, strict=True):
        np.testing.assert_allclose(gradient, of_whole, rtol=1e-11, atol=1e-12)


def test_loss_and_gradient_are_the_same_bits_with_one_thread_and_with_two(monkeypatch):
    point = [filter_bank(5, 24).matrix.copy(), np.random.default_rng(0).normal(size=(24, 125))]
    batch, results = batch_of(5, (400, 399, 400, 401)), []
    for count in (1, 2):
        monkeypatch.setattr(threads, "get_num_threads", lambda count=count: count)
        results.append(match_scores(batch, REACH, point))
    (value, gradients), (value_of_two, gradients_of_two) = results
    assert value == value_of_two
    for one, two in zip(gradients, gradients_of_two, strict=True):
        np.testing.assert_array_equal(one, two)


@every_point
def test_the_gradient_is_that_of_automatic_differentiation(make):
    torch = pytest.importorskip("torch")
    point, pieces = make(), batch_of(2)
    filters, logits = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in point)
    means = torch.linspace(-REACH, REACH, logits.shape[1], dtype=torch.float64)
    total, count = torch.zeros((), dtype=torch.float64), 0
    for piece in pieces:
        clean, noise, sigma = (torch.tensor(x) for x in (piece.clean, piece.noise, piece.sigma))
        noisy = (clean + sigma * noise).requires_grad_()
        variances = (means[1] - means[0]) ** 2 + (filters**2).sum(1, keepdim=True) * sigma**2
        exponents = (
            torch.log_softmax(logits, 1)[:, None]
            - ((filters @ noisy)[..., None] - means) ** 2 / (2 * variances[..., None])
            - 0.5 * torch.log(variances)[..., None]
        )
        (score,) = torch.autograd.grad(torch.logsumexp(exponents, 2).sum(), noisy, create_graph=True)
        total = total + ((noise + sigma * score) ** 2).sum()
        count += sigma.numel()
    (total / count).backward()
    value, gradients = match_scores(pieces, REACH, point)
    assert value == pytest.approx(float(total.detach()) / count, rel=1e-9)
    for gradient, block in zip(gradients, (filters, logits), strict=True):
        scale = max(float(block.grad.abs().max()), 1e-6)
        np.testing.assert_allclose(gradient / scale, block.grad.numpy() / scale, rtol=0, atol=1e-8)


def test_the_weights_of_the_loss_sum_to_one():
    """`log_softmax` of the logits is all that the loss sees of them."""
    point, loss = POINTS["orthogonal filters"](), loss_on(batch_of(2))
    assert loss([point[0], log_softmax(point[1], axis=1)]) == pytest.approx(loss(point), rel=1e-13)
