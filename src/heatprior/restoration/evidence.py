"""The best quality: an image by a prior, and by the same fitted to that image, each believed as far as the image says.

A prior of photographs knows little of print, weave or stars, and of no image all that a fit to it tells
(adaptation.py). Which to believe is told without the truth: of f = Σ w_i f_i the mean squared error is
‖f − y‖² − tr C + 2 tr J C (Stein), a quadratic form in the weights whose trace one probe n = ± sigma tells, as n J n.
Its minimum on the simplex is never worse than either, beyond the error of that estimate. A prior of natural images does
not prefer upright to lying, but a mixture of finitely many shapes does a little: so the image is turned as well, for
the one that is believed more, and means are taken; a prior that cannot be fitted sees all eight symmetries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, combinations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress, part_of, span_of
from heatprior.noise_value import Noise
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.protocol import Prior
from heatprior.restoration.adaptation import fit_to_images
from heatprior.restoration.error_bars import PROBE, SEED, draw_signs
from heatprior.restoration.pyramid import cut_noise
from heatprior.restoration.symmetries import Denoiser, denoise_turned

TURNS = (5, 3, 6, 1, 2, 4, 7)  # of the symmetries: by 90°, 180° and 270°, then mirrored
FEW_TURNS = 3  # where two priors take their time
PROBED = 512  # pixels along either side, in the middle: enough to know a trace
EDGE = 16  # pixels of what is cut out, where it is denoised as at the edge of an image
FITTING_PART = 0.1  # of the time
TINY = 1e-30  # of nothing removed
SLACK = 1e-6  # of the sum of weights, which equations without a solution miss


def denoise_by_evidence(
    planes: Sequence[FloatArray],
    noises: Sequence[Noise],
    prior: Prior,
    denoiser_of: Callable[[Prior], Denoiser],
    progress: Progress | None = None,
) -> list[FloatArray]:
    """The planes (H, W) of a colour; the prior is fitted to the first, its brightness."""
    models, rest = [prior], progress
    if isinstance(prior, GaussianMixturePrior) and noises[0].spectrum is None:
        with suppress(InvalidInputError):  # gaps leave no whole patch to fit it to
            models.append(fit_to_images(prior, [(planes[0], noises[0])]))
            rest = span_of(progress, FITTING_PART, 1.0)
    turns = TURNS if len(models) == 1 else TURNS[:FEW_TURNS]
    runs = 2 * len(models) + len(turns)
    parts = iter([part_of(rest, number, runs) for number in range(runs)])
    both = [denoiser_of(model) for model in models]
    found = [[denoiser(planes, noises, progress=next(parts))] for denoiser in both]
    weights: FloatArray = np.ones((len(planes), 1))
    if len(models) > 1:
        weights = _weigh_planes(planes, noises, both, [one for (one,) in found], parts)
    for number, chosen in zip(turns, share_out(weights[0], len(turns)), strict=True):
        turned = denoise_turned(both[chosen], planes, noises, number, progress=next(parts))
        found[chosen].append(turned)
    mixed = []
    for k in range(len(planes)):
        believed = [(w / len(own), own) for w, own in zip(weights[k], found, strict=True) if w > 0.0]
        mixed.append(np.asarray(sum(np.float32(w) * result[k] for w, own in believed for result in own), np.float32))
    return mixed


def share_out(weights: FloatArray, count: int) -> list[int]:
    """Which of the weights each of `count` turns goes to: the one that has the fewest for its weight."""
    had = np.ones(len(weights))
    for _ in range(count):
        had[int(np.argmax(weights / had))] += 1.0
    return [int(number) for number in np.repeat(np.arange(len(weights)), had.astype(int) - 1)]


def _weigh_planes(
    planes: Sequence[FloatArray],
    noises: Sequence[Noise],
    denoisers: Sequence[Denoiser],
    found: Sequence[Sequence[FloatArray]],
    parts: Iterator[Progress | None],
) -> FloatArray:
    """The weights (planes, results) of least estimated risk, by what is in the middle."""
    starts = [max(0, (length - PROBED) // 2) for length in planes[0].shape]
    rows, columns = (
        slice(start, min(start + PROBED, length)) for start, length in zip(starts, planes[0].shape, strict=True)
    )
    noisy = [plane[rows, columns] for plane in planes]
    levels = [np.broadcast_to(noise.rows(slice(None)), planes[0].shape)[rows, columns] for noise in noises]
    signs = draw_signs(noisy[0].shape, np.random.default_rng(SEED))
    drawn = [np.where(signs, level, -level).astype(np.float32) for level in levels]
    probed = [np.ascontiguousarray(plane + np.float32(PROBE) * own) for plane, own in zip(noisy, drawn, strict=True)]
    cut = [cut_noise(noise, (rows, columns)) for noise in noises]
    answers = [denoiser(probed, cut, progress=next(parts)) for denoiser in denoisers]
    inner = tuple(
        slice(EDGE if own.start else 0, -EDGE if own.stop < length else None)
        for own, length in zip((rows, columns), planes[0].shape, strict=True)
    )
    weights = []
    for k in range(len(planes)):
        both = [(one[k][rows, columns][inner], answer[k][inner]) for one, answer in zip(found, answers, strict=True)]
        weights.append(weigh(both, noisy[k][inner], drawn[k][inner]))
    return np.array(weights)


def weigh(found: Sequence[tuple[FloatArray, FloatArray]], noisy: FloatArray, drawn: FloatArray) -> FloatArray:
    """The weights of least estimated risk of results, each given with that of a noisy image `PROBE` · `drawn` off."""
    removed = [clean - noisy for clean, _ in found]
    squares = np.array([[_mean(one * other) for other in removed] for one in removed])
    traces = np.array([_mean(drawn * (probed - clean)) / PROBE for clean, probed in found])
    return minimise_on_simplex(squares, 2.0 * traces)


def _mean(values: FloatArray) -> float:
    """Over the pixels that are there."""
    return float(np.nansum(values, dtype=np.float64)) / max(int(np.count_nonzero(~np.isnan(values))), 1)


def minimise_on_simplex(squares: FloatArray, linear: FloatArray) -> FloatArray:
    """The weights w ≥ 0, Σ w = 1, of least w A w + b w: the best of the stationary points on all faces."""
    count, alone, unit = len(linear), np.diag(squares) + linear, max(float(np.trace(squares)), TINY)
    best, least = np.eye(count)[int(np.argmin(alone))], float(alone.min())
    for face in chain.from_iterable(combinations(range(count), size) for size in range(1, count + 1)):
        system = np.ones((len(face) + 1, len(face) + 1))
        system[:-1, :-1], system[-1, -1] = 2.0 * squares[np.ix_(face, face)] / unit, 0.0
        weights = np.zeros(count)
        weights[list(face)] = np.linalg.lstsq(system, np.append(-linear[list(face)] / unit, 1.0), rcond=None)[0][:-1]
        risk = float(weights @ squares @ weights + linear @ weights)
        if weights.min() >= 0.0 and abs(weights.sum() - 1.0) < SLACK and risk < least:
            best, least = weights, risk
    return np.asarray(best)
