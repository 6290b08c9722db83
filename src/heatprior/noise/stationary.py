"""The power spectrum of stationary noise from second moments of patches: EM on a torus.

A covariance of patches that depends on lags alone has no closed maximum of its likelihood. But the patch is part of a
field on a torus, whose frequencies are independent: given the patch, the power that each frequency is expected to have
is closed, S(f) ← S(f) + S(f)² a_fᴴ (C⁻¹ M C⁻¹ − C⁻¹) a_f / P², M being the second moment of patches, C their covariance
under S, and a_f the wave f on a patch. Such a step never lowers the likelihood (Miller and Snyder 1987), and S stays
positive by itself.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.noise_model.spectrum import LEAST_POWER, patch_covariance
from heatprior.priors.filters import FilterBank


def covariance_without_brightness(power: FloatArray, size: int) -> FloatArray:
    """C of patches of noise of this power (P, P), in the cosine basis without its constant: (d, d)."""
    basis = FilterBank.dct(size).matrix
    return np.asarray(basis @ patch_covariance(power, size) @ basis.T)


def fit_power(power: FloatArray, moments: FloatArray, size: int, steps: int) -> FloatArray:
    """Some steps towards the power (P, P) under which patches have these second moments (d, d)."""
    waves = _waves(len(power), size)
    for _ in range(steps):
        inverse = np.linalg.inv(covariance_without_brightness(power, size))
        excess = inverse @ moments @ inverse - inverse
        change = (waves.conj() * (excess @ waves)).sum(axis=0).real / power.size
        power = power + power**2 * change.reshape(power.shape)
        power = np.maximum(power, LEAST_POWER * power.mean())
    return power


def frequencies(side: int) -> FloatArray:
    """How far each frequency of the torus is from zero, in cycles per pixel: (P, P)."""
    f = np.fft.fftfreq(side)
    return np.asarray(np.hypot(f[:, None], f))


@lru_cache(maxsize=8)
def _waves(side: int, size: int) -> FloatArray:
    """Every wave of the torus on a patch, in the cosine basis: (d, P²), complex."""
    places = np.exp(-2j * np.pi * np.outer(np.arange(size), np.fft.fftfreq(side)))
    return np.asarray(FilterBank.dct(size).matrix @ np.kron(places, places))
