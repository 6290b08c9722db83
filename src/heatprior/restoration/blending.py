"""`prior="auto"`: several denoisers of one image, blended as Stein's unbiased risk estimate says is best for it.

Of a blend f + w (g − f) the risk is a parabola in w. All that it needs of the clean image x is ⟨g − f, f − x⟩, which is
⟨g − f, f − y⟩ + ⟨g − f, n⟩; the noise n is unknown, but its product with g − f is tr (J_g − J_f) C on average, and that
a probe of both denoisers tells. How much noise there happens to be in the image cancels, so the weight is known well,
unlike the risk itself: what it loses by its error is about the noise of one pixel, divided among all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.noise_model import Noise
from heatprior.restoration.probe_signs import positive_signs
from heatprior.restoration.qualities import Denoiser
from heatprior.restoration.standard_errors import probe

AUTO = "auto"  # the name that stands for this among priors
SEED = 0  # of the probe
BY_DRAW = 3.0  # variance of one draw instead of the trace, and of the trace itself, over that of what the probe answers


def blended(first: Denoiser, *others: Denoiser) -> Denoiser:
    """The first denoiser, moved towards each of the others as far as that lowers the risk of the image for certain."""

    def denoise(image: FloatArray, noise: Noise, progress: Progress | None = None) -> FloatArray:
        whole = np.asarray(image, np.float32)
        levels = np.asarray(noise.rows(slice(None)), np.float32)
        drawn = np.where(positive_signs(image.shape, np.random.default_rng(SEED)), levels, -levels)
        runs = 2 * (1 + len(others))

        def probed(number: int, denoiser: Denoiser) -> tuple[FloatArray, FloatArray]:
            once, again = (_run(denoiser, noise, part_of(progress, 2 * number + k, runs)) for k in range(2))
            clean = once(whole)
            return clean, probe(again, whole, clean, drawn).answer

        clean, answer = probed(0, first)
        for number, denoiser in enumerate(others, start=1):
            step, change = (new - old for new, old in zip(probed(number, denoiser), (clean, answer), strict=True))
            weight = np.float32(best_weight(clean - whole, step, drawn, change))
            clean, answer = clean + weight * step, answer + weight * change
        return np.asarray(clean)

    return denoise


def _run(denoiser: Denoiser, noise: Noise, progress: Progress | None) -> Callable[[FloatArray], FloatArray]:
    return lambda pixels: denoiser(pixels, noise, progress=progress)


def best_weight(change: FloatArray, step: FloatArray, drawn: FloatArray, answer: FloatArray) -> float:
    """Of the second denoiser, 0 to 1, from f − y, g − f, the noise that was drawn and (J_g − J_f) times it.

    It is shrunk by the part of its square that chance explains, and 0 if that is all of it. NaN pixels do not count.
    """
    known = np.isfinite(change)
    change, step, drawn, answer = (values[known].astype(np.float64) for values in (change, step, drawn, answer))
    size, gain = float(step @ step), -float(step @ change) - float(drawn @ answer)
    if size == 0.0 or gain <= 0.0:
        return 0.0
    chance = float(np.square(drawn * step).sum() + BY_DRAW * np.square(drawn) @ np.square(answer))
    return min(gain / size, 1.0) * max(1.0 - chance / gain**2, 0.0)
