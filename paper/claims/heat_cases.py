"""The heat equation put to the test, prior by prior, on grids so small that the true diffusion can be written out.

A patch prior and a wavelet prior are compared with their products multiplied out (Theorem 1), whose diffusion is exact
for any filters; a convolutional prior with `MultipliedOut`. All by `heat_defect`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.priors.bands import Shape
from heatprior.priors.convolutional import ConvolutionalPrior, Tiling
from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper.claims.explicit_mixture import ExplicitMixture
from paper.claims.heat_defects import Defect, heat_defect
from paper.claims.multiplied_out import MultipliedOut
from paper.wavelets import daubechies

SIGMAS = tuple(float(sigma) for sigma in np.geomspace(0.01, 10.0, 13))
SIDE = 2  # pixels of the square on which the exact priors are tested
PEAKED = (0.02, 0.03, 0.05, 0.1, 0.6, 0.1, 0.05, 0.03, 0.02)  # weights of an expert: the example of docs/math.md
THREE = (0.15, 0.7, 0.15)  # few components, for more pixels


def heat_defects(samples: int = 400, seed: int = 0, sigmas: Sequence[float] = SIGMAS) -> dict[str, list[Defect]]:
    """Of every case, over the noise levels: patch and wavelet priors, and tilings of the convolutional one."""
    patches, wavelet = patch_example(), wavelet_example()
    found = {
        "patch, 2×2 pixels": _of_patches(patches, samples, seed, sigmas),
        "wavelet, 2×2 pixels": _of_wavelet(wavelet, _as_patch_prior(wavelet), samples, seed, sigmas),
    }
    for name, (prior, shape) in convolutional_examples().items():
        found[name] = of_convolution(prior, shape, samples, seed, sigmas)
    return found


def patch_example() -> PatchPrior:
    """Cosine filters of differing norms, peaked experts."""
    filters = np.geomspace(0.5, 2.0, SIDE**2 - 1)[:, None] * FilterBank.dct(SIDE).matrix
    return PatchPrior(FilterBank(filters), _experts(PEAKED, SIDE**2 - 1))


def wavelet_example() -> WaveletPrior:
    """Haar's basis with the same norms and experts."""
    basis = WaveletBasis(daubechies(1), 1)
    return WaveletPrior(basis, np.geomspace(0.5, 2.0, basis.count), _experts(PEAKED, basis.count))


def two_pixels() -> ConvolutionalPrior:
    """The smallest case of the defect: one band, the difference of two pixels, which has two responses."""
    return ConvolutionalPrior(Tiling(1, 1), np.ones(1), _experts(PEAKED, 1))


def convolutional_examples() -> dict[str, tuple[ConvolutionalPrior, Shape]]:
    """Two pixels, and eight with one, two or three bands: the more bands, the more often each repeats itself."""
    cases: dict[str, tuple[ConvolutionalPrior, Shape]] = {"convolutional, 2 pixels, 1 band": (two_pixels(), (1, 2))}
    for scales in (1, 2, 3):
        prior = ConvolutionalPrior(Tiling(scales, 1), np.ones(scales), _experts(THREE, scales))
        cases[f"convolutional, 8 pixels, {scales} band{'s' if scales > 1 else ''}"] = (prior, (1, 8))
    return cases


def of_convolution(
    prior: ConvolutionalPrior, shape: Shape, samples: int, seed: int, sigmas: Sequence[float]
) -> list[Defect]:
    """Of a convolutional prior, normalised at every noise level, on a tiny grid."""
    truth = MultipliedOut(prior, shape)

    def images(y: FloatArray) -> FloatArray:
        return y.reshape(-1, *shape)

    return [
        heat_defect(
            lambda y, s: prior.log_prob(images(y), s) - truth.log_normaliser(s),
            lambda y, s: prior.score(images(y), s).reshape(y.shape),
            lambda y, s: truth.log_prob(images(y), s),
            truth.sample(samples, sigma, rng=np.random.default_rng(seed)).reshape(samples, -1),
            truth.axes,
            sigma,
            prior.experts.base_sigma / float(prior.norms.max()),
        )
        for sigma in sigmas
    ]


def _of_patches(prior: PatchPrior, samples: int, seed: int, sigmas: Sequence[float]) -> list[Defect]:
    mixture = ExplicitMixture.of(prior)
    axes, width = prior.filters.matrix / prior.filters.norms[:, None], _width(prior)
    return [
        heat_defect(prior.log_prob, prior.score, mixture.log_prob, _draw(prior, samples, s, seed), axes, s, width)
        for s in sigmas
    ]


def _of_wavelet(
    prior: WaveletPrior, same: PatchPrior, samples: int, seed: int, sigmas: Sequence[float]
) -> list[Defect]:
    """`same` is the prior on patches with the basis of `prior` as its filters."""
    mixture = ExplicitMixture.of(same)
    axes, width = same.filters.matrix / same.filters.norms[:, None], _width(same)
    return [
        heat_defect(
            lambda y, s: prior.log_prob(y.reshape(-1, SIDE, SIDE), s),
            lambda y, s: prior.score(y.reshape(-1, SIDE, SIDE), s).reshape(y.shape),
            mixture.log_prob,
            _draw(same, samples, sigma, seed),
            axes,
            sigma,
            width,
        )
        for sigma in sigmas
    ]


def _as_patch_prior(prior: WaveletPrior) -> PatchPrior:
    pixels = np.eye(SIDE**2).reshape(-1, SIDE, SIDE)
    basis = np.concatenate([c.reshape(SIDE**2, -1).T for c in prior.analyse(pixels)])  # one coefficient for each band
    return PatchPrior(FilterBank(prior.norms[:, None] * basis), prior.experts)


def _experts(weights: Sequence[float], count: int) -> Experts:
    return Experts(np.tile(np.log(weights), (count, 1)))


def _draw(prior: PatchPrior, samples: int, sigma: float, seed: int) -> FloatArray:
    return prior.sample(samples, sigma, rng=np.random.default_rng(seed))


def _width(prior: PatchPrior) -> float:
    return prior.experts.base_sigma / float(prior.filters.norms.max())
