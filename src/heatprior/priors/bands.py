"""Bands of whole images: filters given by their spectra on a cyclic grid, and what two priors do with their responses.

A spectrum is a function of frequency, so a band exists on a grid of any size. The filters have norms xi_j times those
of their spectra, and an expert each. `shares` says how much of a response counts when all are put together again: one
where the bands split the frequencies among them, one over the redundancy where each band alone repeats itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from heatprior.arrays import FloatArray
from heatprior.display import as_html, describe_prior, tile
from heatprior.errors import InvalidInputError
from heatprior.kernels.lookup import look_up
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress
from heatprior.noise_value import Noise
from heatprior.priors.arguments import as_images, as_sigma
from heatprior.priors.experts import Experts, experts_from
from heatprior.priors.protocol import ImagePrior, denoise_whole, with_card
from heatprior.priors.schedules import Schedules, schedules_on
from heatprior.store import PriorFile, write_prior_file

if TYPE_CHECKING:
    from heatprior.priors.convolutional import Tiling
    from heatprior.priors.wavelet import WaveletBasis

CELLS = 2048  # of a table
TAIL_WIDTHS = 6.0  # beyond the outermost mean that it reaches; further out a posterior mean is straight
NORM_RANGE = (1e-4, 1e4)
SMALL = (64, 64)  # pixels of a filter in a notebook
SIDE = 128  # pixels of a sample, by default

Spectrum = NDArray[Any]  # (H, W // 2 + 1), real or complex: half the plane of frequencies
Shape = tuple[int, int]
Bands = Union["Tiling", "WaveletBasis"]  # J filters on any grid, spectrum by spectrum


def to_spectrum(images: FloatArray) -> Spectrum:
    """The Fourier transform of images: (..., H, W) → (..., H, W // 2 + 1)."""
    return np.asarray(fft.rfft2(images))


def image_of(spectra: Spectrum, shape: Shape) -> FloatArray:
    """The inverse of `to_spectrum`."""
    return np.asarray(fft.irfft2(spectra, s=shape))


@lru_cache(maxsize=256)  # of several steps at one noise level
def _table(expert: Experts, xi: float, sigma: float) -> tuple[FloatArray, float]:
    """sigma² xi (log psi)'(xi u) at equal steps of u, and how far out they reach."""
    reach = (expert.reach + TAIL_WIDTHS * float(np.hypot(expert.base_sigma, xi * sigma))) / xi
    places = np.linspace(-reach, reach, CELLS + 1)[:, None]
    return sigma**2 * xi * expert.first_derivative(xi * places, xi * sigma)[:, 0], reach


@lru_cache(maxsize=8)
def one_by_one(experts: Experts) -> tuple[Experts, ...]:
    """Each expert by itself."""
    return tuple(Experts(row[None], experts.reach) for row in experts.logits)


def of_type(result: FloatArray, like: FloatArray) -> FloatArray:
    """A result in the type of the images, float32 or float64."""
    return result.astype(np.float32 if np.asarray(like).dtype.itemsize <= 4 else np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class BandPrior:
    """The common part of priors on bands: the bands, xi_j (J,), the experts, and a card."""

    kind: ClassVar[str]
    bands_from: ClassVar[Any]  # of a `PriorFile`
    patch_shape: ClassVar[tuple[int, ...]] = ()  # whole images of any size
    noise_likelihood: ClassVar[None] = None  # noise is estimated from patches
    bands: Bands
    norms: FloatArray
    experts: Experts
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        norms, count, experts = np.array(self.norms, np.float64), self.bands.count, self.experts.logits.shape[0]
        if norms.shape != (count,) or experts != count:
            raise InvalidInputError(
                f"{count} bands but norms of shape {norms.shape} and {experts} experts; each band needs one of each"
            )
        if not ((norms >= NORM_RANGE[0]) & (norms <= NORM_RANGE[1])).all():
            raise InvalidInputError(
                f"norms are {norms.min():g} to {norms.max():g}; expected {NORM_RANGE[0]:g} to {NORM_RANGE[1]:g}"
            )
        norms.flags.writeable = False
        object.__setattr__(self, "norms", norms)
        object.__setattr__(self, "card", dict(self.card))

    def __repr__(self) -> str:
        return describe_prior(self, f"{self.bands.count} bands of whole images")

    def _repr_html_(self) -> str:
        filters = [image_of(self.bands.spectrum(j, SMALL), SMALL) for j in range(self.bands.count)]
        return as_html(repr(self), tile([np.fft.fftshift(kernel) for kernel in filters]))

    @property
    def parameters(self) -> int:
        """The number of learnt parameters: J of the filters and J L of the experts; the bands are given."""
        return self.norms.size + self.experts.logits.size

    @property
    def margin(self) -> int:
        """The number of pixels beyond an edge that matter."""
        return self.bands.margin

    @property
    def unit(self) -> int:
        """The period of the coarsest band, in pixels."""
        return self.bands.unit

    @property
    def schedules(self) -> Schedules:
        """The schedules of half-quadratic splitting on the card."""
        return schedules_on(self.card)

    def denoise_step(
        self: ImagePrior,
        image: FloatArray,
        noise: Noise,
        progress: Progress | None = None,
        *,
        grid: Grid = EVERY,  # noqa: ARG002
    ) -> FloatArray:
        """One step of empirical Bayes, see `Prior`; without patches, a grid means nothing."""
        return denoise_whole(self, image, noise, progress)

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells | None:  # noqa: ARG002
        """None: Fourier transforms look at the whole image at once."""
        return None

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = Σ_j K_jᵀ (log psi_j)'(K_j y, t), over the coefficients of every band: (..., H, W)."""
        images, sigmas = self._check(y, sigma)
        slopes = {
            j: self.norms[j] * expert.first_derivative(self.norms[j] * c[..., None], self.norms[j] * sigmas)[..., 0]
            for j, c, expert in self._coefficients(images)
        }
        return of_type(self._put_back(slopes, images.shape), y)

    def denoise(self, image: FloatArray, sigma: float) -> FloatArray:
        """y + sigma² Σ_j shares_j K_jᵀ (log psi_j)'(K_j y) of a whole image (H, W) of any size: in float32.

        By tables, right to about 1e-5. Where bands split the frequencies it is Tweedie's formula; where each band alone
        repeats itself it is the mean over all shifts of the posterior mean, cycle spinning, and no longer that of one
        density.
        """
        shape = (image.shape[0], image.shape[1])
        noisy = to_spectrum(np.ascontiguousarray(image, np.float32))
        change = np.zeros_like(noisy)
        for j, expert in enumerate(one_by_one(self.experts)):
            spectrum = self.bands.spectrum(j, shape).astype(np.complex64)
            if not spectrum.any():
                continue
            u = image_of(spectrum * noisy, shape)
            look_up(u, *_table(expert, float(self.norms[j]), sigma))
            change += self.bands.shares[j] * np.conj(spectrum) * to_spectrum(u)
        return np.asarray(image + image_of(change, shape), np.float32)

    def facts(self) -> dict[str, object]:
        """A summary of the prior, for printing."""
        components = f"{self.experts.logits.shape[1]} per band, over responses of ±{self.experts.reach:g}"
        return with_card(self, bands=f"{self.bands.count}: {self.bands.describe()}", components=components)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file, parameters in float32; the file appears only when it is complete."""
        learnt: dict[str, Any] = {
            "norms": self.norms.astype(np.float32),
            "log_weights": self.experts.log_weights.astype(np.float32),
            "reach": np.array([self.experts.reach]),
        }
        write_prior_file(Path(path), PriorFile(self.kind, {**learnt, **self.bands.tensors()}, self.card))

    @classmethod
    def from_file(cls, contents: PriorFile) -> Self:
        """The inverse of `save`; refuses bands that are none and weights off the simplex."""
        norms, log_weights, reach = contents.arrays("norms", "log_weights", "reach")
        return cls(cls.bands_from(contents), norms, experts_from(log_weights, reach), contents.card)

    def _log_density(self, y: FloatArray, sigma: ArrayLike, volumes: FloatArray) -> FloatArray:
        """Σ_j Σ_m (log psi_j(xi_j c_jm, t) + volumes_j): (...)."""
        images, sigmas = self._check(y, sigma)
        total = np.zeros(images.shape[:-2])
        for j, c, expert in self._coefficients(images):
            logs = expert.log_density(self.norms[j] * c[..., None], self.norms[j] * sigmas)
            total += (logs + volumes[j]).sum(axis=(-3, -2, -1))
        return of_type(total, y)

    def _check(self, y: FloatArray, sigma: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Images in float64, and their noise levels (..., 1, 1, 1)."""
        images = as_images(y)
        self.bands.check_shape((images.shape[-2], images.shape[-1]))
        return images, as_sigma(sigma, images.shape[:-2])[..., None, None, None]

    def _coefficients(self, images: FloatArray) -> Iterator[tuple[int, FloatArray, Experts]]:
        """Number, coefficients (..., H / stride, W / stride) and expert of every band that this grid has."""
        shape = (images.shape[-2], images.shape[-1])
        spectra = to_spectrum(images)
        for j, (stride, expert) in enumerate(zip(self.bands.strides, one_by_one(self.experts), strict=True)):
            spectrum = self.bands.spectrum(j, shape)
            if spectrum.any():
                yield j, image_of(spectrum * spectra, shape)[..., ::stride, ::stride], expert

    def _put_back(
        self, coefficients: Mapping[int, FloatArray], whole: tuple[int, ...], *, squared: bool = False
    ) -> FloatArray:
        """Σ c g, or Σ c g² pixel by pixel, over the coefficients of the bands of these numbers: (..., H, W)."""
        shape = (whole[-2], whole[-1])
        total: Spectrum = np.zeros((*whole[:-1], shape[1] // 2 + 1), np.complex128)
        for j, c in coefficients.items():
            spread, stride = np.zeros(whole), self.bands.strides[j]
            spread[..., ::stride, ::stride] = c
            spectrum = np.conj(self.bands.spectrum(j, shape))
            total += (to_spectrum(image_of(spectrum, shape) ** 2) if squared else spectrum) * to_spectrum(spread)
        return image_of(total, shape)
