"""The convolutional prior: experts on all responses of a whole image, section 3.2, the paper's second model.

f(x, t) = ∏_j ∏_i psi_j((K_j x)_i, t) / Z with sigma_j²(t) = sigma_0² + xi_j² sigma², sigma = sqrt(2t): every band j has
a real filter with |F k_j| = xi_j on its set of frequencies and 0 elsewhere, and an expert at every pixel. The sets are
disjoint, and frequency zero is in none of them, so brightness is not modelled.

Its theorem says that this solves the heat equation. That holds for the covariance of the components but not for their
weights, which change with t (and so does Z): a band of m frequencies has n responses, more than it has dimensions. See
docs/math.md, `multiplied_out.py`, which measures it, and `wavelet.py`, the sibling for which the theorem is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.priors.arguments import as_sigma
from heatprior.priors.bands import (
    BandPrior,
    Shape,
    as_images,
    image_of,
    of_type,
    one_by_one,
    shrunk,
    transformed,
)
from heatprior.priors.experts import Experts, experts_from
from heatprior.priors.langevin import annealed_langevin, falling_levels
from heatprior.priors.tilings import Tiling
from heatprior.store import PriorFile

KIND = "convolutional"
SIDE = 128  # pixels of a sample, by default
HIGHEST_SIGMA = 30.0  # noise level, grey levels being 0 to 1, at which nothing of an image is left: samples start there
LOWEST_SIGMA = 0.004  # noise that is invisible: sampling ends there at the latest


@dataclass(frozen=True, eq=False)
class ConvolutionalPrior(BandPrior[Tiling]):
    """The sets of frequencies, xi_j (J,), the experts, and a card that says where they come from.

    Images `y` are (..., H, W) of any size, taken to be cyclic; `sigma` is one number or one per image.

    Parameters
    ----------
    bands : BandsOf
        The sets of frequencies, one for each expert, for images of any size.
    norms : ndarray, (J,)
        xi_j: how strongly a band responds.
    experts : Experts
        The mixtures on the responses.
    card : mapping, optional
        Where the prior comes from; kept in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> hp.load("conv").score(np.zeros((1, 32, 32)), 0.1).shape
    (1, 32, 32)
    """

    kind: ClassVar[str] = KIND

    @property
    def margin(self) -> int:
        """Pixels beyond an edge that matter."""
        return self.unit

    @property
    def unit(self) -> int:
        """The longest wavelength of the second ring from within, beyond which all are in one: 2^scales pixels."""
        return int(2**self.bands.scales)

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) + log Z(t) = Σ_j Σ_i log psi_j((K_j y)_i, t): (...).

        The constant Z is unknown, and it does depend on t: compare images, not noise levels.
        """
        images = as_images(y)
        sigmas = as_sigma(sigma, images.shape[:-2])
        total = np.zeros(images.shape[:-2])
        for j, u, expert in self._responses(images):
            tau = self.norms[j] * sigmas[..., None, None, None]
            total += expert.log_density(u[..., None], tau).sum(axis=(-3, -2, -1))
        return of_type(total, y)

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = Σ_j K_jᵀ (log psi_j)'(K_j y, t): (..., H, W)."""
        images = as_images(y)
        sigmas = as_sigma(sigma, images.shape[:-2])
        shape = images.shape[-2:]
        total = np.zeros((*images.shape[:-1], shape[1] // 2 + 1), np.complex128)
        for j, u, expert in self._responses(images):
            phi = expert.first_derivative(u[..., None], self.norms[j] * sigmas[..., None, None, None])[..., 0]
            total += self.norms[j] * np.conj(self.bands.spectrum(j, shape)) * transformed(phi)
        return of_type(image_of(total, shape), y)

    def sample(
        self,
        count: int,
        sigma: ArrayLike = 0.0,
        *,
        rng: np.random.Generator,
        shape: Shape = (SIDE, SIDE),
        progress: Progress | None = None,
    ) -> FloatArray:
        """Draws of noisy images of mean zero, (count, H, W), by Langevin dynamics: approximate, and slow.

        They follow the model at the noise level `sigma`, which is not quite the noisy version of the model at zero.
        Below the least level the last noise is removed by Tweedie's formula.
        """
        if count < 0:
            raise InvalidInputError(f"count is {count}; expected 0 or more")

        def score(y: FloatArray, level: float) -> FloatArray:  # by tables: much faster than the exact one
            return (self.denoised(y, level) - y) / level**2

        images = np.empty((count, *shape))
        for number, (image, wanted) in enumerate(zip(images, as_sigma(sigma, (count,)), strict=True)):
            last = max(float(wanted), LOWEST_SIGMA)
            levels = falling_levels(max(HIGHEST_SIGMA, last), last)
            start, part = levels[0] * rng.standard_normal(shape), part_of(progress, number, count)
            y = annealed_langevin(score, start, levels, rng=rng, progress=part)
            image[:] = y if wanted >= LOWEST_SIGMA else self.denoised(y, last)
        return np.asarray(images - images.mean(axis=(1, 2), keepdims=True))

    def denoised(self, image: FloatArray, sigma: float) -> FloatArray:
        """y + sigma² score, Tweedie's formula for a whole image (H, W): in float32, by tables, right to about 1e-5."""
        return shrunk(image, sigma, self.bands, self.norms, self.experts)

    def misfit(self, image: FloatArray, sigma: float) -> float:
        """½‖∇ log f‖² + Δ log f for an image (H, W): on average least at the true noise level (Hyvärinen 2005).

        It takes the place of −log f, of which the constant is not known. Δ log f = Σ_j ‖k_j‖² Σ_i (log psi_j)''.
        """
        images = as_images(image)
        laplacian = 0.0
        for j, u, expert in self._responses(images):
            energy = self.norms[j] ** 2 * float((self.bands.labels(u.shape) == j).mean())
            laplacian += energy * float(expert.second_derivative(u[..., None], self.norms[j] * sigma).sum())
        return 0.5 * float(np.square(self.score(images, sigma)).sum()) + laplacian

    def facts(self) -> dict[str, object]:
        """What it is, for people to read."""
        return self._facts(KIND, f"{self.bands.scales} rings of frequencies × {self.bands.orientations} orientations")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file, parameters in float32; the file appears only when it is whole."""
        bands = {"tiling": np.array([self.bands.scales, self.bands.orientations], np.int32)}
        self._save(path, KIND, bands)

    @classmethod
    def from_file(cls, contents: PriorFile) -> ConvolutionalPrior:
        """The inverse of `save`."""
        norms, log_weights, reach, tiling = contents.named("norms", "log_weights", "reach", "tiling")
        if tiling.shape != (2,):
            raise PriorFileError(f"tiling has shape {tiling.shape}; expected two numbers, scales and orientations")
        try:
            bands = Tiling(int(tiling[0]), int(tiling[1]))
            return cls(bands, norms, experts_from(log_weights, reach), contents.card)
        except InvalidInputError as error:
            raise PriorFileError(str(error)) from error

    def _responses(self, images: FloatArray) -> Iterator[tuple[int, FloatArray, Experts]]:
        """K_j y (..., H, W) of every band that has a frequency on this grid, with its number and its expert."""
        shape = images.shape[-2:]
        spectra = transformed(images)
        present = set(np.unique(self.bands.labels(shape)).tolist())
        for j, expert in enumerate(one_by_one(self.experts)):
            if j in present:
                yield j, self.norms[j] * image_of(self.bands.spectrum(j, shape) * spectra, shape), expert
