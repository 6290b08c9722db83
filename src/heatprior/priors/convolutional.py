"""The convolutional prior: experts on all responses of a whole image, section 3.2, the paper's second model.

f(x, t) = ∏_j ∏_i psi_j((K_j x)_i, t) / Z with sigma_j²(t) = sigma_0² + xi_j² sigma², sigma = sqrt(2t): every band j has
a real filter with |F k_j| = xi_j on its set of frequencies and 0 elsewhere, and an expert at every pixel. The sets are
disjoint, none holds frequency zero. Its theorem is right for the covariance of the components but not for their
weights, which change with t (and so does Z): a band of m frequencies has n > m responses. See docs/math.md,
`multiplied_out.py`, which measures it, and `wavelet.py`, the sibling for which the theorem is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.patches import Progress, part_of
from heatprior.priors.arguments import as_sigmas_of
from heatprior.priors.bands import SIDE, BandPrior, Shape, Spectrum
from heatprior.store import PriorFile

HIGHEST_SIGMA = 30.0  # noise level, grey levels being 0 to 1, at which nothing of an image is left: samples start there
LOWEST_SIGMA = 0.004  # noise that is invisible: sampling ends there at the latest
NO_BAND = -1  # the band of frequency zero: brightness is not modelled
MOST_SCALES = 64
ROUNDING = 1e-9  # of an angle: those on a border go to one side, whatever the size of the image
Score = Callable[[FloatArray, float], FloatArray]  # ∇ log f(y, t) at noise level sigma = sqrt(2t)
RATIO = 1.05  # of successive noise levels
STEPS = 16  # at each level
RATE = 0.2  # ε over sigma²: no density at that level is narrower than sigma, so a variance errs by less than RATE / 4
# A band of width w falls behind once the time spent near sigma, 20 STEPS RATE sigma², is less than w²: its variance
# is then too large by 1 / (20 STEPS RATE), less than 2 %.


@dataclass(frozen=True)
class Tiling:
    """The plane of frequencies cut into rings and orientations: the disjoint supports of section 3.2.

    Ring s holds the frequencies with 2^−(s+1) < 2 max(|f_y|, |f_x|) ≤ 2^−s, the innermost all that are left but zero;
    each ring is cut into equal angles. Band j is ring j // orientations, from the highest frequencies inwards. A set
    holds with a frequency its negative, so that the filters are real; at the Nyquist frequency, which is its own
    negative along one axis, that needs care.
    """

    scales: int
    orientations: int

    def __post_init__(self) -> None:
        for name in ("scales", "orientations"):
            if not 1 <= getattr(self, name) <= MOST_SCALES:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; expected 1 to {MOST_SCALES}")

    @property
    def count(self) -> int:
        """J, the number of bands."""
        return self.scales * self.orientations

    @property
    def shares(self) -> FloatArray:
        """Every response counts whole: the bands share no frequency."""
        return np.ones(self.count)

    @property
    def strides(self) -> tuple[int, ...]:
        """Every response is a coefficient."""
        return (1,) * self.count

    @property
    def unit(self) -> int:
        """The longest wavelength of the second ring from within, beyond which all are in one: 2^scales pixels."""
        return int(2**self.scales)

    margin = unit

    def check_shape(self, shape: Shape) -> None:
        """Any will do."""

    def describe(self) -> str:
        """Its rings and orientations."""
        return f"{self.scales} rings of frequencies × {self.orientations} orientations"

    def tensors(self) -> dict[str, Any]:
        """Rings and orientations."""
        return {"tiling": np.array([self.scales, self.orientations], np.int32)}

    @classmethod
    def from_file(cls, contents: PriorFile) -> Tiling:
        """The inverse of `tensors`."""
        (tiling,) = contents.arrays("tiling")
        if tiling.shape != (2,):
            raise PriorFileError(f"tiling has shape {tiling.shape}; expected two numbers, scales and orientations")
        return cls(int(tiling[0]), int(tiling[1]))

    @lru_cache(maxsize=4)  # noqa: B019 (few and small)
    def labels(self, shape: Shape) -> IntArray:
        """The band of every frequency of the plane, (H, W), in the order of the Fourier transform."""
        down, across = (np.fft.fftfreq(length) for length in shape)
        down = down[:, None]
        largest = np.maximum(np.abs(down), np.abs(across))
        with np.errstate(divide="ignore"):
            ring = np.minimum(np.floor(-np.log2(2.0 * largest) + ROUNDING), self.scales - 1)
        turn = np.arctan2(down, across) / np.pi + 0.5 / self.orientations + ROUNDING
        angle = np.floor(np.mod(turn, 1.0) * self.orientations)
        labels = (ring * self.orientations + np.minimum(angle, self.orientations - 1)).astype(np.int16)
        labels[0, 0] = NO_BAND
        negative = np.roll(labels[::-1, ::-1], 1, axis=(0, 1))  # the labels of −f
        result: IntArray = np.minimum(labels, negative)
        result.flags.writeable = False
        return result

    def spectrum(self, band: int, shape: Shape) -> Spectrum:
        """The characteristic function of the set Γ_j, on half the plane: (H, W // 2 + 1)."""
        return np.asarray(self.labels(shape)[:, : shape[1] // 2 + 1] == band, np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class ConvolutionalPrior(BandPrior):
    """A product of experts on all responses of a whole image to filters of disjoint sets of frequencies.

    Images `y` are (..., H, W) of any size, taken to be cyclic; `sigma` is one number or one per image.

    Parameters
    ----------
    bands : Tiling
        The sets of frequencies, one for each expert, for images of any size.
    norms : ndarray, (J,)
        The norms xi_j of the filters: how strongly a band responds.
    experts : Experts
        The mixtures on the responses.
    card : mapping, optional
        Provenance of the prior; stored in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> hp.load("conv").score(np.zeros((1, 32, 32)), 0.1).shape
    (1, 32, 32)
    """

    kind: ClassVar[str] = "convolutional"
    bands_from = Tiling.from_file
    bands: Tiling

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) + log Z(t) = Σ_j Σ_i log psi_j((K_j y)_i, t): (...).

        The constant Z is unknown, and it does depend on t: compare images, not noise levels.
        """
        return self._log_density(y, sigma, np.zeros(self.bands.count))

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

        def score(y: FloatArray, level: float) -> FloatArray:  # by tables: much faster than the exact one
            return (self.denoise(y, level) - y) / level**2

        sigmas = as_sigmas_of(count, sigma)
        images = np.empty((count, *shape))
        for number, (image, wanted) in enumerate(zip(images, sigmas, strict=True)):
            last = max(float(wanted), LOWEST_SIGMA)
            levels = falling_levels(max(HIGHEST_SIGMA, last), last)
            start, part = levels[0] * rng.standard_normal(shape), part_of(progress, number, count)
            y = sample_langevin(score, start, levels, rng=rng, progress=part)
            image[:] = y if wanted >= LOWEST_SIGMA else self.denoise(y, last)
        return np.asarray(images - images.mean(axis=(1, 2), keepdims=True))


def falling_levels(highest: float, lowest: float, ratio: float = RATIO) -> FloatArray:
    """Noise levels from highest to lowest, neighbours no further apart than `ratio`."""
    return np.geomspace(highest, lowest, 1 + int(np.ceil(np.log(highest / lowest) / np.log(ratio))))


def sample_langevin(
    score: Score,
    start: FloatArray,
    sigmas: Sequence[float] | FloatArray,
    *,
    rng: np.random.Generator,
    steps: int = STEPS,
    rate: float = RATE,
    progress: Progress | None = None,
) -> FloatArray:
    """Sample a density of which only the score is known by annealed Langevin dynamics, section 2.1.

    Langevin dynamics, y ← y + ½ε ∇log f(y, t) + √ε n, has f(·, t) as its stationary law, up to an error that falls with
    ε. It moves between distant modes only while noise merges them, so it starts at a high noise level, which falls in
    small ratios, always near equilibrium: `steps` at each level in turn, from `start`, of any shape. The result follows
    the law of the last level. Directions in which the score is zero only accumulate noise.
    """
    y = np.array(start, np.float64)
    for number, sigma in enumerate(sigmas):
        epsilon = rate * float(sigma) ** 2
        for _ in range(steps):
            y += 0.5 * epsilon * score(y, float(sigma)) + np.sqrt(epsilon) * rng.standard_normal(y.shape)
        if progress is not None:
            progress((number + 1) / len(sigmas))
    return y
