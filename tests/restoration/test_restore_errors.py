"""What cannot be restored is refused in one line that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from synthetic import oriented_mixture

import heatprior as hp
from heatprior.errors import InvalidInputError

Y = np.full((20, 22), 0.5)
WRONG = LinearOperator((440, 440), matvec=lambda x: np.roll(x, 1), rmatvec=lambda y: np.roll(y, 1), dtype=np.float64)
NO_ADJOINT = LinearOperator((440, 440), matvec=lambda x: 2.0 * x, dtype=np.float64)

REFUSED = [
    (Y, hp.operators.Mask(np.ones((20, 21))), 0.1, {}, "the mask has shape (20, 21) but the image (20, 22)"),
    (Y, hp.operators.Fourier(np.ones((20, 21))), 0.1, {}, "the mask has shape (20, 21) but the data (20, 22)"),
    (Y, np.eye(440), 0.1, {"shape": (20, 20)}, "acts on 440 pixels but shape (20, 20) has 400"),
    (Y[1:], np.eye(440), 0.1, {"shape": (20, 22)}, "gives 440 data but y has shape (19, 22)"),
    (Y, np.eye(440), 0.1, {}, "needs the shape of the image"),
    (Y, "blur", 0.1, {"shape": (20, 22)}, "the operator is of type str"),
    (Y, hp.operators.Mask(Y), 0.1, {"shape": (20, 22)}, "leave it out"),
    (Y, WRONG, 0.1, {"shape": (20, 22)}, "rmatvec is not the adjoint of matvec"),
    (Y, NO_ADJOINT, 0.1, {"shape": (20, 22)}, "the operator has no adjoint"),
    (Y, np.zeros((440, 440)), 0.1, {"shape": (20, 22)}, "nothing but zeros"),
    (Y, np.full((440, 440), np.nan), 0.1, {"shape": (20, 22)}, "NaN or infinite data"),
    (Y, hp.operators.Blur(np.ones((21, 3))), 0.1, {}, "the kernel has 3×21 pixels but the image only 22×20"),
    (Y, hp.operators.Downsample(2, np.ones((41, 3))), 0.1, {}, "the kernel has 3×41 pixels but the image only 44×40"),
    (1j * Y, hp.operators.Mask(Y), 0.1, {}, "y is complex but the operator gives real data"),
    (1j * Y, np.eye(440), 0.1, {"shape": (20, 22)}, "y is complex but the operator gives real data"),
    (Y, hp.operators.Mask(Y), 0.0, {}, "sigma is 0; expected a positive number"),
    (Y, np.eye(440), 0.0, {"shape": (20, 22)}, "sigma is 0.0; expected a positive number"),
    (Y, np.eye(440), [1.0, 2.0], {"shape": (20, 22)}, "one for each of the data (20, 22)"),
    (Y, hp.operators.Mask(Y), [0.1, 0.2], {}, "sigma has shape (2,)"),
    (Y, np.eye(440), None, {"shape": (20, 22)}, "sigma cannot be estimated"),
    (Y, np.eye(440), 0.1, {"shape": (20, 22), "white": 0}, "white is 0"),
    (Y, np.eye(440), 0.1, {"shape": (20, 22), "channel_axis": 0}, "channel_axis is for data that are an image"),
    (np.full_like(Y, np.nan), hp.operators.Mask(Y), 0.1, {}, "nothing but NaN"),
    (Y[:3], hp.operators.Mask(Y[:3]), 0.1, {}, "patches of 5×5"),
]


@pytest.mark.parametrize(("y", "operator", "sigma", "options", "message"), REFUSED, ids=[case[-1] for case in REFUSED])
def test_restore_refuses(y, operator, sigma, options, message):
    with pytest.raises(InvalidInputError) as refusal:
        hp.restore(y, operator, sigma, prior=oriented_mixture(5), **options)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hp.operators.Mask(np.zeros((4, 5))), "the mask has no valid pixel"),
        (lambda: hp.operators.Mask([1, 0]), "expected (H, W)"),
        (lambda: hp.operators.Fourier(np.zeros((4, 5))), "no valid frequency"),
        (lambda: hp.operators.Blur(np.zeros((3, 3))), "nothing but zeros"),
        (lambda: hp.operators.Blur([[np.nan]]), "NaN"),
        (lambda: hp.operators.Blur([1.0, 2.0]), "the kernel has shape (2,)"),
        (lambda: hp.operators.Blur([[1.0]], edges="mirrored"), "edges is 'mirrored'; expected 'unknown' or 'cyclic'"),
        (lambda: hp.operators.Downsample(0), "the factor is 0"),
        (lambda: hp.operators.Downsample(2, "lanczos"), "the kernel is 'lanczos'"),
    ],
)
def test_operators_refuse(make, message):
    with pytest.raises(InvalidInputError) as refusal:
        make()
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
