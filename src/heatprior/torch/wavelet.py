"""The wavelet prior as a module: f(x, t) = ∏_j ∏_m xi_j psi_j(xi_j c_jm, t), c the coefficients of a basis.

The one prior here that is an exact density of whole images. The basis, orthonormal, is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import pi
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Grid
from heatprior.priors import experts
from heatprior.priors.protocol import RATIO
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from heatprior.torch.denoising import mirror
from heatprior.torch.experts import Experts
from heatprior.torch.module import PriorModule, Sigma, as_sigma, check_type, in_chunks, recompute

Path = tuple[str, str]  # of splits down and across: "l" coarse, "h" fine


class _Model(NamedTuple):
    """The quantities that the parameters stand for, in one type, and the bands."""

    norms: Tensor  # xi_j, (J,)
    experts: Experts
    scaling: Tensor
    paths: Sequence[Path]
    strides: Sequence[int]
    most: int  # responses in a chunk

    def log_prob(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """Of cyclic images (..., H, W) on the span of the bands: (...)."""
        total = y.new_zeros(())
        for j, c in enumerate(self.coefficients(y)):
            total = total + (self.of_band(j, Experts.log_density, c, sigma) + self.norms[j].log()).sum((-2, -1))
        return (total,)

    def score(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """Σ_j Σ_m g_jm xi_j (log psi_j)'(xi_j c_jm, t): (..., H, W)."""
        coefficients = enumerate(self.coefficients(y))
        return (self.synthesise([self.norms[j] * self.of_band(j, Experts.slope, c, sigma) for j, c in coefficients]),)

    def posterior(self, y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance in this one basis: (..., H, W) each."""
        changes, variances, square = [], [], sigma[..., None, None] ** 2
        for j, c in enumerate(self.coefficients(y)):
            mean, variance = self.of_band(j, Experts.posterior, c, sigma)
            changes.append(mean / self.norms[j] - c)
            variances.append(variance / self.norms[j] ** 2 - square)  # off the span it is sigma²
        return y + self.synthesise(changes), square + self.synthesise(variances, squared=True)

    def average_shifts(self, images: Tensor, sigma: Tensor) -> Tensor:
        """sigma² Σ_j shares_j K_jᵀ (log psi_j)'(K_j y), as priors/bands.py, shares_j = stride_j⁻²: sigma (1 or N,)."""
        levels = sigma.reshape(()) if sigma.numel() == 1 else sigma
        changes = [
            self.strides[j] ** -2.0 * self.norms[j] * self.of_band(j, Experts.slope, u, levels)
            for j, u in enumerate(responses(images, self.scaling, self.paths))
        ]
        return sigma[:, None, None] ** 2 * put_back(changes, self.scaling, self.paths)

    def of_band(self, j: int, function: Callable[..., Any], c: Tensor, sigma: Tensor) -> Any:
        """What a method of the experts gives of the responses xi_j c, (..., h, w), in chunks: tensors like c."""
        flat, noise, own = self.norms[j] * c.reshape(-1, 1), (self.norms[j] * sigma).square(), self.experts.only(j)
        if noise.ndim:
            noise = noise[..., None, None].expand(c.shape).reshape(-1)

        def some(u: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
            found = function(own, u, noise[..., None])
            return found if isinstance(found, tuple) else (found,)

        results = tuple(result.reshape(c.shape) for result in in_chunks(some, flat, noise, self.most))
        return results if len(results) > 1 else results[0]

    def coefficients(self, images: Tensor) -> list[Tensor]:
        """The coefficients of every band, (..., H / stride, W / stride)."""
        found = responses(images, self.scaling, self.paths)
        return [u[..., ::stride, ::stride] for u, stride in zip(found, self.strides, strict=True)]

    def synthesise(self, coefficients: list[Tensor], *, squared: bool = False) -> Tensor:
        """The adjoint of `coefficients`, and its inverse on the span; or Σ c g² of filters g, pixel by pixel."""
        bands = [spread(c, stride) for c, stride in zip(coefficients, self.strides, strict=True)]
        return put_back(bands, self.scaling, self.paths, squared=squared)


class WaveletModule(PriorModule):
    """`scaling`, the filter of the basis, and the parameters `log_norms` (J,) and `logits` (J, L)."""

    scaling: Tensor
    means: Tensor
    log_norms: Tensor

    def _take(self, prior: WaveletPrior) -> None:
        self._add_buffer("scaling", prior.bands.scaling)
        self._add_buffer("means", prior.experts.means)
        self._add_parameter("log_norms", np.log(prior.norms))
        self._add_parameter("logits", prior.experts.log_weights)
        self._base, self._reach = prior.experts.base_sigma, prior.experts.reach
        self.basis = prior.bands
        # Read here: torch.compile cannot enter the lock of a cached property.
        self._paths, self._strides = prior.bands.paths, prior.bands.strides

    def _make_prior(self) -> WaveletPrior:
        basis = WaveletBasis(self.scaling.detach().cpu().double().numpy(), self.basis.levels, self.basis.splits)
        norms, logits = (x.detach().cpu().double().numpy() for x in (self.log_norms.exp(), self.logits))
        return WaveletPrior(basis, norms, experts.Experts(logits, self._reach), self.card)

    @property
    def size(self) -> int:
        """1: the prior acts on whole images."""
        return 1

    @property
    def unit(self) -> int:
        """The sides of images must be multiples of this, except in `denoise`."""
        return self.basis.unit

    def _compute(self, name: str, y: Tensor, sigmas: Tensor) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = getattr(self.model(y.dtype), name)(y, sigmas)
        return found

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:  # noqa: ARG002
        """The change of images (N, H, W) of any size by the posterior mean, averaged over all shifts of the basis.

        The average is no posterior mean of one density. Images are mirrored beyond their edges. Between the noise
        levels of a map, at most RATIO apart, changes are linear in log sigma. The grid is ignored: it has no patches.
        """
        model = self.model(images.dtype)
        before, (height, width) = self.basis.margin, images.shape[-2:]
        extended = mirror(images, [range(-before, length + before) for length in (height, width)])

        def at(level: Tensor) -> Tensor:
            changed = recompute(model.average_shifts, extended, level)
            return changed[:, before : before + height, before : before + width]

        if sigma.shape[-2:] == (1, 1):
            return at(sigma.reshape(-1))
        lowest, highest = float(sigma.detach().min()), float(sigma.detach().max())
        steps = max(1, int(np.ceil(np.log(highest / lowest) / np.log(RATIO))))
        levels = np.geomspace(lowest, highest * (1.0 + 1e-6), steps + 1)
        place = (sigma / lowest).log() / float(np.log(levels[1] / levels[0]))
        parts = [(1.0 - (place - number).abs()).clamp_min(0.0) for number in range(len(levels))]
        return sum(part * at(images.new_tensor([level])) for part, level in zip(parts, levels.tolist(), strict=True))

    def model(self, dtype: torch.dtype) -> _Model:
        """The quantities that the parameters stand for, in one type."""
        tensors = (self.log_norms.exp(), self.logits.log_softmax(-1), self.means, self.scaling)
        norms, log_weights, means, scaling = (tensor.to(dtype) for tensor in tensors)
        most = self.at_once(len(means), means.device)
        return _Model(norms, Experts(log_weights, means, self._base), scaling, self._paths, self._strides, most)

    def _check(self, y: Tensor, sigma: Sigma) -> Tensor:
        """The noise levels, () or one per image; refuses images without a basis."""
        check_type(y, "images")
        if y.ndim < 2 or any(length < 1 or length % self.unit for length in y.shape[-2:]):
            raise InvalidInputError(
                f"images have shape {tuple(y.shape)} but a basis of {self.basis.levels} levels needs sides that are "
                f"multiples of {self.unit}; crop them, or use `denoise`, which takes any size"
            )
        return as_sigma(sigma, self.logits, y.shape[:-2])


# Bands by their spectra, as priors/wavelet.py has them, with a gradient.


def _along(path: str, scaling: Tensor, length: int) -> Tensor:
    """The spectrum of the filter of a path of splits, on a cyclic line: (length,), complex."""
    signs = 1.0 - 2.0 * (torch.arange(len(scaling), device=scaling.device) % 2)
    taps = {"l": scaling, "h": scaling.flip(0) * signs.to(scaling.dtype)}
    angles = torch.arange(length, dtype=scaling.dtype, device=scaling.device)[:, None] * (2.0 * pi / length)
    places = torch.arange(len(scaling), dtype=scaling.dtype, device=scaling.device)
    result = torch.ones(length, dtype=scaling.dtype, device=scaling.device) + 0j
    for depth, step in enumerate(path):
        turned = 2.0**depth * angles * places
        result = result * torch.complex(turned.cos() @ taps[step], turned.sin() @ taps[step])
    return result


def _spectrum(path: Path, scaling: Tensor, shape: torch.Size) -> Tensor:
    """Of a band, on half the plane of frequencies: (H, W // 2 + 1)."""
    down, across = (_along(own, scaling, length) for own, length in zip(path, shape, strict=True))
    return down[:, None] * across[: shape[1] // 2 + 1]


def responses(images: Tensor, scaling: Tensor, paths: Sequence[Path]) -> Iterator[Tensor]:
    """The responses of every band at all pixels, (..., H, W) each."""
    shape, spectra = images.shape[-2:], torch.fft.rfft2(images)
    for path in paths:
        yield torch.fft.irfft2(_spectrum(path, scaling, shape) * spectra, s=shape)


def put_back(bands: Sequence[Tensor], scaling: Tensor, paths: Sequence[Path], *, squared: bool = False) -> Tensor:
    """The adjoint of `responses`, (..., H, W); or the same with the filters squared pixel by pixel."""
    shape, total = bands[0].shape[-2:], 0.0
    for band, path in zip(bands, paths, strict=True):
        back = _spectrum(path, scaling, shape).conj()
        back = torch.fft.rfft2(torch.fft.irfft2(back, s=shape) ** 2) if squared else back
        total = total + back * torch.fft.rfft2(band)
    return torch.fft.irfft2(total, s=shape)


def spread(coefficients: Tensor, stride: int) -> Tensor:
    """Coefficients (..., h, w) at every `stride`-th pixel of images (..., h · stride, w · stride), zero elsewhere."""
    height, width = coefficients.shape[-2:]
    cells = torch.nn.functional.pad(coefficients[..., :, None, :, None], (0, stride - 1, 0, 0, 0, stride - 1))
    return cells.reshape(*coefficients.shape[:-2], height * stride, width * stride)
