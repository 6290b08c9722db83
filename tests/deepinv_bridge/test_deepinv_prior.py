"""g and its gradient, each against an oracle that knows none of our formulas; the prox of deepinv finds its minimum."""

import pytest
import torch
from whole_images import wavelet_prior

import heatprior.deepinv as hd
import heatprior.torch as ht
from examples import gaussian_mixture, patch_prior

PRIORS = {"patch": patch_prior(3, 5, 9), "mixture": gaussian_mixture(3, 2, (0.5, 2.0)), "wavelet": wavelet_prior(2, 2)}
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def images(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 0.5 + 0.3 * torch.randn(*shape, generator=generator, dtype=torch.float64)


@every_prior
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_grad_is_the_gradient_of_fn(prior, channels):
    g, x = hd.Prior(ht.from_prior(prior)), images(2, channels, 20, 8).requires_grad_()
    sigma = torch.tensor([0.1, 0.3], dtype=torch.float64)
    value = g.fn(x, sigma)
    assert value.shape == (2,)
    (slope,) = torch.autograd.grad(value.sum(), x)
    torch.testing.assert_close(g.grad(x, sigma).detach(), slope, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(g.fn(x[1:], 0.3), value[1:])
    assert g.explicit_prior


def test_fn_of_a_patch_is_minus_its_log_density():
    prior, x = PRIORS["mixture"], images(2, 1, 3, 3)
    found = hd.Prior(ht.from_prior(prior)).fn(x, 0.2)
    torch.testing.assert_close(found, -torch.tensor(prior.log_prob(x.numpy().reshape(2, 9), 0.2)))


@pytest.mark.parametrize("name", ["patch", "wavelet"])
def test_the_prox_of_deepinv_is_stationary(name):
    g, x = hd.Prior(ht.from_prior(PRIORS[name])), images(1, 1, 8, 8)
    found = g.prox(x, 0.3, gamma=1e-3, stepsize_inter=0.5, max_iter_inter=500, tol_inter=1e-10)
    torch.testing.assert_close(1e-3 * g.grad(found, 0.3) + found - x, torch.zeros_like(x), rtol=0, atol=1e-7)
