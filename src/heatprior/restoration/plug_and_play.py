"""Restoring an image from data y = A x + noise: the data's half and the prior's half of a step, in turn.

Plug-and-play half-quadratic splitting, at noise levels that fall from what the data leave undetermined to what their
noise does: x ← the estimate z drawn to the data, z ← E[X | X + level n = x], averaged over patches, at every scale that
the image holds. How many steps there are, how low the levels fall, and how far z is carried on in the direction in
which it came, depend on one number: the part of the image that the data leave undetermined. This rule is the same for
every operator, chosen on validation images. What is minimised: docs/inverse.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Grid, Progress, part_of
from heatprior.priors.protocol import ImagePrior, Prior
from heatprior.restoration.operators.measurement import (
    Counted,
    Data,
    Measurement,
    draw_to_data,
    undetermined_part,
    weigh_data,
)
from heatprior.restoration.pipeline import ONE_STEP, Pipeline, check_holds_a_patch
from heatprior.restoration.symmetries import apply_symmetry, undo_symmetry

START = 60 / 255  # the first noise level: ghosts in an image to begin with are as large as that
TYPICAL = 30 / 255  # an image's error to begin with, about: what the data determine is judged by it
END = 0.8  # the last one, over the noise that the data bring into the image
FINEST = 1 / 255  # the last one, at least: what is less is not seen
FALL = (0.8, 0.9)  # of the level from step to step, about, if data leave nothing undetermined, or everything
MOMENTUM = 0.75  # over the part that is undetermined
TRUST = 0.3  # in the data against the prior: tau² = level² / TRUST
PRECISION = 0.05  # of conjugate gradients, over the level
STRIDE = 2  # pixels between patches; each step begins them elsewhere
SYMMETRIES = 8  # of the square, one after the other
SPREAD = 0.5  # root mean square of grey levels, before anything is known
LEAST_SIGMA = 0.25 / 255  # of estimated noise: rounding alone leaves as much
MOST_PATCHES = 4096  # whose density is taken for the energy
TOLERANCE = 1e-4  # of the dot test, relative: single precision passes, an interpolation left out does not
ISOMETRY_TOLERANCE = 1e-6  # of AᵀA x = c x, relative
ROUNDS = 8  # of the power method, to a few per cent


class RestoringStep(NamedTuple):
    """What a step led to, as `restore` reports it; step 0 is the image to begin with.

    Attributes
    ----------
    step, steps : int
        Its number, and how many there are.
    level : float
        The noise level given to the prior, grey levels being 0 to 1.
    residual : float
        Root mean square of (A z − y) / sigma: one, if z is the truth.
    energy : float
        Mean of −log f per pixel of z, of patches side by side, at the last level of all steps.
    applications : int
        Of A and of Aᵀ, since the beginning.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> seen = np.random.default_rng(0).random((32, 32)) < 0.5
    >>> steps = []
    >>> _ = hp.restore(np.full((32, 32), 0.5), hp.operators.Mask(seen), 0.02, prior="patch7", report=steps.append)
    >>> steps[-1].step == steps[-1].steps, steps[-1].level < steps[1].level
    (True, True)
    """

    step: int
    steps: int
    level: float
    residual: float
    energy: float
    applications: int


Report = Callable[[RestoringStep], object]


def noise_levels(sigma: float, undetermined: float, haste: float = 1.0) -> FloatArray:
    """The noise levels given to the prior, step by step.

    `sigma` is the noise of the data as it is in the image: over ‖A‖. Of the image, the part 1 − `undetermined` has it,
    and the rest has none.
    """
    last = max(END * sigma * np.sqrt(1.0 - undetermined), FINEST)
    first = max(START, 2.0 * last)
    fall = FALL[0] + undetermined * (FALL[1] - FALL[0])
    return np.geomspace(first, last, 1 + round(np.log(last / first) / np.log(fall) / haste))


class Restorer(NamedTuple):
    """A prior, whom to tell of the steps, and how many times fewer of them to take."""

    prior: Prior
    report: Report | None = None
    haste: float = 1.0

    def restore(
        self, data: Data, measurement: Measurement, sigma: FloatArray, progress: Progress | None = None
    ) -> FloatArray:
        """The image (H, W), grey levels being 0 to 1, of which these data were measured; `sigma` is () or as data."""
        data, measurement, level = weigh_data(data, measurement, sigma)
        check_holds_a_patch(measurement.image_shape, self.prior)
        counted = Counted(measurement)
        nature = examine(counted.measurement)
        if nature.is_isometry:
            image = counted.measurement.adjoint(data) / nature.norm**2
            levels, pipeline = np.array([level / nature.norm]), Pipeline(self.prior, (image.shape[0], image.shape[1]))
            z = pipeline.denoise(image.astype(np.float32), float(levels[0]), progress=progress)  # as `hp.denoise` does
            self._tell(1, levels, z, data, counted, level)
        else:
            undetermined = undetermined_part(counted.measurement, TRUST * (level / TYPICAL) ** 2)
            levels = noise_levels(level / nature.norm, undetermined, self.haste)
            z = self._alternate(data, counted, level, levels, MOMENTUM * undetermined, progress)
        return z if measurement.inside is None else z[measurement.inside]

    def _alternate(
        self, data: Data, counted: Counted, sigma: float, levels: FloatArray, momentum: float, progress: Progress | None
    ) -> FloatArray:
        """z after the last step."""
        measurement = counted.measurement
        if measurement.first_guess is not None:  # data that look like an image
            z: FloatArray = np.asarray(measurement.first_guess(data), np.float64)
        else:  # what explains them, as near to zero as that allows
            nothing = np.zeros(measurement.image_shape)
            z = draw_to_data(measurement, nothing, data, (sigma / SPREAD) ** 2, PRECISION * START)
        last: tuple[FloatArray, Data] | None = None
        for number, level in enumerate(levels.tolist()):
            misfit = self._tell(number, levels, z, data, counted, sigma)
            if misfit is None:
                misfit = data - measurement.forward(z)
            now = (z, misfit)  # the misfit is linear in z, so that A need not be applied again to what is carried on
            lead, left = (new + momentum * (new - old) for new, old in zip(now, last or now, strict=True))
            last = now
            x = draw_to_data(measurement, lead, left, TRUST * (sigma / level) ** 2, PRECISION * level)
            z = self._prior_step(x, level, number, measurement, part_of(progress, number, len(levels)))
        self._tell(len(levels), levels, z, data, counted, sigma)
        return z

    def _prior_step(
        self, x: FloatArray, level: float, number: int, measurement: Measurement, progress: Progress | None
    ) -> FloatArray:
        """One step of empirical Bayes at every scale; beyond its edges the image goes on as the measurement says.

        Each step sees another of the eight symmetries of the square: a finite mixture prefers some of them a little.
        """
        size = max(self.prior.patch_shape, default=1)
        margin = min(size - 1, min(x.shape) - 1)
        symmetry = number % SYMMETRIES
        padded = np.pad(x, margin, mode="wrap" if measurement.is_cyclic else "reflect")
        image = np.ascontiguousarray(apply_symmetry(padded, symmetry), np.float32)
        stride = min(STRIDE, size)
        grid = Grid(stride, number % stride)

        height, width = image.shape
        pipeline = Pipeline(self.prior, (height, width), ONE_STEP, margin=0, grids=(grid,))
        result = pipeline.denoise(image, level, progress=progress).astype(np.float64)
        return undo_symmetry(result, symmetry)[margin : margin + x.shape[0], margin : margin + x.shape[1]]

    def _tell(
        self, step: int, levels: FloatArray, z: FloatArray, data: Data, counted: Counted, sigma: float
    ) -> Data | None:
        """Report a step, if anybody wants to know; then y − A z is known."""
        if self.report is None:
            return None
        misfit = np.asarray(data - counted.measurement.forward(z))
        squares = np.square(misfit.real).sum() + np.square(misfit.imag).sum()
        residual = float(np.sqrt(squares / counted.seen)) / sigma
        level = float(levels[max(step - 1, 0)])
        value = energy(self.prior, z, float(levels[-1]))
        self.report(RestoringStep(step, len(levels), level, residual, value, counted.applications))
        return misfit


def energy(prior: Prior, image: FloatArray, level: float) -> float:
    """Mean of −log f(·, level) per pixel: of a prior of whole images, or of patches side by side."""
    values = np.asarray(image, np.float32)
    if not prior.patch_shape:
        unit = cast("ImagePrior", prior).unit
        whole = np.pad(values, [(0, -length % unit) for length in values.shape], mode="symmetric")
        return -float(prior.log_prob(whole, level)) / whole.size
    size = prior.patch_shape[0]
    height, width = (length // size for length in values.shape)
    every = max(1, int(np.ceil(np.sqrt(height * width / MOST_PATCHES))))
    patches = values[: height * size, : width * size].reshape(height, size, width, size).swapaxes(1, 2)
    return -float(np.mean(prior.log_prob(patches[::every, ::every].reshape(-1, size**2), level))) / size**2


class Nature(NamedTuple):
    """What was found."""

    norm: float  # about the largest singular value of A
    is_isometry: bool  # AᵀA is a multiple of the identity: Aᵀy is the image with white noise


def examine(measurement: Measurement) -> Nature:
    """Dot-test the adjoint, Re⟨A x, r⟩ = ⟨x, Aᵀ r⟩, refuse a wrong one, and find the norm of the operator."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal(measurement.image_shape)
    data = measurement.forward(image)
    if not np.isfinite(data).all():
        raise InvalidInputError("the operator gives NaN or infinite data for a finite image; mend it")
    if not data.any():
        raise InvalidInputError("the operator gives nothing but zeros; it says nothing about the image")
    back = _dot_test(measurement, image, data, data)
    noise = rng.standard_normal(data.shape) + (1j * rng.standard_normal(data.shape) if measurement.is_complex else 0.0)
    _dot_test(measurement, image, data, noise)
    strength = float(np.vdot(image, back).real / np.vdot(image, image).real)
    if float(np.linalg.norm(back - strength * image)) <= ISOMETRY_TOLERANCE * float(np.linalg.norm(back)):
        return Nature(float(np.sqrt(strength)), is_isometry=True)
    for _ in range(ROUNDS):
        back = measurement.adjoint(measurement.forward(back / np.linalg.norm(back)))
    return Nature(float(np.sqrt(np.linalg.norm(back))), is_isometry=False)


def _dot_test(measurement: Measurement, image: Data, data: Data, other: Data) -> Data:
    """Aᵀ of `other`, where `data` are A of the image."""
    back = measurement.adjoint(other)
    one, two = np.vdot(other, data).real, np.vdot(image, back).real
    allowed = TOLERANCE * float(np.linalg.norm(other) * np.linalg.norm(data))
    if not abs(one - two) <= allowed:
        raise InvalidInputError(
            f"rmatvec is not the adjoint of matvec (dot test failed): ⟨Ax, r⟩ = {one:.6g} but ⟨x, Aᵀr⟩ = {two:.6g} "
            "for random x and r; give the transpose of what matvec does"
        )
    return back
