"""`hp.denoise`: images of any type without their noise, blindly if need be, with the errors that remain if wanted."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, NamedTuple, Unpack, overload

from numpy.typing import ArrayLike, NDArray

from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress
from heatprior.lazy import room_of
from heatprior.noise.estimation import NoiseReport
from heatprior.noise.profiles import NoiseProfile
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.blending import AUTO
from heatprior.restoration.channelwise import carried_out
from heatprior.restoration.denoising_errors import DenoisedWithError, denoise_with_error
from heatprior.restoration.options import Keywords, Options
from heatprior.restoration.planning import planned
from heatprior.restoration.qualities import prior_name


class Denoised(NamedTuple):
    """A denoised image, and what was found of its noise if that was estimated."""

    pixels: NDArray[Any]
    noise: NoiseReport | None


@overload
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    return_error: Literal[False] = False,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> NDArray[Any]: ...
@overload
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    return_error: Literal[True],
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> DenoisedWithError: ...
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str | NoiseProfile = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    return_error: bool = False,
    progress: Progress | None = None,
) -> NDArray[Any] | DenoisedWithError:
    """The image without its Gaussian noise of standard deviation `sigma`; same type, shape and units as it came.

    Parameters
    ----------
    image : array_like, (..., H, W)
        Integers of up to 32 bits, or floats; it may have one more axis, `channel_axis`. Axes in front are independent
        images. NaN and infinite pixels are missing: they have no influence, and are NaN in the result. A dask array is
        denoised block by block when it is computed, by default at one scale: see docs/large.md.
    sigma : array_like, optional
        In the units of the image: one number, one per channel, or a map, (H, W) or of the shape of the image. Without
        it the noise is estimated, always with patch7 and mixture.
    noise : str or NoiseProfile
        What kind of noise is estimated, as in `estimate_noise`, which reports what was found; or the profile of a
        camera. Correlated noise is exact for mixtures; other priors take it for white noise of the same strength.
    quality : {"default", "fast", "best"}
        docs/quality.md says what they take and give.
    prior : str, path or DiffusedPrior, optional
        The name of a shipped prior, the path of one, or any `DiffusedPrior` on square patches or on whole images
        (`ImagePrior`), instead of the one that belongs to the quality. "auto" blends that one with an adapted mixture
        and with itself at one scale, as far as Stein's risk says it helps this image; it takes many times as long.
    method : {"hqs", "eb"}
        Half-quadratic splitting, or one step of empirical Bayes: faster, less good.
    adapt : bool
        Fit the prior to the image first, without any clean pixel, if it is a mixture: better, and slower.
    scales : int, optional
        At how many sizes the image is denoised, at most: 2 means at half its size as well, where patches see twice as
        far, and low frequencies are taken from there. By default as many as the image holds; 1 with "eb".
    channel_axis : int, optional
        Three channels are colours, decorrelated by an orthogonal mix. (Where their noise levels differ, the noise of
        the mixed channels is correlated; each gets its right variance, and the correlation is ignored.) A fourth that
        is transparency, most of it opaque or clear, stays as it is. Any other number of channels: each by itself.
    white : float, optional
        The value that stands for full scale, which the prior needs to know: 255, 65535 or 1.0 by type or, where the
        image does not fill that, found by likelihood and range, one for all images of a stack.
    return_error : bool
        Return a `DenoisedWithError`, which takes twice the time.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    ndarray or DenoisedWithError
        The image, of the type, shape and units of `image`: integers are rounded and clipped to their type, floats are
        not clipped. Inside, all is float32. With `return_error`, that is `.pixels`, beside the standard deviation of
        what is wrong with each of them, `.error`, the PSNR that they should have, `.predicted`, and the noise found,
        `.noise`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> clean = np.tile(np.linspace(0.2, 0.8, 64), (64, 1))
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> denoised = hp.denoise(noisy, 0.1)
    >>> bool(np.std(denoised - clean) < 0.3 * np.std(noisy - clean))
    True
    """
    options = Options(noise, quality, prior, method, adapt, scales, channel_axis, white)
    if room := room_of(image):
        if quality == "best" or return_error or options.profile is not None or prior == AUTO:
            raise InvalidInputError(
                "blocks are denoised by one prior at quality 'fast' or 'default', without a noise profile or errors"
            )
        given = prior_name(quality, density=adapt) if prior is None else prior
        lazy: NDArray[Any] = room.denoise(
            image, sigma, noise=noise, prior=given, method=method, adapt=adapt, scales=scales,
            channel_axis=channel_axis, white=white,
        )  # fmt: skip
        return lazy
    if return_error:
        return denoise_with_error(image, sigma, options, progress)
    return denoise_and_report(image, sigma, options, progress).pixels


def denoise_and_report(
    image: ArrayLike, sigma: ArrayLike | None, options: Options, progress: Progress | None = None
) -> Denoised:
    """As `denoise`, together with what was found of the noise."""
    plan, progress = planned(image, sigma, options, progress)
    return Denoised(carried_out(plan, plan.pixels, progress), plan.report)
