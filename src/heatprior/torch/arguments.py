"""What a module is called with, checked at the border: patches, images, and noise levels that fit them."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from heatprior.errors import InvalidInputError

Sigma: TypeAlias = float | Tensor


def check_patches(y: Tensor, size: int) -> None:
    """Floats (..., size²)."""
    _check_type(y, "patches")
    if y.ndim == 0 or y.shape[-1] != size**2:
        raise InvalidInputError(
            f"patches have {y.shape[-1] if y.ndim else 1} pixels but this prior acts on {size**2} ({size}×{size}); "
            f"extract them with size={size}"
        )


def check_images(x: Tensor, size: int) -> None:
    """Floats (B, C, H, W), no side shorter than a patch."""
    _check_type(x, "images")
    if x.ndim != 4:
        raise InvalidInputError(f"images have shape {tuple(x.shape)}; expected (B, C, H, W)")
    if min(x.shape[-2:]) < size:
        raise InvalidInputError(
            f"the images are {x.shape[-2]}×{x.shape[-1]} pixels but the prior acts on patches of {size}×{size}; "
            "give larger images, or a prior on smaller patches"
        )


def as_sigma(sigma: Sigma, like: Tensor, shape: torch.Size) -> Tensor:
    """A noise level, (), or one per patch, (*shape), in the type of `like`."""
    values = _as_tensor(sigma, like).to(like.dtype)
    if values.numel() == 1:
        return values.reshape(())
    try:
        return values.broadcast_to(shape)
    except RuntimeError as error:
        raise InvalidInputError(
            f"sigma has shape {tuple(values.shape)} but the patches are {tuple(shape)}; give one number, or one each"
        ) from error


def as_levels(sigma: Any, x: Tensor) -> Tensor:
    """Noise levels of images (B, C, H, W), with four axes that broadcast to theirs.

    A number, or a tensor with one; (B,) one per image; (H, W) one map for all; (B, 1, 1, 1), (B, 1, H, W) and whatever
    else of four axes fits. Where B = H = W, (B,) is one per image.
    """
    values = _as_tensor(sigma, x)
    if values.numel() == 1:
        return values.reshape(1, 1, 1, 1)
    fits = values.ndim == 4 and all(n in (1, m) for n, m in zip(values.shape, x.shape, strict=True))
    if fits:
        return values
    if values.shape == x.shape[:1]:
        return values[:, None, None, None]
    if values.shape == x.shape[-2:]:
        return values[None, None]
    raise InvalidInputError(
        f"sigma has shape {tuple(values.shape)} but the images {tuple(x.shape)}; expected a number, ({x.shape[0]},), "
        f"({x.shape[0]}, 1, 1, 1), or a map such as {tuple(x.shape[-2:])} or {tuple(x.shape)}"
    )


def _as_tensor(sigma: Any, like: Tensor) -> Tensor:
    if isinstance(sigma, Tensor):
        return sigma.to(like.device)
    exact = torch.float64 if like.device.type == "cpu" else like.dtype  # some devices have no float64
    values = torch.as_tensor(sigma, device=like.device, dtype=exact)
    if not bool(((values >= 0) & values.isfinite()).all()):
        raise InvalidInputError(f"sigma is {sigma}; it must be finite and not negative, grey levels being 0 to 1")
    return values


def _check_type(tensor: Any, what: str) -> None:
    if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.float32, torch.float64):
        kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InvalidInputError(f"{what} are {kind}; expected a tensor of float32 or float64, scaled to [0, 1]")
