"""Sums of exponentials that do not overflow; the same as in scipy.special, without the time that its import takes."""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray

Axes = int | tuple[int, ...] | None


def log_sum_exp(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """log Σ exp(x) along `axis`; −∞ where all are."""
    largest = _largest(logarithms, axis)
    with np.errstate(divide="ignore"):
        sums = np.log(np.sum(np.exp(logarithms - largest), axis=axis, keepdims=True)) + largest
    return np.asarray(np.squeeze(sums, axis=axis))


def softmax(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """exp(x) / Σ exp(x) along `axis`."""
    parts = np.exp(logarithms - _largest(logarithms, axis))
    parts /= parts.sum(axis=axis, keepdims=True)
    return np.asarray(parts)


def log_softmax(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """x − log Σ exp(x) along `axis`."""
    shifted = logarithms - _largest(logarithms, axis)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


def _largest(logarithms: FloatArray, axis: Axes) -> FloatArray:
    """The largest along `axis`, 0 where it is infinite: what may be taken off without overflow."""
    largest = np.max(logarithms, axis=axis, keepdims=True)
    return np.asarray(np.where(np.isfinite(largest), largest, 0.0))
