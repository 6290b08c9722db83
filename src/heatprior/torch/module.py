"""What all modules share: they are made from the priors of the library, and turn back into them.

Parameters are float64 as loaded, and none requires a gradient until the user asks for it (`requires_grad_()`). Methods
on patches compute in the type of the parameters and return the type of the patches; those on images compute in the type
of the images. Where no gradient is wanted, on the CPU, the compiled kernels of the library do the work.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Grid
from heatprior.restoration.denoising import denoise
from heatprior.restoration.pipeline import MOST_SCALES
from heatprior.restoration.pyramid import BETWEEN, crossover_table, read_crossovers
from heatprior.torch.denoising import Recipe, denoise_images

Sigma: TypeAlias = float | Tensor
Function = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
LEAST, MOST = 1e-6, 10.0  # noise levels that the library denoises images of
CACHE, MEMORY = 1 << 19, 1 << 25  # numbers of a chunk, on the CPU and elsewhere


class Posterior(NamedTuple):
    """Mean and variance, pixel by pixel, of the clean patch or image given the noisy one."""

    mean: Tensor
    variance: Tensor


class PriorModule(nn.Module):
    """A prior as a module; `card` says where it comes from."""

    room: int | None = None  # numbers that a chunk of patches may take; else what suits a CPU's cache, or a GPU
    logits: Tensor

    def __init__(self, prior: Any) -> None:
        super().__init__()
        self.card = dict(prior.card)
        self.schedules = prior.schedules
        self.crossovers, self.between = crossover_table(prior.card), read_crossovers(prior.card, BETWEEN)
        self._prior = prior
        self._take(prior)
        self._known = self._state()

    @abstractmethod
    def _take(self, prior: Any) -> None:
        """Make parameters and buffers of what the prior is made of."""

    @abstractmethod
    def _make_prior(self) -> Any:
        """A prior of the library with the parameters of now."""

    @property
    @abstractmethod
    def size(self) -> int:
        """b, the side of a patch; 1 for a prior of whole images."""

    @abstractmethod
    def model(self, dtype: torch.dtype) -> Any:
        """What the parameters stand for, in one type; on patches (n, a) its methods have the names of those here."""

    def log_prob(self, y: Tensor, sigma: Sigma) -> Tensor:
        """log f(y, t) of patches (..., a), or of images (..., H, W): (...); see that of the library's prior."""
        return self._evaluate("log_prob", y, sigma)[0]

    def score(self, y: Tensor, sigma: Sigma) -> Tensor:
        """∇ log f(y, t), of the shape of y."""
        return self._evaluate("score", y, sigma)[0]

    def posterior(self, y: Tensor, sigma: Sigma) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean patches or images."""
        return Posterior(*self._evaluate("posterior", y, sigma))

    def _evaluate(self, name: str, y: Tensor, sigma: Sigma) -> tuple[Tensor, ...]:
        """By the compiled kernels of the library where no gradient is wanted, otherwise by tensors."""
        sigmas = self._check(y, sigma)
        if can_use_library(self, y, sigmas):
            return call_library(getattr(self.to_prior(), name), y, sigmas)
        return tuple(found.to(y.dtype) for found in self._compute(name, y.to(self.logits.dtype), sigmas))

    def _check(self, y: Tensor, sigma: Sigma) -> Tensor:
        """The noise levels, () or one for each patch."""
        check_patches(y, self.size)
        return as_sigma(sigma, self.logits, y.shape[:-1])

    def _compute(self, name: str, y: Tensor, sigmas: Tensor) -> tuple[Tensor, ...]:
        """A method of the model at patches (..., a), in chunks: tensors (..., ·)."""
        levels = sigmas.reshape(-1) if sigmas.ndim else sigmas
        most = self.at_once(self.numbers(name, levels), y.device)
        results = in_chunks(getattr(self.model(y.dtype), name), y.reshape(-1, y.shape[-1]), levels, most)
        return tuple(result.reshape(y.shape[:-1] + result.shape[1:]) for result in results)

    def numbers(self, name: str, levels: Tensor) -> int:  # noqa: ARG002
        """How many numbers a patch takes in memory while this is computed: one for each logit."""
        return int(self.logits.numel())

    def sample(
        self, count: int, sigma: Sigma = 0.0, *, generator: torch.Generator | None = None, **shape: tuple[int, int]
    ) -> Tensor:
        """Draws of noisy patches (count, a), or images (count, H, W) of a `shape`, as the library's; no gradient."""
        device = "cpu" if generator is None else generator.device
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator, device=device)))
        like = self.logits
        level = as_sigma(sigma, like, torch.Size([count])).detach().cpu().numpy()
        return torch.as_tensor(
            self.to_prior().sample(count, level, rng=rng, **shape), dtype=like.dtype, device=like.device
        )

    @abstractmethod
    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:
        """The change of images (N, H, W) in one step, averaged over patches on a grid; sigma is one each, or maps."""

    def denoise(self, x: Tensor, sigma: Sigma, steps: int | None = None) -> Tensor:
        """Denoise images (B, C, H, W), grey levels scaled to [0, 1]: of the same shape and type.

        `sigma` is the standard deviation of the noise: a number, one per image (B,) or (B, 1, 1, 1), or a map that
        broadcasts to the images. `steps=1` averages the posterior means of all patches once; else that is done in
        several steps at falling levels, and at several scales. As `heatprior.denoise`. Three channels are colours.
        """
        if steps not in (None, 1):
            raise InvalidInputError(f"steps is {steps!r}; expected None, the prior's own schedule, or 1")
        check_images(x, self.size)
        levels = as_levels(sigma, x)
        by_library = x.dtype == torch.float32 and can_use_library(self, x, levels)
        if by_library and float(levels.min()) >= LEAST and float(levels.max()) <= MOST:
            return denoise_by_library(self.to_prior(), x, levels, steps)
        schedules, most = (None, 1) if steps == 1 else (self.schedules, MOST_SCALES if self._prior.patch_shape else 1)
        guided = bool(getattr(self._prior, "takes_guide", False))
        recipe = Recipe(schedules, most, self.size, self.crossovers, self.between, guided)
        return denoise_images(self.changes, x, levels, recipe)

    def forward(self, x: Tensor, sigma: Sigma, steps: int | None = None) -> Tensor:
        """As `denoise`."""
        return self.denoise(x, sigma, steps)

    def at_once(self, numbers: int, device: torch.device) -> int:
        """The number of patches (or responses) in a chunk if each takes so many numbers."""
        return max(1, (self.room or (CACHE if device.type == "cpu" else MEMORY)) // numbers)

    def to_prior(self) -> Any:
        """The prior of the library with the parameters of now, which needs no torch."""
        now = self._state()
        if not all(map(torch.equal, now, self._known)):
            self._prior, self._known = self._make_prior(), now
        return self._prior

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as a file that `heatprior.load` reads, `card` included."""
        replace(self.to_prior(), card=self.card).save(path)

    def _state(self) -> list[Tensor]:
        return [tensor.detach().to("cpu", torch.float64, copy=True) for tensor in self.state_dict().values()]

    def _add_parameter(self, name: str, values: Any) -> None:
        """A parameter in float64 that asks for no gradient."""
        tensor = torch.tensor(values, dtype=torch.float64)
        self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def _add_buffer(self, name: str, values: Any, *, persistent: bool = True) -> None:
        self.register_buffer(name, torch.tensor(values, dtype=torch.float64), persistent=persistent)


# The arguments of modules, checked at the border: patches, images, and noise levels that fit them.


def check_patches(y: Tensor, size: int) -> None:
    """Check that patches are floats (..., size²)."""
    check_type(y, "patches")
    if y.ndim == 0 or y.shape[-1] != size**2:
        raise InvalidInputError(
            f"patches have {y.shape[-1] if y.ndim else 1} pixels but this prior acts on {size**2} ({size}×{size}); "
            f"extract them with size={size}"
        )


def check_images(x: Tensor, size: int) -> None:
    """Check that images are floats (B, C, H, W), no side shorter than a patch."""
    check_type(x, "images")
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
    """Noise levels, one number, (B,), (H, W), or four axes, as four that broadcast to images (B, C, H, W)."""
    values = _as_tensor(sigma, x)
    if values.numel() == 1:
        return values.reshape(1, 1, 1, 1)
    fits = values.ndim == 4 and all(n in (1, m) for n, m in zip(values.shape, x.shape, strict=True))
    if fits:
        return values
    if values.shape == x.shape[:1]:  # also where B = H = W
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
        raise InvalidInputError(f"sigma is {sigma}; expected a finite number ≥ 0, for images scaled to [0, 1]")
    return values


def check_type(tensor: Any, what: str) -> None:
    """Check that a tensor holds floats."""
    if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.float32, torch.float64):
        kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InvalidInputError(f"{what} are {kind}; expected a tensor of float32 or float64, scaled to [0, 1]")


# Closed forms on patches, in chunks of bounded memory.


def in_chunks(function: Function, y: Tensor, sigma: Tensor, most: int) -> tuple[Tensor, ...]:
    """Call function(y, sigma) on at most `most` rows of y (n, ...) at a time, sigma () or (n,): tensors (n, ...)."""
    if len(y) <= most:
        return function(y, sigma)
    parts = [
        recompute(function, some, sigma if sigma.ndim == 0 else sigma[first : first + most])
        for first, some in zip(range(0, len(y), most), y.split(most), strict=True)
    ]
    return tuple(torch.cat(columns) for columns in zip(*parts, strict=True))


def recompute(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """Call function(*tensors), keeping only the tensors for the backward pass, which computes the rest again."""
    if not torch.is_grad_enabled():
        return function(*tensors)
    return checkpoint(function, *tensors, use_reentrant=False, preserve_rng_state=False)


def turn(frame: Tensor, angles: Tensor) -> Tensor:
    """Rotate a frame: exp(S) frame, S skew, (..., d, a), its rows as orthonormal as those of `frame`.

    Of `angles` (..., d, d) only what is above the diagonal counts: S = U − Uᵀ. Angle (i, j) turns row i towards row j.
    """
    upper = angles.triu(1)
    return torch.linalg.matrix_exp(upper - upper.mT) @ frame


# The compiled kernels of the library on the memory of torch, where no gradient is wanted, on the CPU: the arrays that
# the library gets are the tensors themselves; nothing is copied on the way in.


def can_use_library(module: nn.Module, *tensors: Tensor) -> bool:
    """Whether the library may compute this: no gradient, no device but the CPU, no transform of torch is involved."""
    if torch.compiler.is_compiling():
        return False
    taking_part = [*tensors, *module.parameters()]
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in taking_part)
    return not recorded and all(map(_is_plain, taking_part))


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is on the CPU, has no forward-mode tangent, and is in no transform of torch.func."""
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


def call_library(function: Callable[[FloatArray, FloatArray], Any], y: Tensor, sigma: Tensor) -> tuple[Tensor, ...]:
    """Call function(y, sigma) of the library; returns one tensor for each array."""
    answer = function(array_of(y), array_of(sigma))
    return tuple(map(torch.from_numpy, answer if isinstance(answer, tuple) else (answer,)))


def denoise_by_library(prior: Any, x: Tensor, levels: Tensor, steps: int | None) -> Tensor:
    """Images (B, C, H, W) of float32 denoised; levels (1 or B, 1 or C, 1 or H, 1 or W)."""
    images = torch.empty_like(x)
    together = 3 if x.shape[1] == 3 else 1  # channels that are colours; the library might take a fourth for alpha
    levels = levels.expand(len(x), x.shape[1], -1, -1)
    for index in range(len(x)):
        for first in range(0, x.shape[1], together):
            channels = slice(first, first + together)
            clean = _denoise_one(prior, array_of(x[index, channels]), array_of(levels[index, channels]), steps)
            images[index, channels] = torch.from_numpy(clean)
    return images


def _denoise_one(prior: Any, image: FloatArray, noise: FloatArray, steps: int | None) -> FloatArray:
    """One image (1 or 3, H, W)."""
    sigma: float | FloatArray = np.broadcast_to(noise, image.shape)
    if noise.shape[1:] == (1, 1):
        sigma = float(noise[0, 0, 0]) if noise.strides[0] == 0 or len(noise) == 1 else noise.reshape(-1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sigma is .* more than full scale")  # as it is where samplers begin
        return denoise(image, sigma, prior=prior, steps=steps, channel_axis=0, white=1.0)
