"""Gradients in image, noise level and parameters, against finite differences in float64."""

import pytest
import torch
from bridges import SMALL, WAVELETS, module_of
from torch.autograd import gradcheck, gradgradcheck

from heatprior.priors.schedules import Schedules, TableOverSigma

EVERY = {name: SMALL[name] for name in ("three filters on 2×2", "two shapes at three contrasts")} | {
    "Haar": WAVELETS["Haar"]
}
every_prior = pytest.mark.parametrize("prior", EVERY.values(), ids=EVERY)


def setting(prior, count=2):
    module = module_of(prior).requires_grad_()
    generator = torch.Generator().manual_seed(1)
    shape = (2, 2) if hasattr(prior, "unit") else (4,)
    y = 0.5 + 0.2 * torch.randn(count, *shape, generator=generator, dtype=torch.float64)
    sigma = torch.linspace(0.2, 0.4, count, dtype=torch.float64)
    return module, y.requires_grad_(), sigma.requires_grad_()


class Calling(torch.nn.Module):
    """forward(name of a method, *arguments): what functional_call needs."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, name, *arguments):
        return getattr(self.module, name)(*arguments)


def with_parameters(module, name, *more):
    """The method `name` as a function of y, sigma and all parameters."""
    calling = Calling(module)
    names = [name for name, _ in calling.named_parameters()]

    def call(y, sigma, *values):
        return torch.func.functional_call(calling, dict(zip(names, values, strict=True)), (name, y, sigma, *more))

    return call


@every_prior
@pytest.mark.parametrize("name", ["log_prob", "score", "posterior"])
def test_gradients_of_closed_forms(prior, name):
    module, y, sigma = setting(prior)
    assert gradcheck(with_parameters(module, name), (y, sigma, *module.parameters()))


@every_prior
def test_second_derivatives(prior):
    module, y, sigma = setting(prior)
    assert gradgradcheck(with_parameters(module, "log_prob"), (y, sigma, *module.parameters()))


@every_prior
@pytest.mark.parametrize("steps", [1, None])
def test_gradients_of_denoising(prior, steps):
    module, _, _ = setting(prior)
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(1, 1, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(with_parameters(module, "denoise", steps), (x, sigma, *module.parameters()))


@pytest.mark.parametrize("name", ["three filters on 2×2", "two shapes at three contrasts"])
def test_gradients_through_grids_of_patches_and_two_scales(name, monkeypatch):
    monkeypatch.setattr("heatprior.restoration.pipeline.LEAST_SIDE", 1)  # small images: a Jacobian is soon large
    monkeypatch.setattr("heatprior.torch.module.MOST_SCALES", 2)
    module, _, _ = setting(SMALL[name])
    module.schedules = Schedules((1.0,), ((1.0, 0.5),), ((0.3, 0.1),), (2, 2))
    module.crossovers = TableOverSigma((0.14, 0.37), ((0.4, 0.7), (0.1, 0.2), (1.0, 1.0)))
    module.between = TableOverSigma((0.14, 0.37), ((0.3, 0.5), (0.1, 0.2), (0.6, 0.9)))
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(1, 1, 5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    sigma = (0.1 + 0.2 * torch.rand(1, 1, 5, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    assert gradcheck(with_parameters(module, "denoise"), (x, sigma, *module.parameters()))
    at_two = module.denoise(x, sigma)
    monkeypatch.setattr("heatprior.torch.module.MOST_SCALES", 1)
    assert (at_two - module.denoise(x, sigma)).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["three filters on 2×2", "two shapes at three contrasts"])
def test_gradients_in_a_map_of_noise_levels_and_in_colours(name):
    module, _, _ = setting(SMALL[name])
    module.requires_grad_(False)
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(1, 3, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    sigma = (0.1 + 0.2 * torch.rand(1, 1, 4, 3, generator=generator, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda x, sigma: module.denoise(x, sigma, 1), (x, sigma))


@every_prior
def test_bands_and_chunks_have_the_gradients_of_the_whole(prior, monkeypatch):
    module, _, _ = setting(prior)
    x = torch.rand(2, 1, 9, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64, requires_grad=True)

    def gradients():
        return torch.autograd.grad(module.denoise(x, 0.2).square().sum(), [x, *module.parameters()])

    whole = gradients()
    monkeypatch.setattr("heatprior.torch.averaging.PATCHES", 16)  # one row of patches to a band
    module.room = 64
    for part, expected in zip(gradients(), whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, inside jvp
@every_prior
def test_forward_mode_and_transforms_do_not_go_through_the_kernels(prior):
    module, y, _ = setting(prior)
    module.requires_grad_(False)
    y = y.detach()
    direction = torch.ones_like(y)
    _, tangent = torch.func.jvp(lambda y: module.log_prob(y, 0.3), (y,), (direction,))
    expected = (module.score(y, 0.3) * direction).flatten(1).sum(-1)
    torch.testing.assert_close(tangent, expected)
    gradient = torch.func.grad(lambda y: module.log_prob(y, 0.3).sum())(y)
    torch.testing.assert_close(gradient, module.score(y, 0.3))
    mapped = torch.vmap(lambda y: module.log_prob(y, 0.3))(y)
    torch.testing.assert_close(mapped, module.log_prob(y, 0.3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(y, direction)
        found = torch.autograd.forward_ad.unpack_dual(module.log_prob(dual, 0.3)).tangent
    torch.testing.assert_close(found, expected)
