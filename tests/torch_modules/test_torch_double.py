"""`denoise` by tensor operations against plain numpy in float64: the library's posterior means, averaged by hand.

The library's own `denoise` is float32 and looks values up in tables; this is what it approximates.
"""

from itertools import product

import numpy as np
import pytest
import torch
from bridges import WAVELETS, relative
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import correlate
from synthetic import landscape, sparse_prior

import heatprior.torch as ht
from examples import gaussian_mixture
from heatprior.noise_value import Noise
from heatprior.restoration.pyramid import HALF, NOISE_FACTOR, TAPS, crossover_at, crossover_filter, crossover_table

CARD = {"crossover": {"sigmas": [0.01, 1.0], "edges": [0.4, 0.7], "widths": [0.05, 0.2]}}
PRIORS = {
    "patch": sparse_prior(),
    "mixture": gaussian_mixture(3, 1, (0.1, 1.0, 5.0)),  # of one shape: the best one is all there is
    "wavelet": WAVELETS["two vanishing moments, split"],
}
for prior in PRIORS.values():
    prior.card.update(CARD)
SHAPE = (25, 24)
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-5}


def one_step(prior, image, sigma):
    """The mean of the posterior means of all patches, or in all shifts of the basis, that hold a pixel."""
    if hasattr(prior, "unit"):
        return averaged_over_shifts(prior, image, sigma)
    size = prior.size
    patches = sliding_window_view(image, (size, size))
    means = prior.posterior(patches.reshape(-1, size**2), sigma).mean.reshape(patches.shape)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    for i, j in product(range(size), repeat=2):
        place = slice(i, i + len(means)), slice(j, j + means.shape[1])
        total[place] += means[..., i, j]
        count[place] += 1
    return total / count


def averaged_over_shifts(prior, image, sigma):
    margin = -(-prior.margin // prior.unit) * prior.unit
    after = [margin + -length % prior.unit for length in image.shape]
    extended = np.pad(image, [(margin, more) for more in after], mode="symmetric")
    shifts = list(product(range(prior.unit), repeat=2))
    shifted = np.stack([np.roll(extended, shift, (0, 1)) for shift in shifts])
    means = shifted + sigma**2 * prior.score(shifted, sigma)  # without the variances of `posterior`
    back = [np.roll(mean, (-i, -j), (0, 1)) for mean, (i, j) in zip(means, shifts, strict=True)]
    return np.mean(back, axis=0)[margin : margin + image.shape[0], margin : margin + image.shape[1]]


def halving(length):
    """The matrix that halves a side, and the one that doubles it again: taps at mirrored places, one by one."""
    half = -(-length // 2)
    mirrored = [np.pad(np.arange(side), 2 * HALF, mode="symmetric") for side in (length, half)]
    halves, doubles = np.zeros((half, length)), np.zeros((length, half))
    for coarse, (tap, weight) in product(range(-HALF, half + HALF), enumerate(TAPS)):
        place = 2 * coarse + 1 - HALF + tap
        if 0 <= coarse < half:
            halves[coarse, mirrored[0][place + 2 * HALF]] += weight
        if 0 <= place < length:
            doubles[place, mirrored[1][coarse + 2 * HALF]] += 2.0 * weight
    return halves, doubles


def by_hand(prior, image, sigma, scales):
    margin = max(prior.patch_shape, default=1) - 1
    noisy = x = np.pad(image, margin, mode="reflect")
    for step in range(prior.schedules.steps):
        weight = float(prior.schedules.weight(step, sigma))
        x = weight * noisy + (1 - weight) * one_step(prior, x, float(prior.schedules.level(step, sigma)) * sigma)
    fine = x[margin : margin + image.shape[0], margin : margin + image.shape[1]]
    if scales == 1:
        return fine
    (down, back_down), (across, back_across) = map(halving, image.shape)
    coarse = by_hand(prior, down @ image @ across.T, NOISE_FACTOR * sigma, scales - 1)
    weights = crossover_filter(crossover_at(crossover_table(prior.card), Noise.constant(sigma)))
    decided = correlate(coarse - down @ fine @ across.T, weights, mode="reflect")  # the edge between two pixels
    return fine + back_down @ decided @ back_across.T


@pytest.mark.parametrize("sigma", [1e-4, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_scales_that_an_image_holds_are_exact_in_either_type(prior, sigma, monkeypatch):
    """Two of an image of eight patches a side; a prior of whole images has scales of its own."""
    rng = np.random.default_rng(0)
    image = landscape(SHAPE, rng) + sigma * rng.standard_normal(SHAPE)
    expected = by_hand(prior, image, sigma, 2 if prior.patch_shape else 1)
    module = ht.from_prior(prior)
    for dtype, limit in LIMITS.items():
        x = torch.tensor(image, dtype=dtype)[None, None].requires_grad_()
        assert relative(module.denoise(x, sigma)[0, 0], expected) < limit
    if sigma >= 0.1 and prior.patch_shape:  # below, there is hardly any noise at half the size
        monkeypatch.setattr("heatprior.torch.module.MOST_SCALES", 1)
        assert relative(module.denoise(x, sigma)[0, 0], expected) > 10 * limit


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_one_step_is_exact_in_either_type(prior):
    rng = np.random.default_rng(0)
    image = landscape(SHAPE, rng) + 0.1 * rng.standard_normal(SHAPE)
    for dtype, limit in LIMITS.items():
        x = torch.tensor(image, dtype=dtype)[None, None].requires_grad_()
        assert relative(ht.from_prior(prior).denoise(x, 0.1, 1)[0, 0], one_step(prior, image, 0.1)) < limit
