"""`hp.restore`: with the identity it denoises, it counts what it says, and colour, types and stacks go through."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import diags_array, eye_array
from scipy.sparse.linalg import LinearOperator
from synthetic import landscape, oriented_mixture

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.errors import InvalidInputError
from heatprior.restoration import plug_and_play
from heatprior.restoration.operators import convolution
from heatprior.restoration.operators.convolution import cyclic_blur, gaussian_kernel
from heatprior.restoration.pipeline import Pipeline
from heatprior.restoration.plug_and_play import noise_levels
from paper.weights.handmade import dct_prior

SHAPE = (48, 56)
SIGMA = 0.02


@pytest.fixture(scope="module")
def prior():
    return oriented_mixture(3)


@pytest.fixture(scope="module")
def image():
    return landscape(SHAPE, np.random.default_rng(0)).astype(np.float32)


def noise(seed=1, shape=SHAPE):
    return SIGMA * np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        (hp.operators.Mask(np.ones(SHAPE)), None),
        (hp.operators.Blur([[1.0]]), None),
        (hp.operators.Downsample(1, [[1.0]]), None),
        (eye_array(48 * 56), SHAPE),
    ],
)
def test_restoring_with_the_identity_is_denoising(operator, shape, prior, image):
    noisy = image + noise()
    restored = hp.restore(noisy, operator, SIGMA, prior=prior, shape=shape)
    np.testing.assert_allclose(restored, hp.denoise(noisy, SIGMA, prior=prior), atol=1e-6)
    assert np.abs(restored - hp.denoise(noisy, 1.1 * SIGMA, prior=prior)).max() > 1e-4


def test_a_first_look_takes_a_fourth_of_the_steps_and_gets_most_of_the_way(prior, image):
    blur = hp.operators.Blur(gaussian_kernel(1.5), edges="cyclic")
    blurred = cyclic_blur(gaussian_kernel(1.5), SHAPE).forward(image) + 0.2 * noise()
    errors, steps = [], []
    for quality in ("fast", "default"):
        reports = []
        found = hp.restore(blurred, blur, 0.2 * SIGMA, quality=quality, prior=prior, report=reports.append)
        errors.append(float(np.std(found - image)))
        steps.append(reports[-1].steps)
    assert 3 * steps[0] <= steps[1] <= 5 * steps[0]
    left = float(np.std(blurred - image))
    assert left - errors[0] > 0.75 * (left - errors[1])
    assert errors[0] < 0.9 * left
    with pytest.raises(InvalidInputError, match="expected 'fast'"):
        hp.restore(blurred, blur, SIGMA, quality="good")


def test_restoring_with_a_turn_is_denoising(prior, image):
    """The Fourier transform of an image with white noise has white noise; an image twice as strong, twice as much."""
    noisy = image.astype(np.float64) + noise()
    expected = hp.denoise(noisy, SIGMA, prior=prior)
    spectrum = np.fft.fft2(noisy, norm="ortho")
    restored = hp.restore(spectrum, hp.operators.Fourier(np.ones(SHAPE)), SIGMA, prior=prior)
    np.testing.assert_allclose(restored, expected, atol=1e-5)
    doubled = hp.restore(2 * noisy, diags_array(np.full(noisy.size, 2.0)), 2 * SIGMA, prior=prior, shape=SHAPE)
    np.testing.assert_allclose(doubled, expected, atol=1e-5)


CASES = {
    "blur": hp.operators.Blur(gaussian_kernel(1.2)),
    "cyclic blur": hp.operators.Blur(gaussian_kernel(1.2), edges="cyclic"),
    "mask": hp.operators.Mask(np.random.default_rng(3).random(SHAPE) < 0.5),
    "downsample": hp.operators.Downsample(2),
}


@pytest.mark.parametrize("name", CASES)
def test_data_are_explained_and_the_image_is_nearer(name, prior):
    operator = CASES[name]
    small = (24, 28) if name == "downsample" else SHAPE
    measurement = operator.on(small)
    truth = np.zeros(measurement.image_shape)
    truth[:] = np.resize(landscape(truth.shape, np.random.default_rng(0)), truth.shape)
    y = measurement.forward(truth) + noise(1, small)
    steps = []
    restored = hp.restore(y, operator, SIGMA, prior=prior, report=steps.append)
    inside = truth if measurement.inside is None else truth[measurement.inside]
    guess = measurement.first_guess(y)
    assert psnr(restored, inside) > psnr(guess if measurement.inside is None else guess[measurement.inside], inside) + 1
    assert [step.step for step in steps] == list(range(len(steps)))
    assert 0.4 < steps[-1].residual < 1.2  # one for the truth; less where data are few, and each can be explained
    assert all(np.isfinite(step.energy) for step in steps)
    np.testing.assert_array_equal(restored, hp.restore(y, operator, SIGMA, prior=prior))


class Counting(LinearOperator):
    """Every second pixel, counted."""

    def __init__(self, pixels):
        super().__init__(np.float64, (pixels // 2, pixels))
        self.count = 0

    def _matvec(self, x):
        self.count += 1
        return x.reshape(-1)[::2]

    def _rmatvec(self, y):
        self.count += 1
        whole = np.zeros(self.shape[1])
        whole[::2] = y.reshape(-1)
        return whole


def test_operators_are_applied_as_often_as_the_record_says(prior, image):
    operator = Counting(image.size)
    y = image.reshape(-1)[::2] + noise().reshape(-1)[::2]
    steps = []
    hp.restore(y, operator, SIGMA, prior=prior, shape=SHAPE, report=steps.append)
    assert operator.count == steps[-1].applications > steps[0].applications > 0
    quiet = Counting(image.size)
    hp.restore(y, quiet, SIGMA, prior=prior, shape=SHAPE)
    assert quiet.count == operator.count - 1  # the last residual is for the record alone


@pytest.mark.parametrize(
    "operator", [hp.operators.Blur(gaussian_kernel(1.0), "cyclic"), hp.operators.Downsample(2, edges="cyclic")]
)
def test_closed_forms_apply_no_operator_in_secret(operator, prior, image, monkeypatch):
    """Both go through a cyclic convolution, forth or back, whenever they are applied."""
    count = 0

    def counting(*arguments):
        def counted(apply):
            def use(values):
                nonlocal count
                count += 1
                return apply(values)

            return use

        made = cyclic_blur(*arguments)
        return replace(made, forward=counted(made.forward), adjoint=counted(made.adjoint))

    monkeypatch.setattr(convolution, "cyclic_blur", counting)
    operator.on(image.shape)
    to_set_up, count = count, 0
    steps = []
    hp.restore(image + noise(), operator, SIGMA, prior=prior, report=steps.append)
    assert count - to_set_up == steps[-1].applications > 0


def test_a_closed_form_and_conjugate_gradients_agree(prior, image):
    seen = np.random.default_rng(4).random(SHAPE) < 0.6
    y = image + noise()
    closed = hp.restore(y, hp.operators.Mask(seen), SIGMA, prior=prior)
    with_nan = hp.restore(np.where(seen, y, np.nan), hp.operators.Mask(np.ones(SHAPE)), SIGMA, prior=prior)
    mapped = hp.restore(y, hp.operators.Mask(seen), np.full(SHAPE, SIGMA), prior=prior)
    for other in (with_nan, mapped):
        assert np.abs(closed - other).max() < 5e-3  # conjugate gradients stop at a part of the noise
    assert np.abs(closed - hp.restore(y, hp.operators.Mask(~seen), SIGMA, prior=prior)).max() > 0.05


def test_coils_of_magnetic_resonance_imaging(prior, image):
    """A stacked operator: complex data of a real image, two coils, half of the frequencies."""
    rng = np.random.default_rng(5)
    rows, columns = np.indices(SHAPE)
    coils = np.stack([np.exp(1j * rows / 30) * (0.3 + columns / 56), np.exp(-1j * columns / 20) * (1.3 - columns / 56)])
    seen = rng.random(SHAPE) < 0.5

    def forward(x):
        return (seen * np.fft.fft2(coils * x.reshape(SHAPE), norm="ortho")).reshape(-1)

    def adjoint(y):
        back = np.fft.ifft2(seen * y.reshape(2, *SHAPE), norm="ortho")
        return (coils.conj() * back).sum(axis=0).reshape(-1)

    operator = LinearOperator((2 * image.size, image.size), matvec=forward, rmatvec=adjoint, dtype=np.complex128)
    y = forward(image.reshape(-1)).reshape(2, *SHAPE)
    y = y + seen * (noise(6, y.shape) + 1j * noise(7, y.shape))
    restored = hp.restore(y, operator, SIGMA, prior=prior, shape=SHAPE)
    assert restored.shape == SHAPE
    assert restored.dtype == np.float64
    assert psnr(restored, image) > psnr(adjoint(y).real.reshape(SHAPE), image) + 5


def test_operators_of_pylops(prior, image):
    """Stacked ones too; those of two axes take y as an image or as a vector."""
    pylops = pytest.importorskip("pylops")
    kernel = gaussian_kernel(1.0)
    middle = (kernel.shape[0] // 2, kernel.shape[1] // 2)
    blurred = pylops.signalprocessing.Convolve2D(SHAPE, kernel, offset=middle)
    stacked = pylops.VStack([blurred, pylops.Identity(image.size)])
    y = blurred @ image.reshape(-1) + noise().reshape(-1)
    one = hp.restore(y.reshape(SHAPE), blurred, SIGMA, prior=prior, shape=SHAPE)
    np.testing.assert_array_equal(one, hp.restore(y, blurred, SIGMA, prior=prior, shape=SHAPE))
    both = np.concatenate([y, image.reshape(-1) + noise(2).reshape(-1)])
    two = hp.restore(both, stacked, SIGMA, prior=prior, shape=SHAPE)
    assert psnr(y.reshape(SHAPE), image) < psnr(one, image) < psnr(two, image)


def test_types_colours_and_stacks(prior, image):
    kernel = gaussian_kernel(1.0)
    colour = np.stack([image, 0.5 * image + 0.2, 1.0 - image])  # (3, H, W)
    eight = np.rint(255 * colour).astype(np.uint8)
    one = hp.restore(eight, hp.operators.Blur(kernel), 2.0, prior=prior, channel_axis=0)
    last = hp.restore(
        np.moveaxis(eight, 0, -1), hp.operators.Blur(kernel), [2.0, 2.0, 2.0], prior=prior, channel_axis=-1
    )
    assert one.dtype == np.uint8
    np.testing.assert_array_equal(np.moveaxis(one, 0, -1), last)
    stack = hp.restore(eight, hp.operators.Blur(kernel), 2.0, prior=prior)  # three images, each by itself
    np.testing.assert_array_equal(stack[1], hp.restore(eight[1], hp.operators.Blur(kernel), 2.0, prior=prior))
    assert not np.array_equal(stack, one)
    large = hp.restore(eight.astype(np.uint16) * 257, hp.operators.Downsample(2), 514.0, prior=prior, channel_axis=0)
    assert (large.shape, large.dtype) == ((3, 96, 112), np.uint16)


@pytest.mark.parametrize("kind", ["patch", "wavelet"])
def test_other_kinds_of_priors(kind, image):
    prior = dct_prior(3) if kind == "patch" else "wavelet-density"
    y = hp.operators.Blur(gaussian_kernel(1.0), edges="cyclic").on(SHAPE).forward(image) + noise()
    steps = []
    restored = hp.restore(
        y, hp.operators.Blur(gaussian_kernel(1.0), edges="cyclic"), SIGMA, prior=prior, report=steps.append
    )
    assert psnr(restored, image) > psnr(y, image)
    assert np.isfinite(steps[-1].energy)


def test_noise_is_estimated_where_data_are_an_image(prior, image):
    kernel = gaussian_kernel(1.5)
    y = hp.operators.Blur(kernel, edges="cyclic").on(SHAPE).forward(image).astype(np.float32) + noise()
    found = float(hp.estimate_sigma(y).sigma)
    expected = hp.restore(y, hp.operators.Blur(kernel), found, prior=prior)
    np.testing.assert_allclose(hp.restore(y, hp.operators.Blur(kernel), prior=prior), expected, atol=1e-6)


def test_levels_fall_to_the_noise():
    for sigma in (1e-4, 0.01, 0.1, 0.5):
        counts = []
        for undetermined in (0.0, 0.5, 0.9):
            levels = noise_levels(sigma, undetermined)
            assert (np.diff(levels) < 0).all()
            assert levels[-1] <= max(sigma, 1 / 255)
            counts.append(len(levels))
        assert 2 <= counts[0] < counts[1] < counts[2] <= 40  # the prior has more to do where data say less


def test_steps_at_every_scale_see_further(prior, image, monkeypatch):
    """Where most pixels are missing, patches of the fine scale alone hold hardly any that was seen."""
    operator = hp.operators.Mask(np.random.default_rng(8).random(SHAPE) < 0.2)
    every = hp.restore(image + noise(), operator, SIGMA, prior=prior)
    monkeypatch.setattr(plug_and_play, "Pipeline", partial(Pipeline, most_scales=1))
    fine = hp.restore(image + noise(), operator, SIGMA, prior=prior)
    assert psnr(every, image) > psnr(fine, image)


def test_ghosts_go_where_the_first_level_is_as_large(monkeypatch):
    """Missing columns of frequencies leave copies of edges, which a step at a lower level takes for structure."""
    truth = np.zeros((64, 64))
    truth[12:50, 10:26] = 0.8
    truth[20:60, 36:56] = 0.4
    rng = np.random.default_rng(0)
    columns = (np.abs(np.fft.fftfreq(64)) < 0.06) | (rng.random(64) < 0.3)
    operator = hp.operators.Fourier(np.broadcast_to(columns, truth.shape))
    spectrum = np.fft.fft2(truth, norm="ortho") + SIGMA * (rng.standard_normal((2, *truth.shape)).T @ [1, 1j]).T
    gone = psnr(hp.restore(spectrum, operator, SIGMA, prior="patch7"), truth)
    monkeypatch.setattr(plug_and_play, "START", 0.25 * plug_and_play.START)
    assert gone > psnr(hp.restore(spectrum, operator, SIGMA, prior="patch7"), truth) + 1
