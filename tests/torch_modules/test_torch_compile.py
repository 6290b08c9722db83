"""torch.compile: one graph, the same numbers."""

import pytest
import torch
from bridges import WAVELETS
from synthetic import oriented_mixture, sparse_prior

import heatprior.torch as ht

PRIORS = {"patch": sparse_prior(9), "mixture": oriented_mixture(3), "wavelet": WAVELETS["Haar"]}
STRIDED = {"sigmas": [0.1], "levels": [[1.0, 0.4]], "weights": [[0.3, 0.0]], "strides": [2, 2]}
PRIORS["patch"].card.update(hqs=STRIDED)
CROSSOVER = {"sigmas": [0.05, 0.2], "edges": [0.4, 0.7], "widths": [0.05, 0.2]}


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


# "aot_eager" takes the whole graph, and its backward, as a compiler would; it needs no C++ compiler.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("steps", [1, None])
def test_denoising_is_one_graph(prior, steps):
    module = ht.from_prior(prior).requires_grad_()
    x = torch.rand(1, 1, 9, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def loss(x):
        return module.denoise(x, 0.1, steps).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), loss(x), rtol=1e-5, atol=1e-6)
    wanted = torch.autograd.grad(loss(x), [x, *module.parameters()])
    for found, expected in zip(torch.autograd.grad(compiled(x), [x, *module.parameters()]), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["patch", "mixture"])
def test_two_scales_are_one_graph_whatever_the_noise_levels(kind):
    prior = PRIORS[kind]
    prior.card["crossover"] = CROSSOVER
    module = ht.from_prior(prior).requires_grad_()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 1, 24, 25, generator=generator, requires_grad=True)
    compiled = torch.compile(module.denoise, fullgraph=True, backend="aot_eager")
    for levels in ([0.05, 0.1], [0.1, 0.2]):  # the same graph: levels are no constants of it
        sigma = torch.tensor(levels, requires_grad=True)
        wanted = module.denoise(x, sigma)
        found = compiled(x, sigma)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("heatprior.torch.module.MOST_SCALES", 1)
            assert (found - module.denoise(x, sigma)).abs().max() > 1e-3
        slopes = [torch.autograd.grad(result.square().sum(), [x, sigma])[1] for result in (found, wanted)]
        torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-4)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["log_prob", "score", "posterior"])
@pytest.mark.parametrize("kind", ["patch", "mixture"])
def test_closed_forms_are_one_graph(kind, name):
    module = ht.from_prior(PRIORS[kind])
    y = torch.rand(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    function = getattr(module, name)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(tuple(compiled(y, 0.1)), tuple(function(y, 0.1)), rtol=1e-9, atol=1e-9)
