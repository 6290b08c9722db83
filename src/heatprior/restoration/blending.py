"""The best blend of several denoisers for the image at hand, without its truth: least squares by Stein's risk (SURE-LET).

f = f_0 + Σ_k v_k (f_k − f_0) has the risk ‖f − y‖² + 2 tr(J_f C) − tr C, a quadratic function of v that is known from the
denoised images f_k and one probe of each: its minimum solves K equations. Differences d_k = f_k − f_0 to the first
denoiser, which all others are judged against, keep brightness as it is, and a small ridge keeps v from chasing noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.restoration.standard_errors import Probe

SIGNIFICANT = 2.0  # standard errors by which a blend must be better than the first denoiser alone
PARAMETER_PRICE = 2.0  # times the variance that fitting one weight costs


class Candidate(NamedTuple):
    """An image denoised in one way, and its probe; all candidates are probed with the same noise."""

    denoised: FloatArray
    probe: Probe


class Blend(NamedTuple):
    """The weights of all candidates, which sum to one, and by how much the risk falls below that of the first."""

    weights: FloatArray
    gain: float


def best_blend(noisy: FloatArray, candidates: Sequence[Candidate]) -> Blend:
    """The blend of least risk; the first candidate alone where no blend is surely better."""
    first, others = candidates[0], candidates[1:]
    known = np.isfinite(noisy) & np.isfinite(first.denoised)
    alone = np.eye(len(candidates))[0]
    if not others or not known.any():
        return Blend(alone, 0.0)
    count = int(known.sum())
    drawn = first.probe.drawn[known]
    differences = np.array([other.denoised[known] - first.denoised[known] for other in others], np.float64)
    traces = np.array([(drawn * (other.probe.answer - first.probe.answer)[known]).mean() for other in others])
    rest = (noisy - first.denoised)[known].astype(np.float64)
    products = differences @ differences.T / count
    wanted = differences @ rest / count - traces
    # What one draw and one noise leave uncertain of `wanted`: its entries are means of products with the noise.
    variance = float(np.square(drawn).mean())
    uncertain = 2.0 * variance * np.diag(products) / count
    ridge = PARAMETER_PRICE * np.diag(uncertain / np.maximum(np.diag(products), 1e-30)) * count / max(count, 1)
    weights = np.linalg.solve(products + ridge + 1e-12 * np.eye(len(others)), wanted)
    gain = float(2.0 * weights @ wanted - weights @ products @ weights)
    error = float(2.0 * np.sqrt(np.square(weights) @ uncertain))
    if gain < SIGNIFICANT * error:
        return Blend(alone, 0.0)
    return Blend(np.concatenate([[1.0 - weights.sum()], weights]), gain)


def blended(candidates: Sequence[Candidate], blend: Blend) -> Candidate:
    """The candidates in these parts: the denoised image, and its probe."""
    images, answers = (
        sum(w * x for w, x in zip(blend.weights, values, strict=True))
        for values in ([c.denoised for c in candidates], [c.probe.answer for c in candidates])
    )
    return Candidate(np.asarray(images), Probe(candidates[0].probe.drawn, np.asarray(answers)))
