"""The best quality: a prior, and the same fitted to the image, believed as far as Stein's estimate of the risk says."""

import numpy as np
import pytest
from synthetic import oriented_mixture

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.restoration import evidence
from heatprior.restoration.evidence import minimise_on_simplex, share_out

SIGMA = 0.1


def woven(side=96):
    """A cloth that no photograph taught."""
    rows, columns = np.indices((side, side))
    over = (rows // 4 + columns // 4) % 2
    return (0.3 + 0.4 * np.where(over, rows % 4 < 2, columns % 4 < 2)).astype(np.float32)


def drawn(side=96):
    """An image whose patches are as smooth as those of the prior, about."""
    noise = np.random.default_rng(3).standard_normal((side, side))
    power = 1.0 / (1.0 + (8.0 * np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))) ** 2)
    smooth = np.fft.ifft2(np.fft.fft2(noise) * power).real
    return (0.5 + 0.15 * smooth / smooth.std()).astype(np.float32)


def add_noise(clean, seed=0):
    return clean + np.float32(SIGMA) * np.random.default_rng(seed).standard_normal(clean.shape).astype(np.float32)


def results(clean, **keywords):
    noisy = add_noise(clean)
    return [psnr(hp.denoise(noisy, SIGMA, white=1.0, quality=q, **keywords), clean) for q in ("default", "best")]


def test_what_is_no_photograph_gains():
    default, best = results(woven())
    assert best > default + 0.3


def test_what_the_prior_knows_is_not_spoilt():
    default, best = results(drawn())
    assert best > default - 0.02


def test_colours_gain_by_a_fit_to_their_brightness():
    clean = np.stack([woven(), 0.8 * woven(), 0.3 + 0.2 * woven()], axis=-1)
    default, best = results(clean, channel_axis=-1)
    assert best > default + 0.3


def test_missing_pixels_do_not_count():
    clean = woven()
    noisy = add_noise(clean)
    noisy[::19, ::17] = np.nan
    default, best = (hp.denoise(noisy, SIGMA, white=1.0, quality=q) for q in ("default", "best"))
    there = np.isfinite(noisy)
    np.testing.assert_array_equal(np.isfinite(best), there)
    assert psnr(best[there], clean[there]) > psnr(default[there], clean[there]) + 0.1


def test_noise_may_differ_from_place_to_place():
    clean = woven()
    sigma = np.linspace(0.05, 0.15, clean.size).reshape(clean.shape)
    noisy = clean + (sigma * np.random.default_rng(0).standard_normal(clean.shape)).astype(np.float32)
    default, best = (psnr(hp.denoise(noisy, sigma, white=1.0, quality=q), clean) for q in ("default", "best"))
    assert best > default + 0.2


def test_a_fit_that_does_not_pay_is_left_out(monkeypatch):
    """The control: a prior fitted to something else is not believed, and blindly taken it would do harm."""
    strange = oriented_mixture(8)
    monkeypatch.setattr(evidence, "fit_to_images", lambda *_: strange)
    default, best = results(drawn())
    assert best > default - 0.02
    monkeypatch.setattr(evidence, "weigh", lambda *_: np.array([0.0, 1.0]))
    assert results(drawn())[1] < default - 0.1


def test_turns_go_to_those_that_are_believed():
    assert share_out(np.array([0.0, 1.0]), 3) == [1, 1, 1]
    assert share_out(np.array([0.5, 0.5]), 2) == [0, 1]
    assert share_out(np.array([0.7, 0.3]), 3) == [0, 0, 1]
    assert share_out(np.ones(1), 7) == [0] * 7


@pytest.mark.parametrize("seed", range(5))
def test_weights_on_the_simplex_are_those_of_a_search(seed):
    rng = np.random.default_rng(seed)
    half, linear = rng.standard_normal((3, 3)), rng.standard_normal(3)
    squares = half @ half.T
    weights = minimise_on_simplex(squares, linear)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    others = rng.dirichlet(np.ones(3), 2000)
    risks = np.einsum("ni,ij,nj->n", others, squares, others) + others @ linear
    assert weights @ squares @ weights + linear @ weights <= risks.min() + 1e-9


@pytest.mark.parametrize("what", ["constant", "scattered"])
def test_the_best_quality_takes_what_the_default_takes(what):
    """Nothing to remove, or no whole patch to fit to."""
    image = np.full((16, 16), 0.5)
    if what == "scattered":
        image += 0.1 * np.random.default_rng(0).standard_normal(image.shape)
        image[::4, ::4] = np.nan
    result = hp.denoise(image, 0.1, quality="best")
    np.testing.assert_array_equal(np.isnan(result), np.isnan(image))
    assert np.nanstd(result - 0.5) <= 0.5 * np.nanstd(image - 0.5) + 1e-6
