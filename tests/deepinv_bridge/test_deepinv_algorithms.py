"""deepinv's optimisers and samplers run with our priors: its tests (test_optim.py of deepinv 0.5.0), written anew."""

import deepinv
import pytest
import torch
from deepinv.optim import L2, RED, PnP
from scipy.stats import ks_2samp

import heatprior.deepinv as hd
import heatprior.torch as ht


@pytest.fixture(scope="module")
def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, 1, 4, 4, generator=generator).repeat_interleave(8, -1).repeat_interleave(8, -2)
    kernel = deepinv.physics.functional.gaussian_blur(sigma=(2, 0.1), angle=45.0)
    physics = deepinv.physics.Blur(kernel, padding="circular")
    return x, physics(x), physics


@pytest.fixture(scope="module")
def denoiser():
    return hd.Denoiser("patch7", "eb")


@pytest.mark.parametrize("name", ["PGD", "HQS", "DRS", "ADMM", "FISTA"])
def test_plug_and_play(problem, denoiser, name):
    """deepinv: test_pnp_algo, with its sigma of shape [[·]]."""
    x, y, physics = problem
    algorithm = getattr(deepinv.optim, name)(
        prior=PnP(denoiser=denoiser),
        data_fidelity=L2(),
        max_iter=1000,
        thres_conv=1e-4,
        stepsize=1.0,
        g_param=torch.tensor([[0.01]]),
        lambda_reg=1.0,
        early_stop=True,
    )
    found = algorithm(y, physics)
    assert algorithm.has_converged
    assert ((found - x) ** 2).mean() < ((y - x) ** 2).mean()


@pytest.mark.parametrize("name", ["GD", "PGD", "FISTA"])
def test_regularisation_by_denoising(problem, denoiser, name):
    """deepinv: test_red_algo."""
    x, y, physics = problem
    algorithm = getattr(deepinv.optim, name)(
        prior=RED(denoiser=denoiser),
        data_fidelity=L2(),
        max_iter=1000,
        thres_conv=1e-4,
        stepsize=1.0,
        g_param=0.02,
        lambda_reg=0.2,
        early_stop=True,
        **({} if name == "GD" else {"g_first": True}),
    )
    found = algorithm(y, physics)
    assert algorithm.has_converged
    assert ((found - x) ** 2).mean() < ((y - x) ** 2).mean()


@pytest.mark.parametrize("name", ["GD", "PGD"])
def test_gradients_and_prox_of_an_explicit_prior(name):
    """deepinv: test_priors_algo. The cost falls, since fn, grad and prox belong together."""
    x = torch.rand(1, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    physics = deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.1))
    y = physics(x)
    prior, fidelity, sigma = hd.Prior("wavelet-density"), L2(), 0.2
    algorithm = getattr(deepinv.optim, name)(
        prior=prior, data_fidelity=fidelity, max_iter=5, stepsize=0.5, g_param=sigma, lambda_reg=0.01
    )

    def cost(u):
        return float(fidelity(u, y, physics) + 0.01 * prior(u, sigma))

    assert cost(algorithm(y, physics)) < cost(y)


def test_a_diffusion_sampler_draws_from_the_prior():
    """PosteriorDiffusion without data: patches of the prior, by KS along a few of its filters; 1 seed in 1000 fails.

    The score is exact, so what is left is the error of the solver, far below what 400 draws can tell.
    """
    module = ht.load("patch7-single")
    sde = deepinv.sampling.VarianceExplodingDiffusion(sigma_min=0.005, sigma_max=30.0, alpha=1.0)
    solver = deepinv.sampling.EulerSolver(timesteps=torch.linspace(1.0, 0.0, 300), rng=torch.Generator())
    sampler = deepinv.sampling.PosteriorDiffusion(
        denoiser=hd.Denoiser(module, "posterior"), sde=sde, solver=solver, minus_one_one=False
    )
    draws = sampler(y=None, physics=None, x_init=(400, 1, 7, 7), seed=0, denoise_output=False)
    exact = module.sample(4000, 0.005, generator=torch.Generator().manual_seed(1))
    directions = module.directions[[0, 24, 47]].T.to(draws.dtype)
    for found, wanted in zip((draws.flatten(1) @ directions).T, (exact @ directions.to(exact.dtype)).T, strict=True):
        assert ks_2samp(found.numpy(), wanted.numpy()).pvalue > 1e-3
