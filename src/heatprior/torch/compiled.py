"""The compiled kernels of the library on the memory of torch: where no gradient is asked for, on the CPU.

The arrays that the library is given are the tensors themselves; nothing is copied on the way in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from heatprior.arrays import FloatArray
from heatprior.restoration.denoising import denoise

LEAST, MOST = 1e-6, 10.0  # noise levels that the library denoises images of


def may_do(module: nn.Module, *tensors: Tensor) -> bool:
    """Whether nobody could tell that what comes out has left torch in between."""
    if torch.compiler.is_compiling():
        return False
    taking_part = [*tensors, *module.parameters()]
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in taking_part)
    return not recorded and all(map(_is_plain, taking_part))


def _is_plain(tensor: Tensor) -> bool:
    """In the memory of this machine, with no tangent of forward differentiation, inside no transform of torch.func."""
    if tensor.device.type != "cpu" or forward_ad.unpack_dual(tensor).tangent is not None:
        return False
    try:
        tensor.data_ptr()
    except RuntimeError:
        return False
    return True


def array_of(tensor: Tensor) -> FloatArray:
    """The tensor's own memory as an array."""
    return np.asarray(tensor.detach().numpy())


def called(function: Callable[[FloatArray, FloatArray], Any], y: Tensor, sigma: Tensor) -> tuple[Tensor, ...]:
    """What function(y, sigma) of the library answers, one tensor for each array."""
    answer = function(array_of(y), array_of(sigma))
    return tuple(map(torch.from_numpy, answer if isinstance(answer, tuple) else (answer,)))


def covers(levels: Tensor) -> bool:
    """Whether all noise levels are such that the library denoises images of them."""
    return float(levels.min()) >= LEAST and float(levels.max()) <= MOST


def denoised(prior: Any, x: Tensor, levels: Tensor, method: str) -> Tensor:
    """Images (B, C, H, W) of float32 denoised; levels (1 or B, 1 or C, 1 or H, 1 or W)."""
    results = []
    for image, noise in zip(array_of(x), array_of(levels.expand(len(x), -1, -1, -1)), strict=True):
        sigma = float(noise.flat[0]) if noise.size == 1 else np.broadcast_to(noise, image.shape)
        if noise.size == len(image):
            sigma = noise.reshape(-1)
        clean = denoise(image, sigma, prior=prior, method=method, scales=1, channel_axis=0, white=1.0)
        results.append(torch.from_numpy(clean))
    return results[0][None] if len(results) == 1 else torch.stack(results)
