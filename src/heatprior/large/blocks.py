"""One block of a large image, in any number of planes and channels: what a task computes, in one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import products_in_one_thread
from heatprior.noise_model import as_noise, mixed_noise
from heatprior.pixels.channels import ALONE, COLOUR, mixed
from heatprior.pixels.gaps import Window, with_all_or_no_channel_missing
from heatprior.pixels.inputs import as_pixels, as_white
from heatprior.restoration.channelwise import store
from heatprior.restoration.multiscale_pieces import PieceByPiece
from heatprior.restoration.planning import noise_of_channel

MOST_SCALES = 4  # of which the last two hardly change an image
Ends = tuple[NDArray[Any], NDArray[Any]]  # lowest and highest noise level of every plane and channel, (..., channels)


@dataclass(frozen=True, eq=False)
class Levels:
    """The noise of a block: numbers or a map, in the units of the image; of a map, its ends in the whole image."""

    sigma: FloatArray  # broadcasts against (..., channels, h, w)
    ends: Ends | None = None

    def of_block(self, places: tuple[slice, ...]) -> Levels:
        """Those of a block of the whole image (..., channels, H, W), if these are numbers."""
        shape = np.shape(self.sigma)
        own = zip(places[len(places) - len(shape) :], shape, strict=True)
        return Levels(np.asarray(self.sigma)[tuple(place if length > 1 else slice(None) for place, length in own)])


def denoise_block(
    channels: NDArray[Any],
    levels: Levels,
    way: PieceByPiece,
    wanted: Window,
    *,
    white: float,
    in_colour: bool = False,
    alpha: bool = False,
) -> NDArray[Any]:
    """The pixels `wanted` of channels (..., channels, h, w), of which what `way.reads(wanted)` says is here.

    As `hp.denoise` of the whole image, in type, units and bits. `in_colour` if the channels are those of one image,
    not images by themselves; `alpha` if the last of them is transparency.
    """
    channels = as_pixels(channels)
    if channels.dtype.kind == "f":
        as_white(white if white != 1.0 else None, channels)
    here = way.reads(wanted)
    inside: tuple[Any, ...] = (
        ...,
        *(slice(w.start - h.start, w.stop - h.start) for w, h in zip(wanted, here, strict=True)),
    )
    observed = channels[inside]
    clean = np.empty(observed.shape, channels.dtype)
    if channels.dtype.kind != "f" and channels.min() == channels.max():
        clean[...] = observed  # nothing to see: the noise that is estimated elsewhere is not here
        return clean
    colours = channels.shape[-3] - alpha
    mix = COLOUR if in_colour and colours == 3 else ALONE
    back = np.linalg.inv(mix) * white
    sigmas = np.broadcast_to(levels.sigma, channels.shape)
    if alpha:
        clean[..., -1, :, :] = observed[..., -1, :, :]
    with one_thread():
        for index in np.ndindex(channels.shape[:-3]):
            for first in range(0, colours, len(mix)):
                job = (*index, slice(first, first + len(mix)))
                noisy = with_all_or_no_channel_missing(channels[job], whole=False)
                noises = [
                    noise_of_channel(sigmas[*index, c], white, _ends(levels.ends, (*index, c)))
                    for c in range(first, first + len(mix))
                ]
                parts = [
                    way.denoise(mixed(noisy, weights / white), as_noise(mixed_noise(noises, weights)), wanted)
                    for weights in mix
                ]
                for channel, original, weights in zip(clean[job], observed[job], back, strict=True):
                    store(parts, weights, original, channel)
    return clean


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold kernels and matrix products of this thread to one thread: a scheduler runs several tasks at a time."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with products_in_one_thread():
            yield
    finally:
        numba.set_num_threads(before)


def check_way(way: PieceByPiece) -> None:
    """Refuse what looks at the whole image at once, before any block is computed."""
    way.reads((slice(0, 1), slice(0, 1)))


def refuse_what_is_not_local(*, adapt: bool, scales: int) -> None:
    """What takes the whole image at once, and what works instead."""
    if adapt:
        raise InvalidInputError(
            "adapting looks at the whole image at once, which blocks cannot; adapt to a crop and give the result, "
            "prior=hp.adapt('mixture', crop, sigma)"
        )
    if not isinstance(scales, int | np.integer) or not 1 <= scales <= MOST_SCALES:
        raise InvalidInputError(
            f"scales is {scales!r}; for blocks expected 1 to {MOST_SCALES}: each further one reads twice as far around"
        )


def _ends(ends: Ends | None, index: tuple[int, ...]) -> tuple[float, float] | None:
    return None if ends is None else (float(ends[0][index]), float(ends[1][index]))
