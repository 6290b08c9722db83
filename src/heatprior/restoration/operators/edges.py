"""Unknown edges: the image reaches further than what was seen, as far as the operator does.

On the larger image the operator is cyclic and has its closed form; only the inner part of its data was observed,
A = (window) · (cyclic operator). That has no closed form, but the cyclic inverse is so near to it that a few steps of
conjugate gradients do the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement, Window

EDGES = ("unknown", "cyclic")


def check_edges(edges: str) -> None:
    """Refuse what edges cannot be."""
    if edges not in EDGES:
        raise InvalidInputError(f"edges is {edges!r}; expected {' or '.join(map(repr, EDGES))}")


def within(start: Sequence[int], shape: tuple[int, int]) -> Window:
    """The window of this shape that begins there."""
    return slice(start[0], start[0] + shape[0]), slice(start[1], start[1] + shape[1])


def seen_through(cyclic: Measurement, window: Window, inside: Window) -> Measurement:
    """A cyclic measurement of which only the data in the `window` were seen; `inside` is the image wanted."""
    shape = (window[0].stop - window[0].start, window[1].stop - window[1].start)
    margins = [(part.start, total - part.stop) for part, total in zip(window, cyclic.data_shape, strict=True)]

    def forward(image: FloatArray) -> Data:
        return cyclic.forward(image)[window]

    def adjoint(data: Data) -> FloatArray:
        return cyclic.adjoint(np.pad(data, margins))

    def first_guess(data: Data) -> FloatArray:
        assert cyclic.first_guess is not None
        return cyclic.first_guess(np.pad(data, margins, mode="edge"))

    return Measurement(
        cyclic.image_shape,
        shape,
        forward,
        adjoint,
        nearly_inverse=cyclic.inverse,
        first_guess=first_guess,
        inside=inside,
    )
