"""How an image is denoised: a method, at one scale or more, with the prior fitted to the image first or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise_model import Noise, as_noise
from heatprior.pixels.gaps import fill_missing
from heatprior.priors.adapter import complete
from heatprior.priors.protocol import DiffusedPrior, Prior
from heatprior.restoration.adaptation import adapted, as_mixture
from heatprior.restoration.scales import crossover_between, crossover_on, merged, noise_of_reduced, reduced
from heatprior.restoration.splitting import Between

EVERY_SCALE = 64  # more than any image holds
LEAST_SIDE = 4  # patches that the shorter side of the smallest size holds: below it there is hardly any noise left
COARSE_PART = 0.2  # of the time of an image and its halves: theirs


class Recipe(NamedTuple):
    """A method, whether the prior is adapted first, and at how many scales that is done, at most."""

    method: Callable[..., FloatArray]
    adapt: bool = False
    scales: int = 1

    def follow(
        self,
        image: FloatArray,
        sigma: float | FloatArray | Noise,
        prior: DiffusedPrior,
        progress: Progress | None = None,
    ) -> FloatArray:
        """The image (H, W), grey levels being 0 to 1, denoised: in float32."""
        noise, model = as_noise(sigma), complete(prior)
        half = (-(-image.shape[0] // 2), -(-image.shape[1] // 2))
        if self.scales == 1 or min(half) < LEAST_SIDE * max(model.patch_shape, default=1):
            return self._at_one_scale(image, noise, model, progress)
        whole = np.array(image, np.float32)
        fill_missing(whole)
        less = noise_of_reduced(noise, (whole.shape[0], whole.shape[1]))
        coarse = self._replace(scales=self.scales - 1).follow(
            reduced(whole), less, model, span_of(progress, 0.0, COARSE_PART)
        )
        del whole
        steps = crossover_between(model.card, noise)
        between = None if steps is None else partial(merged, coarse=coarse, crossover=steps)
        fine = self._at_one_scale(image, noise, model, span_of(progress, COARSE_PART, 1.0), between)
        return merged(fine, coarse, crossover_on(model.card, noise))

    def _at_one_scale(
        self, image: FloatArray, noise: Noise, prior: Prior, progress: Progress | None, between: Between | None = None
    ) -> FloatArray:
        if self.adapt:
            prior = adapted(as_mixture(prior), [(image, noise)])
        return self.method(image, noise, prior=prior, progress=progress, between=between)


def usual_scales(prior: Prior, method: str) -> int:
    """As many as the image holds if the prior sees patches; one step of empirical Bayes is that and nothing else."""
    return EVERY_SCALE if method == "hqs" and prior.patch_shape else 1
