"""Orthogonal frames that stay orthogonal while they are learnt: a frame turned by the exponential of skew angles."""

from __future__ import annotations

import torch
from torch import Tensor


def turned(frame: Tensor, angles: Tensor) -> Tensor:
    """exp(S) frame, S skew: (..., d, a), its rows as orthonormal as those of `frame`.

    Of `angles` (..., d, d) only what is above the diagonal counts: S = U − Uᵀ. Angle (i, j) turns row i towards row j.
    """
    upper = angles.triu(1)
    return torch.linalg.matrix_exp(upper - upper.mT) @ frame
