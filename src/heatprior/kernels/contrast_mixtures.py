"""Sums over groups of patches that fit the weights of a mixture of contrasts: one step of EM, at all noise levels.

With relative densities e_c of a patch, and weights π_c of its group, the patch belongs to contrast c with probability
r_c = π_c e_c / Σ_d π_d e_d. Wanted are, for each group, Σ_i r_ic and Σ_i log Σ_c π_c e_ic. `…_plain` is the numpy twin.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.compiler import FAST, kernel
from heatprior.kernels.threads import for_each


def relative_densities(log_densities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(S, C, n) → e = exp(l − max_c l), and the maxima (S, n): sums of e can neither overflow nor vanish."""
    peaks = log_densities.max(axis=1)
    relative = log_densities - peaks[:, None]
    return np.exp(relative, out=relative), peaks


def mixture_sums_plain(relative: FloatArray, groups: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The twin: e (S, C, n), the group of each patch (n,) (none if negative), π (S, C, G) → (S, C, G) and (S, G)."""
    used = groups >= 0
    joint = weights[:, :, groups[used]] * relative[:, :, used]  # (S, C, n)
    density = joint.sum(axis=1)
    members = np.eye(weights.shape[2])[groups[used]]  # (n, G)
    return (joint / density[:, None]) @ members, np.log(density) @ members


def mixture_sums(relative: FloatArray, groups: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The kernel, on all cores: as `mixture_sums_plain`."""
    if groups.size and groups.max() >= weights.shape[2]:
        raise IndexError(f"group {groups.max()} of a patch has no weights; there are {weights.shape[2]} groups")
    weights = np.ascontiguousarray(weights.swapaxes(1, 2), np.float64)  # (S, G, C)
    totals = np.zeros(weights.shape)
    logarithms = np.zeros(weights.shape[:2])
    for_each(lambda s: _add(relative[s], groups, weights[s], totals[s], logarithms[s]), range(len(relative)))
    return totals.swapaxes(1, 2), logarithms


@kernel(fastmath=FAST)
def _add(relative, groups, weights, totals, logarithms):
    contrasts, count = relative.shape
    joint = np.empty(contrasts)
    for i in range(count):
        g = groups[i]
        if g < 0:
            continue
        density = 0.0
        for c in range(contrasts):
            joint[c] = weights[g, c] * relative[c, i]
            density += joint[c]
        for c in range(contrasts):
            totals[g, c] += joint[c] / density
        logarithms[g] += np.log(density)
