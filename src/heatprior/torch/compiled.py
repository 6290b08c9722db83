"""The compiled kernels of the library on the memory of torch: where no gradient is asked for, on the CPU.

The arrays that the library is given are the tensors themselves; nothing is copied on the way in.
"""

from __future__ import annotations

import warnings
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


def denoised(prior: Any, x: Tensor, levels: Tensor, method: str, scales: int | None) -> Tensor:
    """Images (B, C, H, W) of float32 denoised; levels (1 or B, 1 or C, 1 or H, 1 or W)."""
    images = x.new_empty(x.shape) if x.shape[:2] not in ((1, 1), (1, 3)) else None
    together = 3 if x.shape[1] == 3 else 1  # channels that are colours; the library might take a fourth for alpha
    levels = levels.expand(len(x), x.shape[1], -1, -1)
    for index in range(len(x)):
        for first in range(0, x.shape[1], together):
            channels = slice(first, first + together)
            clean = _denoised(prior, array_of(x[index, channels]), array_of(levels[index, channels]), method, scales)
            if images is None:
                return torch.from_numpy(clean)[None]  # it is not copied
            images[index, channels] = torch.from_numpy(clean)
    return images


def _denoised(prior: Any, image: FloatArray, noise: FloatArray, method: str, scales: int | None) -> FloatArray:
    """One image (1 or 3, H, W)."""
    sigma: float | FloatArray = np.broadcast_to(noise, image.shape)
    if noise.shape[1:] == (1, 1):
        sigma = float(noise[0, 0, 0]) if noise.strides[0] == 0 or len(noise) == 1 else noise.reshape(-1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sigma is .* more than full scale")  # as it is where samplers begin
        return denoise(image, sigma, prior=prior, method=method, scales=scales, channel_axis=0, white=1.0)
