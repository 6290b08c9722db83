"""The wavelet prior: the convolutional model of section 3.2 where its theorem is exact, on orthonormal coefficients.

f(x, t) = ∏_j ∏_m xi_j psi_j(xi_j c_jm, t) with sigma_j²(t) = sigma_0² + xi_j² sigma², sigma = sqrt(2t), where c_jm are
the coefficients of band j of an orthonormal wavelet basis: as many as it has dimensions. Noise on the image is then
independent noise on the coefficients, as in Theorem 2, so the density is normalised, solves the heat equation, and can
be sampled directly. It is a density on the span of all bands: the coarsest approximation, brightness with it, is not
modelled, has no influence, is left as observed by the posterior, and is zero in samples.

A basis is tied to a grid of pixels. `denoise` takes the mean over all its shifts (cycle spinning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.patches import Progress
from heatprior.locks import cached_property
from heatprior.priors.arguments import as_sigmas_of
from heatprior.priors.bands import SIDE, BandPrior, Shape, Spectrum, of_type, one_by_one
from heatprior.priors.protocol import Posterior
from heatprior.store import PriorFile

TOLERANCE = 1e-6  # of the orthonormality of a scaling filter: float32 leaves 1e-7
MOST_LEVELS = 12
DETAILS = (("l", "h"), ("h", "l"), ("h", "h"))
QUARTERS = (("l", "l"), *DETAILS)


@dataclass(frozen=True, eq=False)
class WaveletBasis:
    """The scaling filter, the number of levels, and in how many of them, the finest, details are split once more.

    A scaling filter h, Σ_k h_k h_{k+2m} = δ_m, and its mirror g_k = (−1)^k h_{K−1−k} split a signal into a coarse and a
    fine half, each of half the length, by an orthogonal transform; splitting the coarse half again and again, along
    rows and columns, gives the bands. A band is a path of such splits along either axis, such as ("llh", "lll"): its
    filter is the product of h and g at doubled frequencies, and every 2^depth-th response along each axis is a
    coefficient. All others are coefficients of the same basis shifted, which is what cycle spinning averages over.
    """

    scaling: FloatArray
    levels: int
    splits: int = 0

    def __post_init__(self) -> None:
        taps = np.array(self.scaling, np.float64)
        if taps.ndim != 1 or taps.size < 2 or taps.size % 2:
            raise InvalidInputError(f"the scaling filter has shape {taps.shape}; expected an even number of taps")
        shifted = [float(taps[2 * m :] @ taps[: taps.size - 2 * m]) for m in range(taps.size // 2)]
        errors = np.abs(np.subtract(shifted, [1.0, *[0.0] * (len(shifted) - 1)]))
        if not errors.max() < TOLERANCE or not abs(taps.sum() - np.sqrt(2.0)) < TOLERANCE:
            raise InvalidInputError(
                f"the scaling filter is not orthonormal (off by {errors.max():.2g}); take Haar's, (1, 1) / √2, or such"
            )
        if not 1 <= self.levels <= MOST_LEVELS or not 0 <= self.splits < self.levels:
            raise InvalidInputError(
                f"{self.levels} levels and {self.splits} splits; expected 1 to {MOST_LEVELS} levels, and fewer splits"
            )
        taps.flags.writeable = False
        object.__setattr__(self, "scaling", taps)

    @cached_property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """The splits of each band along columns and rows, fine bands first."""
        found = []
        for level in range(self.levels):
            for detail in DETAILS:
                down, across = ("l" * level + step for step in detail)
                further = QUARTERS if level < self.splits else (("", ""),)
                found += [(down + i, across + j) for i, j in further]
        return tuple(found)

    @property
    def count(self) -> int:
        """J, the number of bands."""
        return len(self.paths)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The number of pixels from one coefficient of a band to the next, along each axis."""
        return tuple(2 ** len(down) for down, _ in self.paths)

    @property
    def unit(self) -> int:
        """The sides of an image must be multiples of this, to have a basis."""
        return int(2**self.levels)

    @property
    def shares(self) -> FloatArray:
        """One over the number of shifted bases that each response appears in, (J,)."""
        return 1.0 / np.square(self.strides, dtype=np.float64)

    @property
    def margin(self) -> int:
        """Pixels that the longest filter spans."""
        return (self.scaling.size - 1) * (self.unit - 1) + 1

    def check_shape(self, shape: Shape) -> None:
        """Refuse images without a basis."""
        if any(length < 1 or length % self.unit for length in shape):
            raise InvalidInputError(
                f"images are {shape[0]}×{shape[1]} pixels but a basis of {self.levels} levels needs multiples of "
                f"{self.unit}; crop them, or use `denoise`, which takes any size"
            )

    def describe(self) -> str:
        """Its levels and taps."""
        return f"{self.levels} levels of an orthonormal wavelet of {self.scaling.size} taps"

    def tensors(self) -> dict[str, Any]:
        """The scaling filter; levels and splits."""
        return {"scaling": self.scaling, "levels": np.array([self.levels, self.splits], np.int32)}

    @classmethod
    def from_file(cls, contents: PriorFile) -> WaveletBasis:
        """The inverse of `tensors`; refuses filters that are not orthonormal."""
        scaling, levels = contents.arrays("scaling", "levels")
        if levels.shape != (2,):
            raise PriorFileError(f"levels has shape {levels.shape}; expected two numbers, levels and splits")
        return cls(scaling, int(levels[0]), int(levels[1]))

    def spectrum(self, band: int, shape: Shape) -> Spectrum:
        """The filter of norm one on a grid of any size: (H, W // 2 + 1), complex."""
        down, across = self.paths[band]
        return np.multiply.outer(self._along(down, shape[0]), self._along(across, shape[1])[: shape[1] // 2 + 1])

    def _along(self, path: str, length: int) -> NDArray[np.complex128]:
        frequencies = 2.0 * np.pi * np.arange(length) / length
        mirror = self.scaling[::-1] * (-1.0) ** np.arange(self.scaling.size)
        result = np.ones(length, np.complex128)
        for level, step in enumerate(path):
            taps = self.scaling if step == "l" else mirror
            # A coefficient looks ahead of its place, so that those of Haar's basis belong to blocks that tile the grid.
            result *= np.exp(1j * np.multiply.outer(2.0**level * frequencies, np.arange(taps.size))) @ taps
        return result


@dataclass(frozen=True, eq=False, repr=False)
class WaveletPrior(BandPrior):
    """A product of experts on the coefficients of an orthonormal wavelet basis: an exact density of whole images.

    Images `y` are (..., H, W), taken to be cyclic, their sides multiples of 2^levels; `sigma` is one number or one per
    image.

    Parameters
    ----------
    bands : WaveletBasis
        The bands of the basis, one for each expert.
    norms : ndarray, (J,)
        The norms xi_j of the filters: how strongly a band responds.
    experts : Experts
        The mixtures on the coefficients.
    card : mapping, optional
        Provenance of the prior; stored in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("wavelet-density")
    >>> images = prior.sample(2, rng=np.random.default_rng(0), shape=(64, 64))
    >>> prior.log_prob(images, 0.1).shape
    (2,)
    """

    kind: ClassVar[str] = "wavelet"
    bands_from = WaveletBasis.from_file
    bands: WaveletBasis

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) = Σ_j Σ_m log xi_j psi_j(xi_j c_jm, t), on the span of the bands: (...)."""
        return self._log_density(y, sigma, np.log(self.norms))

    def posterior(self, y: FloatArray, sigma: ArrayLike) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean image given y, in this one basis: (..., H, W) each."""
        images, sigmas = self._check(y, sigma)
        changes, variances = {}, {}
        for j, c, expert in self._coefficients(images):
            xi = self.norms[j]
            mean, variance = expert.posterior(xi * c[..., None], xi * sigmas)
            changes[j] = mean[..., 0] / xi - c
            # Off the span the variance is sigma²; since the squares of a whole basis sum to one, count what is missing.
            variances[j] = (variance / xi**2 - np.square(sigmas))[..., 0]
        variance = np.square(sigmas)[..., 0] + self._put_back(variances, images.shape, squared=True)
        return Posterior(of_type(images + self._put_back(changes, images.shape), y), of_type(variance, y))

    def posterior_sample(self, y: FloatArray, sigma: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of the clean image given each noisy one, coefficient by coefficient: (..., H, W)."""
        images, sigmas = self._check(y, sigma)
        noise = sigmas[..., 0] * rng.standard_normal(images.shape)  # what is left of it where no band sees
        changes = {}
        for (j, c, expert), (_, n, _) in zip(self._coefficients(images), self._coefficients(noise), strict=True):
            drawn = expert.posterior_sample(self.norms[j] * c[..., None], self.norms[j] * sigmas, rng=rng)[..., 0]
            changes[j] = drawn / self.norms[j] - c - n
        return np.asarray(images + noise + self._put_back(changes, images.shape))

    def sample(
        self,
        count: int,
        sigma: ArrayLike = 0.0,
        *,
        rng: np.random.Generator,
        shape: Shape = (SIDE, SIDE),
        progress: Progress | None = None,
    ) -> FloatArray:
        """Exact draws of noisy images, (count, H, W): every coefficient from its expert.

        Sides that are no multiples of 2^levels are cut from the next larger ones.
        """
        height, width = (-(-length // self.unit) * self.unit for length in shape)
        sigmas = as_sigmas_of(count, sigma)[:, None]
        coefficients: dict[int, FloatArray] = {}
        for j, expert in enumerate(one_by_one(self.experts)):
            xi, stride = self.norms[j], self.bands.strides[j]
            size = (count, height // stride, width // stride)
            tau = np.repeat(xi * sigmas, size[1] * size[2], axis=0)
            coefficients[j] = expert.sample(len(tau), tau, rng=rng).reshape(size) / xi
            if progress is not None:
                progress(len(coefficients) / len(self.norms))
        return self._put_back(coefficients, (count, height, width))[:, : shape[0], : shape[1]]

    def analyse(self, images: FloatArray) -> list[FloatArray]:
        """The coefficients of every band, (..., H / stride, W / stride) each."""
        return [c for _, c, _ in self._coefficients(images)]
