"""Orthonormal wavelets of cyclic images by shifts and sums: real, of any size, the same on every device.

One split of an image along an axis at dilation s is x ↦ Σ_k h_k x(· + k s), h the scaling filter or its mirror. A band
is a path of splits down and across. Its responses at all pixels serve cycle spinning; every 2^depth-th along each axis
is a coefficient of the basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

Path = tuple[str, str]  # of splits down and across: "l" coarse, "h" fine


def mirror(scaling: Tensor) -> Tensor:
    """g_k = (−1)^k h_{K−1−k}."""
    signs = 1.0 - 2.0 * (torch.arange(len(scaling), device=scaling.device) % 2)
    return scaling.flip(0) * signs.to(scaling.dtype)


def shifted_sum(images: Tensor, taps: Tensor, dilation: int, dim: int, *, adjoint: bool = False) -> Tensor:
    """Σ_k h_k x(· + k s) along an axis of cyclic images, or its adjoint Σ_k h_k x(· − k s)."""
    step = dilation if adjoint else -dilation
    total = taps[0] * images
    for k in range(1, len(taps)):
        total = total + taps[k] * torch.roll(images, k * step, dim)
    return total


def responses(images: Tensor, scaling: Tensor, paths: Sequence[Path]) -> Iterator[Tensor]:
    """Of every band at all pixels, (..., H, W) each: bands that share their first splits share the work."""
    taps = {"l": scaling, "h": mirror(scaling)}
    known: dict[Path, Tensor] = {("", ""): images}
    for number, path in enumerate(paths):
        parents = [(path[0][:depth], path[1][:depth]) for depth in range(1, len(path[0]) + 1)]
        for depth, here in enumerate(parents):
            if here not in known:
                before = known[here[0][:-1], here[1][:-1]]
                down = shifted_sum(before, taps[here[0][-1]], 2**depth, -2)
                known[here] = shifted_sum(down, taps[here[1][-1]], 2**depth, -1)
        yield known[path]
        known = {other: value for other, value in known.items() if _is_needed(other, paths[number + 1 :])}


def put_back(bands: Sequence[Tensor], scaling: Tensor, paths: Sequence[Path]) -> Tensor:
    """The adjoint of `responses`: Σ over bands of the images that have these responses, (..., H, W)."""
    taps = {"l": scaling, "h": mirror(scaling)}
    totals: dict[Path, Tensor] = dict(zip(paths, bands, strict=True))
    for depth in range(max(len(down) for down, _ in paths), 0, -1):
        for here in [path for path in totals if len(path[0]) == depth]:
            across = shifted_sum(totals.pop(here), taps[here[1][-1]], 2 ** (depth - 1), -1, adjoint=True)
            before = shifted_sum(across, taps[here[0][-1]], 2 ** (depth - 1), -2, adjoint=True)
            parent = (here[0][:-1], here[1][:-1])
            totals[parent] = totals[parent] + before if parent in totals else before
    return totals["", ""]


def spread(coefficients: Tensor, stride: int) -> Tensor:
    """Coefficients (..., h, w) at every `stride`-th pixel of images (..., h · stride, w · stride), zero elsewhere."""
    height, width = coefficients.shape[-2:]
    cells = torch.nn.functional.pad(coefficients[..., :, None, :, None], (0, stride - 1, 0, 0, 0, stride - 1))
    return cells.reshape(*coefficients.shape[:-2], height * stride, width * stride)


def along(path: str, scaling: Tensor, length: int) -> Tensor:
    """What each pixel of a cyclic line is seen by from place 0 through the splits of a path: the filter, (length,)."""
    taps = {"l": scaling, "h": mirror(scaling)}
    line = torch.zeros(length, dtype=scaling.dtype, device=scaling.device)
    line[0] = 1.0
    for depth, step in enumerate(path):
        line = shifted_sum(line, taps[step], 2**depth, -1, adjoint=True)
    return line


def put_back_squared(coefficients: Sequence[Tensor], scaling: Tensor, paths: Sequence[Path]) -> Tensor:
    """Σ c g² pixel by pixel, over all coefficients c of all bands and their filters g: (..., H, W)."""
    return sum(
        _squares(down, scaling, c.shape[-2]) @ c @ _squares(across, scaling, c.shape[-1]).mT
        for c, (down, across) in zip(coefficients, paths, strict=True)
    )


def _squares(path: str, scaling: Tensor, count: int) -> Tensor:
    """The square of the filter of each of `count` places along a line, as columns: (count · 2^depth, count)."""
    stride = 2 ** len(path)
    line = along(path, scaling, count * stride) ** 2
    return torch.stack([line.roll(m * stride) for m in range(count)], -1)


def _is_needed(path: Path, by: Sequence[Path]) -> bool:
    return any(other[0].startswith(path[0]) and other[1].startswith(path[1]) for other in by)
