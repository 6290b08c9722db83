"""The noise of a camera as a value that can be kept in a file: spectrum and strength by brightness, channel by channel.

The channels are those in which images are denoised: of colours brightness and two differences (border/pixels.py), so
that noise that differs by channel or is correlated across channels needs no formula. Grey levels are 0 to 1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.pixels import COLOUR, as_channels
from heatprior.display import as_html, describe_fields, format_level
from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.noise_value import Noise, NoiseSpectrum, as_noise

FORMAT, VERSION = "heatprior noise profile", 1
SIDE = 32  # pixels of a square whose power is measured
SMOOTH = 2.0  # pixels: brightness is that of the image smoothed by a Gaussian of this width


@dataclass(frozen=True, eq=False)
class StationaryNoise:
    """Noise of one spectrum whose variance is given at some values of brightness.

    In between the variance is linear, beyond the ends constant.
    """

    spectrum: NoiseSpectrum
    brightness: FloatArray  # (L,), ascending
    variances: FloatArray  # (L,)
    __repr__ = describe_fields

    def on(self, brightness: FloatArray) -> Noise:
        """The noise of an image of this brightness (H, W), smooth."""
        levels = np.sqrt(np.interp(brightness, self.brightness, self.variances)).astype(np.float32)
        return as_noise(Noise(levels.__getitem__, float(levels.min()), float(levels.max()), self.spectrum))

    @property
    def sigma(self) -> float:
        """The root mean square over the levels of brightness."""
        return float(np.sqrt(self.variances.mean()))


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """The noise of a camera, with its covariance: made by `measure`, used by `denoise(…, noise=profile)`.

    `save` and `load` keep it in a file.

    Attributes
    ----------
    channels : tuple of StationaryNoise
        The noise of each channel; three channels for colours.
    scale : float
        Full scale of the images, relative to that of their type: 1 for 8-bit images that fill their range.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> dark = 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> profile = hp.NoiseProfile.measure(dark)
    >>> float(np.round(profile.channels[0].sigma, 2))
    0.1
    >>> denoised = hp.denoise(0.5 + dark, noise=profile)
    """

    channels: tuple[StationaryNoise, ...]
    scale: float = 1.0

    def __repr__(self) -> str:
        levels = ", ".join(format_level(own.sigma) for own in self.channels)
        return f"<NoiseProfile: sigma {levels} of full scale>"

    def _repr_html_(self) -> str:
        return as_html(repr(self), np.fft.fftshift(self.channels[0].spectrum.power), 4)

    @classmethod
    def measure(cls, noise: ArrayLike, *, channel_axis: ChannelAxis = None) -> NoiseProfile:
        """The profile of a camera from a picture (H, W) of nothing but its noise, in units of full scale.

        That is a dark frame, or the difference of two shots of one scene over the root of two. Noise is taken to be
        as strong everywhere.
        """
        channels = as_channels(np.asarray(noise, np.float64), channel_axis)
        planes = np.tensordot(COLOUR, channels, axes=1) if len(channels) == len(COLOUR) else channels
        if planes.ndim != 3 or min(planes.shape[1:]) < SIDE or not np.isfinite(planes).all():
            raise InvalidInputError(
                f"the noise has shape {np.shape(noise)}; expected a finite picture, {SIDE}×{SIDE} or more"
            )
        return cls(tuple(map(_measure, planes)))

    def at(self, scale: float) -> NoiseProfile:
        """The same noise in images of another full scale, over that of their type."""
        factor = self.scale / scale
        rescaled = (
            replace(c, brightness=factor * c.brightness, variances=factor**2 * c.variances) for c in self.channels
        )
        return NoiseProfile(tuple(rescaled), scale)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON."""
        channels = [
            {
                "brightness": channel.brightness.tolist(),
                "variances": channel.variances.tolist(),
                "power": channel.spectrum.power.tolist(),
            }
            for channel in self.channels
        ]
        contents = {
            "format": FORMAT,
            "version": VERSION,
            "scale": self.scale,
            "channels": channels,
        }
        with replacing(Path(path)) as temporary:
            temporary.write_text(json.dumps(contents) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> NoiseProfile:
        """The inverse of `save`."""
        try:
            contents = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"cannot read the noise profile {path}: {error}") from error
        if not isinstance(contents, dict) or contents.get("format") != FORMAT or contents.get("version") != VERSION:
            raise InvalidInputError(
                f"{path} is no noise profile of version {VERSION}; estimate one from pictures of the camera"
            )
        try:
            scale = float(contents.get("scale", 1.0))
            if not 0 < scale < np.inf:
                raise ValueError(f"scale is {scale}, which is no full scale")
            return cls(tuple(map(_channel, contents["channels"])), scale)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"the noise profile {path} is damaged: {error!r}; make it again") from error


def smooth_brightness(image: FloatArray) -> FloatArray:
    """What the strength of the noise depends on: the image (H, W), without NaN, smoothed."""
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    return np.asarray(gaussian_filter(image, SMOOTH))


def _channel(entry: dict[str, Any]) -> StationaryNoise:
    brightness, variances = (np.array(entry[name], np.float64) for name in ("brightness", "variances"))
    rows = np.stack([brightness, variances])
    if rows.ndim != 2 or rows.shape[1] == 0 or not (np.isfinite(rows).all() and variances.min() > 0):
        raise ValueError("levels must be finite, variances positive")
    if not (np.diff(brightness) >= 0).all():
        raise ValueError("brightness must ascend")
    return StationaryNoise(NoiseSpectrum(np.array(entry["power"], np.float64)), brightness, variances)


def _measure(noise: FloatArray) -> StationaryNoise:
    """The noise of a plane (H, W): the mean power of its squares, which have as many frequencies as pixels."""
    rows, columns = (length // SIDE for length in noise.shape)
    squares = noise[: rows * SIDE, : columns * SIDE].reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2)
    power = np.square(np.abs(np.fft.fft2(squares - noise.mean()))).mean(axis=(0, 1))
    return StationaryNoise(NoiseSpectrum(power), np.array([0.5]), np.array([noise.var()]))
