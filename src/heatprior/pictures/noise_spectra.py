"""The spectrum of correlated noise as a picture: zero frequency in the middle, half a cycle per pixel at the edges."""

from __future__ import annotations

import numpy as np

from heatprior.noise_model import NoiseSpectrum
from heatprior.pictures.comparisons import Panel

DECIBELS = 30.0  # below the strongest frequency that is black


def spectrum_panel(spectrum: NoiseSpectrum, shape: tuple[int, int]) -> Panel:
    """Power in decibels below its peak, each frequency a rectangle of a panel of this shape (H, W)."""
    power = np.fft.fftshift(spectrum.power)
    decibels = 10.0 * np.log10(power / power.max())
    rows, columns = (np.arange(length) * spectrum.side // length for length in shape)
    title = f"spectrum of the noise, black {-DECIBELS:.0f} dB"
    return Panel(title, decibels[np.ix_(rows, columns)], -DECIBELS, 0.0)
