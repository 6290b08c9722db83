"""Noisy pictures as cameras make them: photons behind a mosaic, and all that is done to them afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve, gaussian_filter

import heatprior as hp
from paper.weights.picture_edits import (
    FILTERS,
    MIX,
    Picture,
    Rng,
    as_bytes,
    compress,
    crop,
    crop_both,
    from_light,
    resize,
    sharpen,
    to_light,
)


def photograph(content: Picture, seed: int) -> tuple[Picture, Picture]:
    """Photons counted behind a Bayer mosaic, demosaiced, smoothed, sharpened, reduced and compressed."""
    rng = np.random.default_rng(seed)
    light = to_light(crop(rng, content, 320)) * rng.uniform(0.5, 1)
    gain = np.exp(rng.uniform(np.log(3e-4), np.log(2e-2)))
    read_noise = np.exp(rng.uniform(np.log(1e-3), np.log(2e-2)))
    balance = np.array([rng.uniform(1, 2.2), 1, rng.uniform(1, 2.2)])
    raw = light / balance
    mosaic = raw[..., 1].copy()
    mosaic[0::2, 0::2], mosaic[1::2, 1::2] = raw[0::2, 0::2, 0], raw[1::2, 1::2, 2]
    counted = rng.poisson(mosaic / gain) * gain + read_noise * rng.standard_normal(mosaic.shape)
    demosaic = (_bilinear, _malvar)[rng.integers(2)]
    noisy, clean = (from_light(demosaic(values) * balance) for values in (counted, mosaic))
    if rng.random() < 0.6:
        noisy = _smooth(rng, noisy, noisy - clean)
    if rng.random() < 0.4:
        amount = rng.uniform(0.2, 0.8)
        noisy, clean = sharpen(noisy, amount), sharpen(clean, amount)
    if rng.random() < 0.35:
        factor = rng.choice([0.5, 0.7])
        noisy, clean = (resize(as_bytes(part), factor, FILTERS[1]).astype(float) for part in (noisy, clean))
    result = as_bytes(noisy)
    if rng.random() < 0.6:
        result = compress(result, rng.integers(70, 99), int(rng.choice([0, 2])))
    return crop_both(rng, result, as_bytes(clean), 192)


def _smooth(rng: Rng, noisy: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Less noise where it is flat, or everywhere, in brightness and in colours."""
    spreads = [np.median(np.abs(noise @ axis)) / 0.6745 for axis in MIX]
    planes = noisy @ MIX.T
    for c, spread in enumerate(spreads):
        amount = rng.uniform(0.3, 1.2) * (1.3 if c else 1)
        if rng.random() < 0.5:
            sigma = max(spread * amount / 255, 1e-4)
            planes[..., c] = hp.denoise(planes[..., c] / 255, sigma, quality="fast", white=1.0) * 255
        else:
            part, width = rng.uniform(0.3, 0.9), rng.uniform(0.5, 2.0)
            planes[..., c] += part * (gaussian_filter(planes[..., c], width) - planes[..., c])
    return np.asarray(planes @ np.linalg.inv(MIX).T)


def _masks(shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where a mosaic is red, green and blue."""
    red, blue = np.zeros(shape), np.zeros(shape)
    red[0::2, 0::2] = blue[1::2, 1::2] = 1
    return red, 1 - red - blue, blue


def _bilinear(mosaic: NDArray[Any]) -> NDArray[Any]:
    cross, square = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4.0, np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4.0
    red, green, blue = _masks(mosaic.shape)
    return np.stack([convolve(mosaic * m, k) for m, k in ((red, square), (green, cross), (blue, square))], -1)


def _malvar(mosaic: NDArray[Any]) -> NDArray[Any]:
    """By the linear filters of Malvar, He and Cutler (2004)."""
    green_at = [[0, 0, -1, 0, 0], [0, 0, 2, 0, 0], [-1, 2, 4, 2, -1], [0, 0, 2, 0, 0], [0, 0, -1, 0, 0]]
    beside = [[0, 0, 0.5, 0, 0], [0, -1, 0, -1, 0], [-1, 4, 5, 4, -1], [0, -1, 0, -1, 0], [0, 0, 0.5, 0, 0]]
    across = [[0, 0, -1.5, 0, 0], [0, 2, 0, 2, 0], [-1.5, 0, 6, 0, -1.5], [0, 2, 0, 2, 0], [0, 0, -1.5, 0, 0]]
    red, green, blue = _masks(mosaic.shape)
    rows = np.arange(len(mosaic))[:, None] % 2
    kernels = np.array(beside) / 8.0, np.array(beside).T / 8.0, np.array(across) / 8.0
    row, column, diagonal = (convolve(mosaic, kernel) for kernel in kernels)
    return np.stack(
        [
            np.where(red > 0, mosaic, np.where(blue > 0, diagonal, np.where(rows == 0, row, column))),
            np.where(green > 0, mosaic, convolve(mosaic, np.array(green_at) / 8.0)),
            np.where(blue > 0, mosaic, np.where(red > 0, diagonal, np.where(rows == 1, row, column))),
        ],
        -1,
    )
