"""Images: what `heatprior.denoise` says, whatever shape sigma has, on any grid of patches and at any scale."""

from dataclasses import replace
from functools import partialmethod

import numpy as np
import pytest
import torch
from bridges import WAVELETS, module_of
from synthetic import landscape, oriented_mixture, sparse_prior

import heatprior as hp
import heatprior.torch as ht
from examples import with_learnt_step
from heatprior import InvalidInputError
from heatprior.kernels.patches import Grid
from heatprior.noise_value import Noise
from heatprior.priors.mixture_step import step_of_mixture
from heatprior.torch import averaging
from heatprior.torch.averaging import starts

PRIORS = {"patch": sparse_prior(), "mixture": oriented_mixture(), "wavelet": WAVELETS["two vanishing moments, split"]}
EXACT = {name: PRIORS[name] for name in ("patch", "wavelet")}  # without the short cuts of mixtures
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
every_schedule = pytest.mark.parametrize("steps", [1, None])
# The library looks values up in tables that are right to about 1e-5 of full scale a step, and 4e-5 for maps.
ONE_LEVEL, A_MAP = 2e-5, 1e-4


def noisy_images(*shape, sigma=0.1, dtype=torch.float32):
    rng = np.random.default_rng(0)
    clean = np.stack([landscape(shape[-2:], rng) for _ in range(int(np.prod(shape[:-2])))]).reshape(shape)
    return torch.tensor(clean + sigma * rng.standard_normal(shape), dtype=dtype)


def by_tensors(module, x, sigma, steps=None):
    return module.denoise(x.clone().requires_grad_(), sigma, steps).detach()


def by_library(prior, x, sigma, steps=None):
    sigmas = np.broadcast_to(sigma, x.shape)
    images = [
        hp.denoise(image, s, prior=prior, steps=steps, channel_axis=0, white=1.0)
        for image, s in zip(x.numpy(), sigmas, strict=True)
    ]
    return torch.tensor(np.stack(images))


def kind_of(prior):
    return next(name for name, other in PRIORS.items() if other is prior)


def largest(one, other):
    return float((one - other).abs().max())


@pytest.mark.parametrize("prior", EXACT.values(), ids=EXACT)
@every_schedule
@pytest.mark.parametrize("sigma", [1e-4, 0.01, 0.1, 1.0])
def test_tensor_operations_denoise_as_the_library(prior, steps, sigma):
    x = noisy_images(1, 1, 21, 18, sigma=sigma)
    assert largest(by_tensors(ht.from_prior(prior), x, sigma, steps), by_library(prior, x, sigma, steps)) < ONE_LEVEL


@pytest.mark.parametrize("sigma", [1e-4, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_mixture_denoises_as_the_library_without_its_short_cuts(sigma, is_weighted):
    prior = with_learnt_step(PRIORS["mixture"]) if is_weighted else PRIORS["mixture"]
    x = noisy_images(1, 1, 21, 18, sigma=sigma)
    everything = {"candidates": len(prior.covariances), "negligible": 0.0, "compared": prior.size**2}
    expected = step_of_mixture(prior, x[0, 0].numpy(), Noise.constant(sigma), **everything)
    assert largest(by_tensors(ht.from_prior(prior), x, sigma, 1)[0, 0], torch.tensor(expected)) < 1e-5  # float32
    if is_weighted and sigma > 1e-3:
        plain = by_tensors(ht.from_prior(PRIORS["mixture"]), x, sigma, 1)[0, 0]
        assert largest(plain, torch.tensor(expected)) > 1e-4


def test_colours_of_a_mixture_are_those_of_the_library_without_its_short_cuts(monkeypatch):
    """Differences beside the brightness, at two scales."""
    everything = {"candidates": len(PRIORS["mixture"].covariances), "negligible": 0.0, "compared": 64}
    step = partialmethod(step_of_mixture, **everything)
    monkeypatch.setattr(hp.GaussianMixturePrior, "denoise_step", step)
    prior, x, sigma = with_learnt_step(PRIORS["mixture"]), noisy_images(1, 1, 64, 64, sigma=0.0), 0.1
    x = torch.cat([x, x**2, 1.0 - x], 1) + noisy_images(1, 3, 64, 64, sigma=sigma) - noisy_images(1, 3, 64, 64, sigma=0)
    found, expected = by_tensors(ht.from_prior(prior), x, sigma), by_library(prior, x, sigma)
    assert largest(found, expected) < ONE_LEVEL
    monkeypatch.setattr(hp.GaussianMixturePrior, "takes_guide", False)
    assert largest(by_library(prior, x, sigma), expected) > 0.1 * sigma


def with_card(prior, **entries):
    """The same prior with other entries on its card."""
    return replace(prior, card={**prior.card, **entries})


STRIDED = {"sigmas": [0.1], "levels": [[1.0, 0.6, 0.4]], "weights": [[0.3, 0.1, 0.0]], "strides": [2, 3, 2]}


@pytest.mark.parametrize("sigma", [0.1, torch.linspace(0.05, 0.2, 18).expand(21, 18)], ids=["one level", "a map"])
def test_grids_of_the_card_are_those_of_the_library(sigma):
    prior = with_card(PRIORS["patch"], hqs=STRIDED)
    x = noisy_images(2, 1, 21, 18)
    found, expected = by_tensors(ht.from_prior(prior), x, sigma), by_library(prior, x, np.asarray(sigma))
    assert largest(found, expected) < A_MAP
    every = with_card(prior, hqs={key: value for key, value in STRIDED.items() if key != "strides"})
    assert largest(found, by_library(every, x, np.asarray(sigma))) > 10 * A_MAP  # the grids do matter


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("length", [3, 4, 11])
def test_patches_on_a_grid_begin_where_those_of_the_library_do(stride, offset, length):
    grid = Grid(stride, offset % stride)
    assert starts(length, 3, grid) == grid.starts(length, 3).tolist()
    counts = grid.patches_that_hold(length, 3)
    ones = averaging.average(
        lambda y, _: torch.ones_like(y), torch.zeros(1, length, length), torch.ones(1, 1, 1), 3, grid
    )
    every = averaging.sum_changes(
        lambda y, _: torch.ones_like(y), torch.zeros(1, length, length), torch.ones(1, 1, 1), 3, grid
    )
    np.testing.assert_array_equal(every[0], np.multiply.outer(counts, counts))
    np.testing.assert_array_equal(ones, np.ones((1, length, length)))


@pytest.mark.parametrize("shape", [(28, 26), (29, 25), (61, 50)])
@pytest.mark.parametrize("sigma", [0.1, None], ids=["one level", "a map"])
def test_several_scales_are_those_of_the_library(shape, sigma, monkeypatch):
    prior = PRIORS["patch"]
    sigma = torch.linspace(0.05, 0.2, shape[1]).expand(shape) if sigma is None else sigma
    x = noisy_images(1, 3, *shape)
    found, expected = by_tensors(ht.from_prior(prior), x, sigma), by_library(prior, x, np.asarray(sigma))
    assert largest(found, expected) < A_MAP
    monkeypatch.setattr("heatprior.torch.module.MOST_SCALES", 1)
    assert largest(by_tensors(ht.from_prior(prior), x, sigma), expected) > 10 * A_MAP  # the others do matter


@pytest.mark.parametrize("sigma", [0.1, None], ids=["one level", "a map"])
def test_the_coarse_scale_takes_part_between_the_steps_as_in_the_library(sigma):
    entry = {"sigmas": [0.05, 0.2], "edges": [0.3, 0.6], "widths": [0.1, 0.2], "heights": [0.6, 0.9]}
    prior = with_card(PRIORS["patch"], crossover_between=entry)
    sigma = torch.linspace(0.05, 0.2, 25).expand(29, 25) if sigma is None else sigma
    x = noisy_images(1, 1, 29, 25)
    found = by_tensors(ht.from_prior(prior), x, sigma)
    assert largest(found, by_library(prior, x, np.asarray(sigma))) < A_MAP
    assert largest(found, by_library(PRIORS["patch"], x, np.asarray(sigma))) > 10 * A_MAP  # it does matter


def test_images_too_small_for_two_scales_have_one(monkeypatch):
    x, module = noisy_images(1, 1, 3, 5), ht.from_prior(PRIORS["patch"])
    found = by_tensors(module, x, 0.1)
    assert largest(found, by_library(PRIORS["patch"], x, 0.1)) < ONE_LEVEL
    monkeypatch.setattr("heatprior.torch.module.MOST_SCALES", 1)
    assert torch.equal(by_tensors(module, x, 0.1), found)


@pytest.mark.parametrize("channels", [2, 4])
def test_every_channel_beyond_three_colours_is_denoised_by_itself(channels):
    x, module = noisy_images(1, channels, 9, 8), ht.from_prior(PRIORS["patch"])
    x[:, -1] = 1.0 - 0.5 * (x[:, -1] < 0.2)  # nearly opaque: the library would take a fourth for alpha
    alone = torch.cat([module.denoise(x[:, [c]], 0.1) for c in range(channels)], 1)
    assert torch.equal(module.denoise(x, 0.1), alone)


@every_prior
@every_schedule
def test_maps_of_noise_levels(prior, steps):
    x = noisy_images(1, 1, 21, 18)
    sigma = torch.linspace(0.05, 0.2, 18).expand(21, 18)
    found = by_tensors(ht.from_prior(prior), x, sigma, steps)
    expected = by_library(prior, x, sigma.numpy(), steps)
    # Mixtures: the library rounds levels to 3 %, and takes its short cuts. Wavelets: what is straight between two
    # levels depends on which they are, and the library takes the same ones for all steps.
    assert largest(found, expected) < {"patch": A_MAP, "mixture": 0.02, "wavelet": 5e-4}[kind_of(prior)]


@every_prior
@every_schedule
def test_without_gradients_it_is_the_library_bit_by_bit(prior, steps):
    x, module = noisy_images(2, 3, 21, 18), ht.from_prior(prior)
    assert torch.equal(module.denoise(x, 0.1, steps), by_library(prior, x, 0.1, steps))
    assert torch.equal(module(x, 0.1, steps), module.denoise(x, 0.1, steps))


def test_the_kernels_see_the_memory_of_the_tensor(monkeypatch):
    seen = []
    monkeypatch.setattr("heatprior.torch.module.denoise", lambda image, *_, **__: seen.append(image) or image.copy())
    x = noisy_images(1, 1, 9, 8)
    ht.from_prior(PRIORS["patch"]).denoise(x, 0.1)
    assert seen[0].__array_interface__["data"][0] == x.data_ptr()


@every_prior
def test_every_shape_of_sigma_is_image_by_image(prior):
    x, module = noisy_images(2, 1, 12, 11, dtype=torch.float64), ht.from_prior(prior)
    alone = torch.cat([by_tensors(module, x[:1], 0.1), by_tensors(module, x[1:], 0.2)])
    sigma = torch.tensor([0.1, 0.2], dtype=torch.float64)
    for shape in [(2,), (2, 1, 1, 1)]:
        torch.testing.assert_close(by_tensors(module, x, sigma.reshape(shape)), alone, rtol=1e-9, atol=1e-9)
    same = by_tensors(module, x, 0.1)
    for one in (torch.tensor([[0.1]], dtype=torch.float64), torch.tensor(0.1, dtype=torch.float64), [0.1]):
        torch.testing.assert_close(by_tensors(module, x, one), same, rtol=1e-9, atol=1e-9)
    for shape in [(12, 11), (2, 1, 12, 11)]:
        constant = torch.full(shape, 0.1, dtype=torch.float64)
        torch.testing.assert_close(by_tensors(module, x, constant), same, rtol=1e-6, atol=1e-6)


@every_prior
def test_colours_are_mixed_and_other_channels_are_not(prior):
    x, module = noisy_images(1, 3, 12, 11), ht.from_prior(prior)
    if prior is not PRIORS["mixture"]:
        assert largest(by_tensors(module, x, 0.1), by_library(prior, x, 0.1)) < ONE_LEVEL
    apart = torch.cat([by_tensors(module, x[:, [c]], 0.1) for c in range(3)], 1)
    assert largest(by_tensors(module, x, 0.1), apart) > 1e-3
    torch.testing.assert_close(by_tensors(module, x[:, :2], 0.1), apart[:, :2])


@every_prior
def test_types_and_noise_beyond_the_kernels(prior):
    module = module_of(prior)
    for dtype in (torch.float32, torch.float64):
        x = noisy_images(1, 1, 9, 8, dtype=dtype)
        assert module.denoise(x, 0.1).dtype == dtype
        assert torch.isfinite(module.denoise(x, 5.0)).all()
        assert torch.isfinite(module.denoise(x, 100.0)).all()
        assert largest(module.denoise(x, 0.0, 1), x) < 1e-6


def test_float64_images_keep_their_digits_without_gradients():
    module, x = ht.from_prior(PRIORS["patch"]), noisy_images(1, 1, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(module.denoise(x, 0.1), by_tensors(module, x, 0.1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "sigma", "message"),
    [
        (torch.zeros(9, 8), 0.1, r"^images have shape \(9, 8\); expected \(B, C, H, W\)$"),
        (torch.zeros(1, 1, 2, 8), 0.1, r"^the images are 2×8 pixels but the prior acts on patches of 3×3; give larger"),
        (torch.zeros(1, 1, 9, 8, dtype=torch.uint8), 0.1, r"^images are torch.uint8; expected a tensor of float32 or"),
        (np.zeros((1, 1, 9, 8)), 0.1, r"^images are ndarray; expected a tensor of float32 or float64"),
        (torch.zeros(1, 1, 9, 8), -0.1, r"^sigma is -0.1; expected a finite number"),
        (torch.zeros(2, 1, 9, 8), torch.ones(3), r"^sigma has shape \(3,\) but the images \(2, 1, 9, 8\); expected a"),
    ],
)
def test_what_makes_no_sense_is_refused(x, sigma, message):
    with pytest.raises(InvalidInputError, match=message):
        ht.from_prior(PRIORS["patch"]).denoise(x, sigma)


def test_more_that_makes_no_sense_is_refused():
    module = ht.from_prior(PRIORS["patch"])
    with pytest.raises(InvalidInputError, match=r"^steps is 2; expected None, the prior's own schedule, or 1$"):
        module.denoise(torch.zeros(1, 1, 9, 8), 0.1, 2)
    with pytest.raises(InvalidInputError, match=r"^patches have 8 pixels but this prior acts on 9 \(3×3\); extract"):
        module.log_prob(torch.zeros(2, 8), 0.1)
    with pytest.raises(InvalidInputError, match=r"^sigma has shape \(3,\) but the patches are \(2,\); give one number"):
        module.log_prob(torch.zeros(2, 9), torch.ones(3))
    with pytest.raises(
        InvalidInputError, match=r"^images have shape \(2, 9\) but a basis of 2 levels needs sides that"
    ):
        ht.from_prior(PRIORS["wavelet"]).log_prob(torch.zeros(2, 9), 0.1)
    with pytest.raises(InvalidInputError, match=r"^there is no torch module of ConvolutionalPrior; expected one of P"):
        ht.load("conv")
