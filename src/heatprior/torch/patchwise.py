"""A closed form on patches (..., a): by the library's kernels where that may be, otherwise in chunks of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from heatprior.torch import compiled
from heatprior.torch.arguments import Sigma, as_sigma, check_patches
from heatprior.torch.chunks import in_chunks


def on_patches(
    module: Any, name: str, function: Callable[[Any, Tensor, Tensor], tuple[Tensor, ...]], y: Tensor, sigma: Sigma
) -> tuple[Tensor, ...]:
    """What the method `name` of the prior says of y (..., a), as tensors (..., ·) of the type of y.

    `function` takes the model of the module, y (n, a) and sigma () or (n,) in the type of the parameters.
    """
    check_patches(y, module.size)
    sigmas = as_sigma(sigma, module.logits, y.shape[:-1])
    if compiled.may_do(module, y, sigmas):
        return compiled.called(getattr(module.to_prior(), name), y, sigmas)
    model = module.model(module.logits.dtype)

    def with_model(some: Tensor, levels: Tensor) -> tuple[Tensor, ...]:
        return function(model, some, levels)

    flat = y.reshape(-1, y.shape[-1]).to(module.logits.dtype)
    levels = sigmas.reshape(-1) if sigmas.ndim else sigmas
    results = in_chunks(with_model, flat, levels, module.at_once(module.numbers(name, levels), y.device))
    return tuple(result.reshape(y.shape[:-1] + result.shape[1:]).to(y.dtype) for result in results)
