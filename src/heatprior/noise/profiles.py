"""The noise of a camera as a value that can be kept in a file: spectrum and strength by brightness, channel by channel.

The channels are those in which images are denoised: of colours brightness and two differences (pixels/channels.py), so
that noise that differs by channel or is correlated across channels needs no formula. Grey levels are 0 to 1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.noise.affine import Affine
from heatprior.noise_model import Noise, NoiseMap, as_noise
from heatprior.noise_model.spectrum import NoiseSpectrum

FORMAT, VERSION = "heatprior noise profile", 1
SMOOTH = 2.0  # pixels: brightness is that of the image smoothed by a Gaussian of this width


@dataclass(frozen=True, eq=False)
class StationaryNoise:
    """Noise of one spectrum whose variance is given at some values of brightness, with relative errors.

    In between the variance is linear, beyond the ends constant.
    """

    spectrum: NoiseSpectrum
    brightness: FloatArray  # (L,), ascending
    variances: FloatArray  # (L,)
    errors: FloatArray  # of the variances, (L,)
    power_error: float = 0.0  # relative, of the spectrum at each frequency
    flattened: float = 1.0  # the power to which the spectrum that was found was taken, towards white noise

    def as_found(self) -> StationaryNoise:
        """The noise that is there, by what was found; the spectrum that is denoised with may be a flatter one.

        Patches do not tell how much their mean is off; noise has no gap there, so that power is one of its neighbours'.
        """
        power = self.spectrum.power ** (1.0 / self.flattened)
        power[0, 0] = max(power[0, 0], (power[0, 1] + power[1, 0]) / 2.0)
        return replace(self, spectrum=NoiseSpectrum(power), flattened=1.0)

    def on(self, brightness: FloatArray) -> Noise:
        """The noise of an image of this brightness (H, W), smooth."""
        levels = np.sqrt(np.interp(brightness, self.brightness, self.variances)).astype(np.float32)
        return as_noise(NoiseMap(levels.__getitem__, float(levels.min()), float(levels.max()), self.spectrum))

    @property
    def sigma(self) -> float:
        """The root mean square over the levels of brightness."""
        return float(np.sqrt(self.variances.mean()))

    @property
    def stderr(self) -> float:
        """Of `sigma`."""
        return float(np.sqrt(np.square(self.errors).sum()) / len(self.errors) / (2.0 * self.sigma))

    @property
    def length_error(self) -> float:
        """Of `spectrum.length`."""
        return self.spectrum.length_error(self.power_error)

    @property
    def line(self) -> Affine | None:
        """variance = gain · x + offset through the levels, errors by their scatter; None for fewer than three."""
        if len(self.variances) < 3 or np.ptp(self.brightness) == 0:
            return None
        design = np.stack([self.brightness, np.ones(len(self.brightness))], axis=1) / self.errors[:, None]
        covariance = np.linalg.inv(design.T @ design)
        gain, offset = covariance @ design.T @ (self.variances / self.errors)
        misfit = np.square(design @ [gain, offset] - self.variances / self.errors).sum() / (len(self.variances) - 2)
        gain_error, offset_error = np.sqrt(np.diag(covariance) * max(1.0, misfit))
        return Affine(float(gain), float(offset), float(gain_error), float(offset_error))


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """The noise of a camera: `noise_profile` finds it, `denoise(…, noise=profile)` takes it.

    `save` and `load` keep it in a file.

    Attributes
    ----------
    channels : tuple of StationaryNoise
        The noise of each channel, three of them for colours.
    pictures : int
        In how many it was found.
    scale : float
        Their full scale, over that of their type: 1 for bright images of 8 bits.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> pictures = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((2, 96, 96))
    >>> profile = hp.noise_profile(pictures)
    >>> float(np.round(profile.channels[0].sigma * profile.scale, 2))
    0.1
    >>> denoised = hp.denoise(pictures[0], noise=profile)
    """

    channels: tuple[StationaryNoise, ...]
    pictures: int = 1
    scale: float = 1.0

    def as_found(self) -> NoiseProfile:
        """The noise that is there, channel by channel."""
        return replace(self, channels=tuple(channel.as_found() for channel in self.channels))

    def at(self, scale: float) -> NoiseProfile:
        """The same noise in images of another full scale, over that of their type."""
        factor = self.scale / scale
        channels = tuple(
            replace(
                c,
                brightness=factor * c.brightness,
                variances=factor**2 * c.variances,
                errors=factor**2 * c.errors,
            )
            for c in self.channels
        )
        return NoiseProfile(channels, self.pictures, scale)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON."""
        channels = [
            {
                "brightness": channel.brightness.tolist(),
                "variances": channel.variances.tolist(),
                "errors": channel.errors.tolist(),
                "power": channel.spectrum.power.tolist(),
                "power_error": channel.power_error,
                "flattened": channel.flattened,
            }
            for channel in self.channels
        ]
        contents = {
            "format": FORMAT,
            "version": VERSION,
            "pictures": self.pictures,
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
            return cls(tuple(map(_channel, contents["channels"])), int(contents["pictures"]), scale)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"the noise profile {path} is damaged: {error!r}; make it again") from error


def smooth_brightness(image: FloatArray) -> FloatArray:
    """What the strength of the noise depends on: the image (H, W), without NaN, smoothed."""
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    return np.asarray(gaussian_filter(image, SMOOTH))


def _channel(entry: dict[str, Any]) -> StationaryNoise:
    brightness, variances, errors = (
        np.array(entry[name], np.float64) for name in ("brightness", "variances", "errors")
    )
    rows = np.stack([brightness, variances, errors])
    if rows.ndim != 2 or rows.shape[1] == 0 or not (np.isfinite(rows).all() and rows[1:].min() > 0):
        raise ValueError("levels must be finite, variances and errors positive")
    if not (np.diff(brightness) >= 0).all():
        raise ValueError("brightness must ascend")
    spectrum, power_error = NoiseSpectrum(np.array(entry["power"], np.float64)), float(entry.get("power_error", 0.0))
    flattened = float(entry.get("flattened", 1.0))
    if not 0 < flattened <= 1:
        raise ValueError(f"flattened is {flattened}; expected a power above 0, at most 1")
    return StationaryNoise(spectrum, brightness, variances, errors, power_error, flattened)
