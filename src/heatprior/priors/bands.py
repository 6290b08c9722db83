"""Bands of whole images: filters given by their spectra on a cyclic grid, and what two priors do with their responses.

A spectrum is a function of frequency, so a band exists on a grid of any size. The filters have norms xi_j times those
of their spectra, and an expert each. `shares` says how much of a response counts when all are put together again: one
where the bands split the frequencies among them, one over the redundancy where each band alone repeats itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from heatprior.arrays import FloatArray
from heatprior.display import as_html, describe_prior, tile
from heatprior.errors import InvalidInputError
from heatprior.kernels.lookup import look_up
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress
from heatprior.noise_value import Noise
from heatprior.priors.arguments import LARGEST_GREY
from heatprior.priors.experts import Experts
from heatprior.priors.protocol import ImagePrior, denoise_whole, with_card
from heatprior.priors.schedules import Schedules, schedules_on
from heatprior.store import PriorFile, write_prior_file

CELLS = 2048  # of a table
TAIL_WIDTHS = 6.0  # beyond the outermost mean that it reaches; further out a posterior mean is straight
NORM_RANGE = (1e-4, 1e4)
SMALL = (64, 64)  # pixels of a filter in a notebook

Spectrum = NDArray[Any]  # (H, W // 2 + 1), real or complex: half the plane of frequencies
Shape = tuple[int, int]


class Bands(Protocol):
    """J filters on any grid, spectrum by spectrum."""

    @property
    def count(self) -> int:
        """J."""
        ...

    @property
    def shares(self) -> FloatArray:
        """The weight of each response, (J,)."""
        ...

    def spectrum(self, band: int, shape: Shape) -> Spectrum:
        """F k_j / xi_j on a grid of H×W pixels; all zero if the grid is too small for the band."""
        ...


def to_spectrum(images: FloatArray) -> Spectrum:
    """The Fourier transform of images: (..., H, W) → (..., H, W // 2 + 1)."""
    return np.asarray(fft.rfft2(images))


def image_of(spectra: Spectrum, shape: Shape) -> FloatArray:
    """The inverse of `to_spectrum`."""
    return np.asarray(fft.irfft2(spectra, s=shape))


def shrink(image: FloatArray, sigma: float, bands: Bands, norms: FloatArray, experts: Experts) -> FloatArray:
    """y + sigma² Σ_j shares_j K_jᵀ (log psi_j)'(K_j y), with psi_j at noise level sigma: (H, W), in float32.

    Of responses that repeat themselves it is the mean over all shifts of the posterior mean: cycle spinning.
    """
    shape = (image.shape[0], image.shape[1])
    noisy = to_spectrum(np.ascontiguousarray(image, np.float32))
    change = np.zeros_like(noisy)
    for j, expert in enumerate(one_by_one(experts)):
        spectrum = bands.spectrum(j, shape).astype(np.complex64)
        if not spectrum.any():
            continue
        u = image_of(spectrum * noisy, shape)
        look_up(u, *_table(expert, float(norms[j]), sigma))
        change += bands.shares[j] * np.conj(spectrum) * to_spectrum(u)
    return np.asarray(image + image_of(change, shape), np.float32)


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


def as_images(y: FloatArray) -> FloatArray:
    """Images (..., H, W) as float64, checked to be finite."""
    y = np.asarray(y)
    if not np.issubdtype(y.dtype, np.floating):
        raise InvalidInputError(f"images are {y.dtype}; expected floats scaled to [0, 1] (divide 8-bit values by 255)")
    if y.ndim < 2 or y.size == 0:
        raise InvalidInputError(f"images have shape {y.shape}; expected (H, W), or more axes in front of them")
    if not np.isfinite(y).all():
        raise InvalidInputError("images hold NaN or infinite values; fill them first")
    if np.abs(y).max() > LARGEST_GREY:
        raise InvalidInputError(f"images hold values beyond ±{LARGEST_GREY:g}; scale grey levels to [0, 1]")
    return y.astype(np.float64)


def of_type(result: FloatArray, like: FloatArray) -> FloatArray:
    """A result in the type of the images, float32 or float64."""
    return result.astype(np.float32 if np.asarray(like).dtype.itemsize <= 4 else np.float64, copy=False)


BandsOf = TypeVar("BandsOf", bound=Bands)


@dataclass(frozen=True, eq=False)
class BandPrior(Generic[BandsOf]):
    """The common part of priors on bands: the bands, xi_j (J,), the experts, and a card."""

    bands: BandsOf
    norms: FloatArray
    experts: Experts
    card: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return describe_prior(self, f"{self.bands.count} bands of whole images")

    def _repr_html_(self) -> str:
        filters = [image_of(self.bands.spectrum(j, SMALL), SMALL) for j in range(self.bands.count)]
        return as_html(repr(self), tile([np.fft.fftshift(kernel) for kernel in filters]))

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

    @property
    def parameters(self) -> int:
        """The number of learnt parameters: J of the filters and J L of the experts; the bands are given."""
        return self.norms.size + self.experts.logits.size

    @property
    def patch_shape(self) -> tuple[int, ...]:
        """(): a prior of whole images of any size."""
        return ()

    @property
    def schedules(self) -> Schedules:
        """The schedules of half-quadratic splitting on the card."""
        return schedules_on(self.card)

    @property
    def noise_likelihood(self) -> None:
        """None: noise is estimated from the misfit of whole images instead."""
        return

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

    def _facts(self, kind: str, bands: str) -> dict[str, object]:
        facts: dict[str, object] = {
            "name": self.card.get("name", "none"),
            "kind": kind,
            "bands": f"{self.bands.count}: {bands}",
            "components": f"{self.experts.logits.shape[1]} per band, over responses of ±{self.experts.reach:g}",
            "parameters": self.parameters,
        }
        return with_card(facts, self.card)

    def _save(self, path: str | PathLike[str], kind: str, tensors: dict[str, Any]) -> None:
        learnt: dict[str, Any] = {
            "norms": self.norms.astype(np.float32),
            "log_weights": self.experts.log_weights.astype(np.float32),
            "reach": np.array([self.experts.reach]),
        }
        write_prior_file(Path(path), PriorFile(kind, {**learnt, **tensors}, self.card))
