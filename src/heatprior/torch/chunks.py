"""Many patches in bounded memory: some at a time, and computed again on the way back instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Function = Callable[[Tensor, Tensor], tuple[Tensor, ...]]


def in_chunks(function: Function, y: Tensor, sigma: Tensor, most: int) -> tuple[Tensor, ...]:
    """function(y, sigma) for y (n, ...) and sigma () or (n,), at most `most` rows at a time: tensors (n, ...).

    With gradients a chunk keeps its input alone.
    """
    if len(y) <= most:
        return function(y, sigma)
    parts = [
        recomputed(function, some, sigma if sigma.ndim == 0 else sigma[first : first + most])
        for first, some in zip(range(0, len(y), most), y.split(most), strict=True)
    ]
    return tuple(torch.cat(columns) for columns in zip(*parts, strict=True))


def recomputed(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """function(*tensors), of which nothing is kept for the way back but the tensors."""
    if not torch.is_grad_enabled():
        return function(*tensors)
    return checkpoint(function, *tensors, use_reentrant=False, preserve_rng_state=False)
