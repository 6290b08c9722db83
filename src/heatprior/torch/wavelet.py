"""The wavelet prior as a module: f(x, t) = ∏_j ∏_m xi_j psi_j(xi_j c_jm, t), c the coefficients of a basis.

The one prior here that is an exact density of whole images. Its parameters are free: the logarithms of the
norms xi and the logits of the weights. The basis, orthonormal, is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Grid
from heatprior.priors.experts import Experts
from heatprior.priors.protocol import RATIO
from heatprior.priors.wavelet import SIDE, WaveletBasis, WaveletPrior
from heatprior.torch import experts
from heatprior.torch.module import (
    Posterior,
    PriorModule,
    Sigma,
    as_sigma,
    call_library,
    can_use_library,
    in_chunks,
    recompute,
)

PLACES = 1024  # of the grid on which the proximal map is sought
BEYOND = 6.0  # widths beyond the outermost mean that it reaches
STEPS = 8  # of Newton's method
Path = tuple[str, str]  # of splits down and across: "l" coarse, "h" fine


class _Model(NamedTuple):
    """The quantities that the parameters stand for, in one type."""

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

    def _make_prior(self) -> WaveletPrior:
        basis = WaveletBasis(self.scaling.detach().cpu().double().numpy(), self.basis.levels, self.basis.splits)
        norms, logits = (x.detach().cpu().double().numpy() for x in (self.log_norms.exp(), self.logits))
        return WaveletPrior(basis, norms, Experts(logits, self._reach), self.card)

    @property
    def size(self) -> int:
        """1: the prior acts on whole images."""
        return 1

    @property
    def unit(self) -> int:
        """The sides of images must be multiples of this, except in `denoise`."""
        return self.basis.unit

    def log_prob(self, y: Tensor, sigma: Sigma) -> Tensor:
        """log f(y, t) of cyclic images (..., H, W) on the span of the bands: (...)."""
        sigmas = self._check(y, sigma)
        if can_use_library(self, y, sigmas):
            return call_library(self.to_prior().log_prob, y, sigmas)[0]
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
        sigmas = self._check(y, sigma)
        if can_use_library(self, y, sigmas):
            return call_library(self.to_prior().score, y, sigmas)[0]
        model = self.model(self.logits.dtype)

        def function(u: Tensor, noise: Tensor, log_weights: Tensor) -> tuple[Tensor]:
            return (experts.slope(u, model.base**2 + noise, log_weights, model.means),)

        slopes = [
            model.norms[j] * self._of_band(model, j, function, c, sigmas)[0]
            for j, c in enumerate(self.coefficients(model, y.to(self.logits.dtype)))
        ]
        return self.synthesise(model, slopes).to(y.dtype)

    def posterior(self, y: Tensor, sigma: Sigma) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean images, in this one basis: (..., H, W) each."""
        sigmas = self._check(y, sigma)
        if can_use_library(self, y, sigmas):
            return Posterior(*call_library(self.to_prior().posterior, y, sigmas))
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
        return Posterior((images + self.synthesise(model, changes)).to(y.dtype), variance.to(y.dtype))

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
            return self.synthesise(model, coefficients)[:, : shape[0], : shape[1]]

    def prox(self, y: Tensor, sigma: float, gamma: float) -> Tensor:
        """argmin_x −gamma log f(x, t) + ½ ‖x − y‖², (..., H, W), coefficient by coefficient; without gradient."""
        self._check(y, sigma)
        with torch.no_grad():
            model, images = self.model(self.logits.dtype), y.to(self.logits.dtype)
            at_once = (self.at_once(PLACES, y.device), self.at_once(len(model.means), y.device))
            moves = []
            for j, c in enumerate(self.coefficients(model, images)):
                variance = model.base**2 + (model.norms[j] * sigma) ** 2
                band = Band(model.norms[j], variance, model.log_weights[j : j + 1], model.means)
                moves.append(prox_of_band(band, c.reshape(-1), gamma, at_once).reshape(c.shape) - c)
            return (images + self.synthesise(model, moves)).to(y.dtype)

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:  # noqa: ARG002
        """The change of images (N, H, W) of any size by the posterior mean, averaged over all shifts of the basis.

        The average is no posterior mean of one density. Images are mirrored beyond their edges. Between the noise
        levels of a map, at most RATIO apart, changes are linear in log sigma. The grid is ignored: it has no patches.
        """
        model = self.model(images.dtype)
        places = [self._mirror(length, images.device) for length in images.shape[-2:]]
        extended = images[:, places[0]][:, :, places[1]]
        before, (height, width) = self.basis.margin, images.shape[-2:]

        def at(level: Tensor) -> Tensor:
            changed = recompute(lambda pixels, noise: self._average_shifts(model, pixels, noise), extended, level)
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
        return _Model(norms, log_weights, means, scaling, self._base)

    def _average_shifts(self, model: _Model, images: Tensor, sigma: Tensor) -> Tensor:
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
        """The coefficients of every band, (..., H / stride, W / stride)."""
        found = responses(images, model.scaling, self._paths)
        return [u[..., ::stride, ::stride] for u, stride in zip(found, self._strides, strict=True)]

    def synthesise(self, model: _Model, coefficients: list[Tensor]) -> Tensor:
        """The adjoint of `coefficients`, and its inverse on the span."""
        bands = [spread(c, stride) for c, stride in zip(coefficients, self._strides, strict=True)]
        return put_back(bands, model.scaling, self._paths)

    def _mirror(self, length: int, device: torch.device) -> Tensor:
        """The indices of the pixels of an image mirrored beyond both ends as far as the filters reach."""
        place = torch.arange(-self.basis.margin, length + self.basis.margin, device=device) % (2 * length)
        return torch.where(place < length, place, 2 * length - 1 - place)

    def _check(self, y: Tensor, sigma: Sigma) -> Tensor:
        """The noise levels, () or one per image; refuses images without a basis."""
        if y.dtype not in (torch.float32, torch.float64):
            raise InvalidInputError(f"images are {y.dtype}; expected float32 or float64, scaled to [0, 1]")
        if y.ndim < 2 or any(length < 1 or length % self.unit for length in y.shape[-2:]):
            raise InvalidInputError(
                f"images have shape {tuple(y.shape)} but a basis of {self.basis.levels} levels needs sides that are "
                f"multiples of {self.unit}; crop them, or use `denoise`, which takes any size"
            )
        return as_sigma(sigma, self.logits, y.shape[:-2])


# The proximal map of −log f: one number at a time, since the basis is orthonormal.
#
# prox(y) = argmin_x gamma (−log f(x, t)) + ½ ‖x − y‖² is, for each coefficient, argmin_c −gamma log psi(xi c, t) +
# ½ (c − c_y)², and leaves what is off the span as it is. That function of c may have several minima: the best place of
# a grid, finer than the experts are wide, is refined by Newton's method. Where two minima are equally deep the map
# jumps, as the true one does.


class Band(NamedTuple):
    """The density of the coefficients c of one band: −log psi(xi c, t)."""

    norm: Tensor  # xi, ()
    variance: Tensor  # of the noisy expert, ()
    log_weights: Tensor  # (1, L)
    means: Tensor  # (L,)

    def log_density(self, c: Tensor) -> Tensor:
        """log psi(xi c, t), up to a constant: (n,)."""
        return experts.log_density((self.norm * c)[:, None], self.variance, self.log_weights, self.means)[:, 0]

    def derivatives(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """First and second of log psi(xi c, t) in c: (n,) each."""
        u = self.norm * c
        found = experts.moments(u[:, None], self.variance, self.log_weights, self.means)
        slope = self.norm * (found.mean[:, 0] - u) / self.variance
        return slope, self.norm**2 * (found.variance[:, 0] - self.variance) / self.variance**2

    def grid(self, furthest: float) -> Tensor:
        """Places over all the mass of the expert, and as far out as any coefficient."""
        reach = (float(self.means[-1]) + BEYOND * float(self.variance.sqrt())) / float(self.norm)
        reach = max(reach, furthest)
        return torch.linspace(-reach, reach, PLACES, dtype=self.means.dtype, device=self.means.device)


def best_places(band: Band, places: Tensor, c: Tensor, gamma: float) -> Tensor:
    """The place of the grid where ½ (place − c)² − gamma log psi is least, for each of c (n,)."""
    values = 0.5 * (c[:, None] - places) ** 2 - gamma * band.log_density(places)
    return places[values.argmin(-1)]


def refine(band: Band, start: Tensor, c: Tensor, gamma: float, cell: float) -> Tensor:
    """Newton's steps from `start` (n,), never further from it than a `cell` of the grid."""
    x = start
    for _ in range(STEPS):
        slope, bend = band.derivatives(x)
        step = (x - c - gamma * slope) / (1.0 - gamma * bend).clamp_min(1e-3)
        x = torch.minimum(torch.maximum(x - step, start - cell), start + cell)
    return x


def prox_of_band(band: Band, c: Tensor, gamma: float, at_once: tuple[int, int]) -> Tensor:
    """argmin_x ½ (x − c)² − gamma log psi(xi x, t) of coefficients (n,), so many at once on the grid and by Newton."""
    places = band.grid(float(c.abs().max()))
    cell = float(places[1] - places[0])
    start = torch.cat([best_places(band, places, some, gamma) for some in c.split(at_once[0])])
    pairs = zip(start.split(at_once[1]), c.split(at_once[1]), strict=True)
    return torch.cat([refine(band, place, some, gamma, cell) for place, some in pairs])


# Orthonormal wavelets of cyclic images by shifts and sums: real, of any size, the same on every device.
#
# One split of an image along an axis at dilation s is x ↦ Σ_k h_k x(· + k s), h the scaling filter or its mirror. A
# band is a path of splits down and across. Its responses at all pixels serve cycle spinning; every 2^depth-th along
# each axis is a coefficient of the basis.


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
    """The responses of every band at all pixels, (..., H, W) each; bands share the work of their first splits."""
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
    """The filter of a path of splits, on a cyclic line: (length,)."""
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
