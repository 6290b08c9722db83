"""A prior fitted to noisy images themselves: the density of noisy patches is explicit, so likelihood is all it takes.

Some rounds of EM on the patches of the image, its noise being part of the model
(priors/expectation_maximisation.py). The prior counts as `STRENGTH` patches of every shape at a stride of one:
Σ_k ← (M_k + ρ Σ_k0) / (n_k + ρ), and weights are half old, half new. No clean pixel is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil, sqrt
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.entry import enter
from heatprior.border.pixels import in_unit_range
from heatprior.errors import InvalidInputError
from heatprior.noise_value import Noise
from heatprior.priors.expectation_maximisation import Statistics, expected_statistics
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.protocol import DiffusedPrior
from heatprior.zoo import as_prior

ROUNDS = 4
STRENGTH = 300.0  # patches of every shape that the prior stands for
OLD = 0.5  # part of the weights that stays
MOST_PATCHES = 10_000  # that are looked at: of larger images, patches that lie further apart
LEAST_STRIDE = 2  # pixels between two patches: closer ones add hardly any information
LEAST_PART = 0.03  # of a patch that a component has to explain for it to count: faster, and no worse
LOG_SIGMA_STEP = 0.1  # between the noise levels of patches under a map


def adapt(
    prior: str | PathLike[str] | DiffusedPrior,
    image: ArrayLike | str | PathLike[str],
    sigma: ArrayLike,
    *,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
) -> GaussianMixturePrior:
    """Fit a prior to a noisy image, or to a folder of images of one kind, without any clean pixel.

    Parameters
    ----------
    prior : str, path or DiffusedPrior
        A mixture of Gaussians, such as "mixture".
    image : array_like, (..., H, W), or path
        As in `denoise`; every channel counts. The images of a folder are converted to grey.
    sigma : array_like
        As in `denoise`, in the units of the image; for a folder one number.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`.

    Returns
    -------
    GaussianMixturePrior
        The adapted prior, for `denoise` and `restore`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> stripes = np.tile([0.2, 0.2, 0.8, 0.8], (64, 16))
    >>> noisy = stripes + 0.1 * np.random.default_rng(0).standard_normal(stripes.shape)
    >>> prior = hp.adapt("mixture", noisy, 0.1)
    >>> hp.denoise(noisy, 0.1, prior=prior).shape
    (64, 64)
    """
    model = as_prior(prior)
    if not isinstance(model, GaussianMixturePrior):
        raise InvalidInputError(f"a {type(model).__name__} cannot be adapted; give a mixture, such as 'mixture'")
    found = []
    for one in _of_folder(Path(image)) if isinstance(image, str | PathLike) else [image]:
        entered = enter(one, channel_axis=channel_axis, white=white, sigma=sigma)
        noises = entered.noises(sigma)
        found += [
            (in_unit_range(entered.channels[place], entered.full), noises[place])
            for place in np.ndindex(entered.channels.shape[:-2])
            if not (entered.has_alpha and place[-1] == entered.colours)
        ]
    return fit_to_images(model, found)


def _of_folder(folder: Path) -> list[NDArray[Any]]:
    from heatprior.images import image_files, read_grey  # noqa: PLC0415 (only files need it)

    files = image_files(folder) if folder.is_dir() else []
    if not files:
        raise InvalidInputError(f"{folder} is no folder with images; give one with noisy images of one kind")
    return [read_grey(file) for file in files]


def fit_to_images(prior: GaussianMixturePrior, images: Sequence[tuple[FloatArray, Noise]]) -> GaussianMixturePrior:
    """The prior fitted to images (H, W), grey levels being 0 to 1, each with its noise; NaN pixels do not count."""
    positions = sum(image.size for image, _ in images)
    stride = max(LEAST_STRIDE, ceil(sqrt(positions / MOST_PATCHES)))
    groups = [group for image, noise in images for group in _groups(image, noise, prior.size, stride)]
    if not groups:
        raise InvalidInputError(
            f"the image holds no patch of {prior.size}×{prior.size} valid pixels to adapt to; give a larger one"
        )
    strength = STRENGTH / stride**2
    old, model = np.exp(prior.log_weights), prior
    for _ in range(ROUNDS):
        parts = (expected_statistics(model, patches, sigma, least_part=LEAST_PART) for patches, sigma in groups)
        sums = reduce(Statistics.plus, parts)
        shapes = sums.weights.sum(axis=1)[:, None, None]
        covariances = (sums.moments + strength * prior.covariances) / (shapes + strength)
        weights = OLD * old + (1.0 - OLD) * sums.weights / sums.weights.sum()
        model = GaussianMixturePrior(covariances, np.log(weights), prior.contrasts, prior.card)
    return model


def _groups(image: NDArray[Any], noise: Noise, size: int, stride: int) -> list[tuple[FloatArray, float]]:
    """Patches of (nearly) one noise level each."""
    if min(image.shape) < size:
        return []
    whole = ~sliding_window_view(np.isnan(image), (size, size))[::stride, ::stride].any(axis=(2, 3))
    patches = sliding_window_view(image, (size, size))[::stride, ::stride][whole].reshape(-1, size**2)
    if len(patches) == 0:
        return []
    if noise.is_constant:
        return [(patches, noise.lowest)]
    sigmas = noise.patches(slice(0, len(image)), size)[::stride, ::stride][whole]
    levels = np.rint(np.log(np.maximum(sigmas, 1e-9)) / LOG_SIGMA_STEP)
    return [(patches[levels == level], float(np.exp(LOG_SIGMA_STEP * level))) for level in np.unique(levels)]
