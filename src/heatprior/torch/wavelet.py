"""The wavelet prior as a module: f(x, t) = ∏_j ∏_m xi_j psi_j(xi_j c_jm, t), c the coefficients of a basis.

Of all the priors here the one that is an exact density of whole images. Its parameters are free: the logarithms of the
norms xi and the logits of the weights. The basis, orthonormal, is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heatprior.errors import InvalidInputError
from heatprior.kernels.grids import EVERY, Grid
from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import SIDE, WaveletPrior
from heatprior.priors.wavelet_bases import WaveletBasis
from heatprior.priors.whole_image_step import RATIO
from heatprior.torch import compiled, experts
from heatprior.torch.arguments import Sigma, as_sigma
from heatprior.torch.chunks import in_chunks, recomputed
from heatprior.torch.module import Posterior, PriorModule
from heatprior.torch.proximal import prox_of_images
from heatprior.torch.wavelet_transform import put_back, put_back_squared, responses, spread


class _Model(NamedTuple):
    """What the parameters stand for, in one type."""

    norms: Tensor  # xi_j, (J,)
    log_weights: Tensor  # (J, L)
    means: Tensor  # (L,)
    scaling: Tensor
    base: float  # sigma_0


# (u, variance of the noise on it, log-weights (1, L)) → tensors like u; all (n, 1)
OfResponses = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]


class WaveletModule(PriorModule):
    """`scaling`, the filter of the basis, and the parameters `log_norms` (J,) and `logits` (J, L)."""

    scaling: Tensor
    means: Tensor
    log_norms: Tensor
    logits: Tensor

    def _take(self, prior: WaveletPrior) -> None:
        self._add_buffer("scaling", prior.bands.scaling)
        self._add_buffer("means", prior.experts.means)
        self._add_parameter("log_norms", np.log(prior.norms))
        self._add_parameter("logits", prior.experts.log_weights)
        self._base, self._reach = prior.experts.base_sigma, prior.experts.reach
        self.basis = prior.bands
        # Read here: torch.compile cannot enter the lock of a cached property.
        self._paths, self._strides = prior.bands.paths, prior.bands.strides

    def _made(self) -> WaveletPrior:
        basis = WaveletBasis(self.scaling.detach().cpu().double().numpy(), self.basis.levels, self.basis.splits)
        norms, logits = (x.detach().cpu().double().numpy() for x in (self.log_norms.exp(), self.logits))
        return WaveletPrior(basis, norms, Experts(logits, self._reach), self.card)

    @property
    def size(self) -> int:
        """1: it takes whole images."""
        return 1

    @property
    def unit(self) -> int:
        """What the sides of images must be multiples of, but for `denoise`."""
        return self.basis.unit

    def log_prob(self, y: Tensor, sigma: Sigma) -> Tensor:
        """log f(y, t) of cyclic images (..., H, W) on the span of the bands: (...)."""
        self._check(y)
        sigmas = as_sigma(sigma, self.logits, y.shape[:-2])
        if compiled.may_do(self, y, sigmas):
            return compiled.called(self.to_prior().log_prob, y, sigmas)[0]
        model = self.model(self.logits.dtype)

        def function(u: Tensor, noise: Tensor, log_weights: Tensor) -> tuple[Tensor]:
            return (experts.log_density(u, model.base**2 + noise, log_weights, model.means),)

        total = torch.zeros((), dtype=self.logits.dtype, device=y.device)
        for j, c in enumerate(self.coefficients(model, y.to(self.logits.dtype))):
            logs = self._of_band(model, j, function, c, sigmas)[0]
            total = total + (logs + self.log_norms[j]).sum((-2, -1))
        return total.to(y.dtype)

    def score(self, y: Tensor, sigma: Sigma) -> Tensor:
        """∇ log f(y, t) = Σ_j Σ_m g_jm xi_j (log psi_j)'(xi_j c_jm, t): (..., H, W)."""
        self._check(y)
        sigmas = as_sigma(sigma, self.logits, y.shape[:-2])
        if compiled.may_do(self, y, sigmas):
            return compiled.called(self.to_prior().score, y, sigmas)[0]
        model = self.model(self.logits.dtype)

        def function(u: Tensor, noise: Tensor, log_weights: Tensor) -> tuple[Tensor]:
            return (experts.slope(u, model.base**2 + noise, log_weights, model.means),)

        slopes = [
            model.norms[j] * self._of_band(model, j, function, c, sigmas)[0]
            for j, c in enumerate(self.coefficients(model, y.to(self.logits.dtype)))
        ]
        return self.synthesised(model, slopes).to(y.dtype)

    def posterior(self, y: Tensor, sigma: Sigma) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean images, in this one basis: (..., H, W) each."""
        self._check(y)
        sigmas = as_sigma(sigma, self.logits, y.shape[:-2])
        if compiled.may_do(self, y, sigmas):
            return Posterior(*compiled.called(self.to_prior().posterior, y, sigmas))
        model = self.model(self.logits.dtype)

        def function(u: Tensor, noise: Tensor, log_weights: Tensor) -> tuple[Tensor, Tensor]:
            return experts.posterior(u, noise, model.base, log_weights, model.means)

        images, square = y.to(self.logits.dtype), sigmas[..., None, None] ** 2
        changes, variances = [], []
        for j, c in enumerate(self.coefficients(model, images)):
            mean, variance = self._of_band(model, j, function, c, sigmas)
            changes.append(mean / model.norms[j] - c)
            variances.append(variance / model.norms[j] ** 2 - square)  # off the span it is sigma²
        variance = square + put_back_squared(variances, model.scaling, self._paths)
        return Posterior((images + self.synthesised(model, changes)).to(y.dtype), variance.to(y.dtype))

    def sample(
        self,
        count: int,
        sigma: Sigma = 0.0,
        *,
        generator: torch.Generator | None = None,
        shape: tuple[int, int] = (SIDE, SIDE),
    ) -> Tensor:
        """Exact draws of noisy images, (count, H, W); without gradient. Other sides are cut from the next larger."""
        with torch.no_grad():
            model = self.model(self.logits.dtype)
            height, width = (-(-length // self.unit) * self.unit for length in shape)
            sigmas = as_sigma(sigma, self.logits, torch.Size([count])).expand(count)
            coefficients = []
            for j, stride in enumerate(self._strides):
                size = (count, height // stride, width // stride)
                noise = (model.norms[j] * sigmas).square().repeat_interleave(size[1] * size[2])[:, None]
                draws = experts.sample(
                    len(noise), model.base**2 + noise, model.log_weights[j : j + 1], model.means, generator
                )
                coefficients.append(draws.reshape(size) / model.norms[j])
            return self.synthesised(model, coefficients)[:, : shape[0], : shape[1]]

    def prox(self, y: Tensor, sigma: float, gamma: float) -> Tensor:
        """argmin_x −gamma log f(x, t) + ½ ‖x − y‖², (..., H, W), coefficient by coefficient; without gradient."""
        self._check(y)
        return prox_of_images(self, y, sigma, gamma)

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:  # noqa: ARG002
        """By how much the posterior mean, averaged over all shifts of the basis, changes images (N, H, W) of any size.

        The average is no posterior mean of one density. Images are mirrored beyond their edges. Between the noise
        levels of a map, at most RATIO apart, changes are straight in log sigma. Without patches, a grid means nothing.
        """
        model = self.model(images.dtype)
        places = [self._mirrored(length, images.device) for length in images.shape[-2:]]
        extended = images[:, places[0]][:, :, places[1]]
        before, (height, width) = self.basis.reach, images.shape[-2:]

        def at(level: Tensor) -> Tensor:
            changed = recomputed(lambda pixels, noise: self._shift_averaged(model, pixels, noise), extended, level)
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
        """What the parameters stand for."""
        tensors = (self.log_norms.exp(), self.logits.log_softmax(-1), self.means, self.scaling)
        norms, log_weights, means, scaling = (tensor.to(dtype) for tensor in tensors)
        return _Model(norms, log_weights, means, scaling, self._base)

    def _shift_averaged(self, model: _Model, images: Tensor, sigma: Tensor) -> Tensor:
        """sigma² Σ_j shares_j K_jᵀ (log psi_j)'(K_j y), as priors/bands.py: sigma (1 or N,)."""

        def function(u: Tensor, noise: Tensor, log_weights: Tensor) -> tuple[Tensor]:
            return (experts.slope(u, model.base**2 + noise, log_weights, model.means),)

        levels = sigma.reshape(()) if sigma.numel() == 1 else sigma
        changes = [
            float(self.basis.shares[j]) * model.norms[j] * self._of_band(model, j, function, u, levels)[0]
            for j, u in enumerate(responses(images, model.scaling, self._paths))
        ]
        return sigma[:, None, None] ** 2 * put_back(changes, model.scaling, self._paths)

    def _of_band(self, model: _Model, j: int, function: OfResponses, c: Tensor, sigmas: Tensor) -> tuple[Tensor, ...]:
        """`function` of the responses xi_j c of a band, in chunks: tensors like c (..., h, w); sigmas () or (...)."""
        flat, noise = model.norms[j] * c.reshape(-1, 1), (model.norms[j] * sigmas).square()
        if noise.ndim:
            noise = noise[..., None, None].expand(c.shape).reshape(-1)

        def some(u: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
            return function(u, noise[..., None], model.log_weights[j : j + 1])

        results = in_chunks(some, flat, noise, self.at_once(len(model.means), c.device))
        return tuple(result.reshape(c.shape) for result in results)

    def coefficients(self, model: _Model, images: Tensor) -> list[Tensor]:
        """Of every band, (..., H / stride, W / stride)."""
        found = responses(images, model.scaling, self._paths)
        return [u[..., ::stride, ::stride] for u, stride in zip(found, self._strides, strict=True)]

    def synthesised(self, model: _Model, coefficients: list[Tensor]) -> Tensor:
        """The adjoint of `coefficients`, and its inverse on the span."""
        bands = [spread(c, stride) for c, stride in zip(coefficients, self._strides, strict=True)]
        return put_back(bands, model.scaling, self._paths)

    def _mirrored(self, length: int, device: torch.device) -> Tensor:
        """Which pixel stands where: the image, mirrored beyond both ends as far as the filters reach."""
        place = torch.arange(-self.basis.reach, length + self.basis.reach, device=device) % (2 * length)
        return torch.where(place < length, place, 2 * length - 1 - place)

    def _check(self, y: Tensor) -> None:
        if y.dtype not in (torch.float32, torch.float64):
            raise InvalidInputError(f"images are {y.dtype}; expected float32 or float64, scaled to [0, 1]")
        if y.ndim < 2 or any(length < 1 or length % self.unit for length in y.shape[-2:]):
            raise InvalidInputError(
                f"images have shape {tuple(y.shape)} but a basis of {self.basis.levels} levels needs sides that are "
                f"multiples of {self.unit}; crop them, or use `denoise`, which takes any size"
            )
