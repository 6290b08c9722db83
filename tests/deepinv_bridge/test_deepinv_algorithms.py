"""deepinv's optimisers and samplers run with our priors: its tests (test_optim.py of deepinv 0.5.0), written anew."""

import deepinv
import numpy as np
import pytest
import torch
from deepinv.optim import L2, RED, PnP
from scipy.stats import ks_2samp

import heatprior.deepinv as hd
import heatprior.torch as ht
from examples import gaussian_mixture
from paper import prior_file


@pytest.fixture(scope="module")
def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, 1, 4, 4, generator=generator).repeat_interleave(8, -1).repeat_interleave(8, -2)
    kernel = deepinv.physics.functional.gaussian_blur(sigma=(2, 0.1), angle=45.0)
    physics = deepinv.physics.Blur(kernel, padding="circular")
    return x, physics(x), physics


@pytest.fixture(scope="module")
def denoiser():
    return hd.Denoiser("patch7", 1)


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
    module = ht.load(prior_file("patch7-single"))
    sde = deepinv.sampling.VarianceExplodingDiffusion(sigma_min=0.005, sigma_max=30.0, alpha=1.0)
    solver = deepinv.sampling.EulerSolver(timesteps=torch.linspace(1.0, 0.0, 300), rng=torch.Generator())
    sampler = deepinv.sampling.PosteriorDiffusion(
        denoiser=hd.Denoiser(module, "posterior"), sde=sde, solver=solver, minus_one_one=False
    )
    draws = sampler(y=None, physics=None, x_init=(400, 1, 7, 7), seed=0, denoise_output=False).flatten(1)

    def p_values(sigma):
        exact = module.sample(4000, sigma, generator=torch.Generator().manual_seed(1)).to(draws.dtype)
        directions = module.directions[[0, 24, 47]].to(draws.dtype)
        return [ks_2samp((draws @ k).numpy(), (exact @ k).numpy()).pvalue for k in directions]

    assert min(p_values(0.005)) > 1e-3
    assert min(p_values(0.05)) < 1e-6  # other samples are told apart


def test_langevin_dynamics_has_the_posterior_mean():
    """ULA with ScorePrior: in Gaussian patches, f(x, t) times the likelihood is a Gaussian whose mean is known."""
    prior, sigma, noise = gaussian_mixture(3, 1), 0.2, 0.3
    y = 0.5 + 0.4 * torch.randn(1, 1, 3, 3, generator=torch.Generator().manual_seed(0)).double()
    widened = prior.basis.T @ (prior.covariances[0] + sigma**2 * np.eye(8)) @ prior.basis
    centred = y.numpy().ravel() - y.mean().item()
    expected = y.mean().item() + widened @ np.linalg.solve(widened + noise**2 * np.eye(9), centred)
    torch.manual_seed(0)
    sampler = deepinv.sampling.sampling_builder(
        "ULA",
        L2(sigma=noise),
        deepinv.optim.ScorePrior(hd.Denoiser(ht.from_prior(prior), "posterior")),
        params_algo={"step_size": 0.01, "alpha": 1.0, "sigma": sigma},
        max_iter=600,
        thinning=1,
        burnin_ratio=0.2,
    )
    mean, _ = sampler.sample(y.expand(60, -1, -1, -1).clone(), deepinv.physics.Denoising())
    np.testing.assert_allclose(mean.mean(0).numpy().ravel(), expected, atol=0.03)  # 0.2 over some 500 free draws: 0.01
    assert np.abs(centred + y.mean().item() - expected).max() > 0.1  # the data alone are elsewhere


def test_diffusion_posterior_sampling_draws_near_the_data():
    """DPS, which differentiates the denoiser."""
    module = ht.from_prior(gaussian_mixture(3, 2, (0.2, 1.0)))
    x = 0.5 + module.sample(40, 0.0, generator=torch.Generator().manual_seed(0)).view(-1, 1, 3, 3)
    physics = deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.05, rng=torch.Generator().manual_seed(1)))
    generator = torch.Generator().manual_seed(2)
    sampler = deepinv.sampling.DPS(hd.Denoiser(module, "posterior"), num_steps=100, guidance="annealed", rng=generator)
    found = sampler(physics(x), physics)
    assert (found - x).square().mean() < 0.25 * (x - 0.5).square().mean()
