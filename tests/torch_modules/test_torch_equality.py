"""The modules say what the library says, by tensor operations, and by its kernels where no gradient is asked for."""

import numpy as np
import pytest
import torch
from bridges import SMALL, WAVELETS, module_of, relative

import heatprior as hp
import heatprior.torch as ht
from heatprior import zoo

FUNCTIONS = ("log_prob", "score", "posterior")
SHIPPED = [name for name in zoo.names() if name != "conv"]  # which has no module
# Both compute in float64; float32 patches are rounded at the end alone. Matrix products add in another order.
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-5}


def drawn(prior, sigma, count=3):
    """Noisy patches or images with brightness 1/2."""
    rng = np.random.default_rng(0)
    shape = {"shape": (prior.unit, 2 * prior.unit)} if hasattr(prior, "unit") else {}
    return prior.sample(count, sigma, rng=rng, **shape) + 0.5


def answers(object_, name, y, sigma):
    answer = getattr(object_, name)(y, sigma)
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("sigma", [1e-4, 1e-2, 0.1, 1.0])
@pytest.mark.parametrize("name", SHIPPED)
def test_tensor_operations_equal_the_library(name, sigma, dtype):
    module = loaded(name)
    prior = module.to_prior()
    y = torch.tensor(drawn(prior, sigma), dtype=dtype, requires_grad=True)
    for function in FUNCTIONS:
        expected = answers(prior, function, y.detach().numpy(), sigma)
        for found, wanted in zip(answers(module, function, y, sigma), expected, strict=True):
            assert found.dtype == dtype
            assert found.requires_grad
            assert relative(found, wanted) < LIMITS[dtype]


_modules = {}


def loaded(name):
    return _modules.setdefault(name, ht.load(name))


@pytest.mark.parametrize("prior", (SMALL | WAVELETS).values(), ids=SMALL | WAVELETS)
def test_one_sigma_per_patch_equals_the_library(prior):
    y, sigmas = drawn(prior, 0.2), np.array([0.01, 0.2, 1.0])
    module = module_of(prior, learnt=False)
    for function in FUNCTIONS:
        expected = answers(prior, function, y, sigmas)
        found = answers(module, function, torch.tensor(y, requires_grad=True), torch.tensor(sigmas))
        assert max(map(relative, found, expected)) < 1e-9


@pytest.mark.parametrize("prior", (SMALL | WAVELETS).values(), ids=SMALL | WAVELETS)
def test_a_learnt_module_turns_back_into_the_prior_that_it_is(prior):
    module = module_of(prior)
    built = module.to_prior()
    assert built is not prior
    assert built is module.to_prior()
    y = drawn(prior, 0.2)
    for function in FUNCTIONS:
        expected = answers(built, function, y, 0.2)
        assert max(map(relative, answers(module, function, torch.tensor(y, requires_grad=True), 0.2), expected)) < 1e-9
        assert max(map(relative, answers(module, function, torch.tensor(y), 0.2), expected)) == 0.0


@pytest.mark.parametrize("prior", (SMALL | WAVELETS).values(), ids=SMALL | WAVELETS)
def test_a_saved_module_is_a_file_of_the_library(prior, tmp_path):
    module = module_of(prior)
    module.card["note"] = "tuned"
    module.save(tmp_path / "mine.safetensors")
    back, y = hp.load(tmp_path / "mine.safetensors"), drawn(prior, 0.2)
    assert back.card["note"] == "tuned"
    assert "note" not in prior.card
    assert relative(module.log_prob(torch.tensor(y), 0.2), back.log_prob(y, 0.2)) < 1e-4  # files hold float32


def test_a_module_as_loaded_hands_back_its_own_prior_and_asks_for_no_gradient():
    prior = SMALL["one Gaussian"]
    module = ht.from_prior(prior)
    assert module.to_prior() is prior
    assert not any(parameter.requires_grad for parameter in module.parameters())
    assert {tensor.dtype for tensor in module.state_dict().values()} == {torch.float64}


def test_edits_behind_the_back_of_autograd_are_noticed():
    module = ht.from_prior(SMALL["one Gaussian"])
    y = torch.tensor(drawn(SMALL["one Gaussian"], 0.2))
    before = module.log_prob(y, 0.2)
    module.log_variances.data.add_(1.0)
    after = module.log_prob(y, 0.2)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, module.log_prob(y.requires_grad_(), 0.2).detach())


@pytest.mark.parametrize("prior", (SMALL | WAVELETS).values(), ids=SMALL | WAVELETS)
def test_chunks_change_nothing_with_and_without_gradients(prior):
    module, y = module_of(prior, learnt=False), torch.tensor(drawn(prior, 0.2), requires_grad=True)
    sigma = torch.tensor([0.1, 0.2, 0.3], dtype=y.dtype)
    whole = module.posterior(y, sigma)
    gradient = torch.autograd.grad(whole.mean.square().sum() + whole.variance.sum(), y)[0]
    module.room = 1
    parts = module.posterior(y, sigma)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)
    again = torch.autograd.grad(parts.mean.square().sum() + parts.variance.sum(), y)[0]
    torch.testing.assert_close(again, gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif("not torch.cuda.is_available()"))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_moves_between_types_and_devices(device, dtype):
    prior = SMALL["five shapes on 4×4"]
    module = ht.from_prior(prior).to(device, dtype)
    y = torch.tensor(drawn(prior, 0.2), dtype=dtype, device=device, requires_grad=True)
    found = module.score(y, 0.2)
    assert (found.device.type, found.dtype) == (device, dtype)
    assert relative(found.cpu(), prior.score(y.detach().cpu().numpy(), 0.2)) < LIMITS[dtype]
    assert module.denoise(torch.rand(1, 3, 9, 8, dtype=dtype, device=device), 0.1).device.type == device
