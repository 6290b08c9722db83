"""Signs to probe a denoiser with, whose products with shifted copies of themselves cancel over the image.

The trace of a matrix J is the mean of n J n over random signs n; of one draw it is off by Σ J_pq n_p n_q over pixels
p ≠ q. A denoiser treats most places alike, J_pq is much the same for all pixels the same step apart, and such products
sum to a number that one draw fixes for all images of its size. A maximal-length sequence of a shift register, folded
along the diagonal of a tile, has no such products: of any two different places of the tile, as many pairs agree as
differ (but for one).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

TILE = (63, 65)  # coprime; their product is 2^12 − 1
TAPS = (11, 5, 3, 0)  # of x^12 + x^6 + x^4 + x + 1, which is primitive


@cache
def tile() -> NDArray[np.bool_]:
    """One period of the signs, as whether they are positive: (63, 65)."""
    length = TILE[0] * TILE[1]
    register, bits = [True] * (max(TAPS) + 1), np.empty(length, np.bool_)
    for k in range(length):
        bits[k] = register[-1]
        register = [bool(sum(register[tap] for tap in TAPS) % 2), *register[:-1]]
    folded, places = np.empty(TILE, np.bool_), np.arange(length)
    folded[places % TILE[0], places % TILE[1]] = bits
    folded.setflags(write=False)
    return folded


def positive_signs(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Where the signs are positive: tiles over the last two axes, begun at another place for each image in front."""
    signs = np.empty(shape, np.bool_)
    repeats = [-(-length // side) + 1 for length, side in zip(shape[-2:], TILE, strict=True)]
    tiled = np.tile(tile(), repeats)
    for index in np.ndindex(shape[:-2]):
        top, left = (int(rng.integers(side)) for side in TILE)
        signs[index] = tiled[top : top + shape[-2], left : left + shape[-1]]
    return signs
