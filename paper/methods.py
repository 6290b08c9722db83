"""How the paper denoises: in one step of empirical Bayes (EB-PA), or by half-quadratic splitting at one scale (HQS)."""

from __future__ import annotations

from typing import NamedTuple

from heatprior.arrays import FloatArray
from heatprior.priors.protocol import DiffusedPrior, complete
from heatprior.restoration.adaptation import adapt
from heatprior.restoration.pipeline import ONE_STEP, Pipeline


def empirical_bayes(noisy: FloatArray, sigma: float, prior: DiffusedPrior) -> FloatArray:
    """The mean over all patches that hold a pixel of their posterior means: an image (H, W), grey levels 0 to 1."""
    shape = (noisy.shape[0], noisy.shape[1])
    return Pipeline(complete(prior), shape, ONE_STEP, most_scales=1, margin=0).denoise(noisy, sigma)


def split(noisy: FloatArray, sigma: float, prior: DiffusedPrior, scales: int = 1) -> FloatArray:
    """The steps of the prior's schedules, at so many scales."""
    return Pipeline(complete(prior), (noisy.shape[0], noisy.shape[1]), most_scales=scales).denoise(noisy, sigma)


METHODS = {"eb": empirical_bayes, "hqs": split}  # by their names in records


class Recipe(NamedTuple):
    """A prior by its name, which may be fitted to the noisy image first, and at how many scales; none is one step."""

    prior: str
    scales: int = 1
    adapted: bool = False

    def follow(self, noisy: FloatArray, sigma: float, prior: DiffusedPrior) -> FloatArray:
        """Denoise an image (H, W), grey levels being 0 to 1, with the prior that was loaded."""
        own = adapt(prior, noisy, sigma, white=1.0) if self.adapted else prior
        return split(noisy, sigma, own, self.scales) if self.scales else empirical_bayes(noisy, sigma, own)
