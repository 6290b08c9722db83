"""Noise that nobody told: the right model, the right numbers, and denoising with them."""

import numpy as np
import pytest
from noise_levels import noise_map
from skimage import data
from synthetic import landscape
from threadpoolctl import threadpool_info, threadpool_limits

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.noise import defects, estimation
from heatprior.noise.channel_noise import doubts, one_of_each

SHAPE = (192, 256)
RNG = np.random.default_rng(0)
CLEAN = (0.1 + 0.8 * landscape(SHAPE, RNG)).astype(np.float32)
NOISE = RNG.standard_normal(SHAPE)
HALVES = np.where(np.arange(SHAPE[1]) < 128, 0.05, 0.15) * np.ones((SHAPE[0], 1))
GAIN, OFFSET = 0.02, 0.001
LINE = np.sqrt(GAIN * CLEAN + OFFSET)


def noisy(sigma):
    return (CLEAN + sigma * NOISE).astype(np.float32)


@pytest.mark.parametrize(("sigma", "model"), [(0.1, "constant"), (0.03, "constant"), (LINE, "affine"), (HALVES, "map")])
def test_the_model_with_the_most_evidence_is_the_right_one(sigma, model):
    report = hp.estimate_noise(noisy(sigma))
    assert report.models == (model,)
    (channel,) = report.channels
    assert channel.evidence["constant"] == 0.0
    assert max(channel.evidence, key=channel.evidence.get) == model
    np.testing.assert_allclose(np.median(report.sigma / sigma), 1.0, atol=0.05)


def test_a_map_that_changes_abruptly_is_followed_and_its_error_is_honest():
    found = noise_map(noisy(HALVES))
    assert found.sigma.shape == found.stderr.shape == SHAPE
    away = np.abs(np.arange(SHAPE[1]) - 127.5) > 16
    errors = (found.sigma - HALVES)[:, away]
    assert np.abs(errors / HALVES[:, away]).mean() < 0.08
    spread = np.sqrt(np.square(errors / found.stderr[:, away]).mean())
    assert 0.6 < spread < 1.6  # one, if errors are as stated
    smooth = noise_map(noisy(0.1), window=40)
    assert smooth.stderr.mean() < noise_map(noisy(0.1), window=10).stderr.mean() / 2


def test_where_nothing_is_known_the_map_goes_on_from_its_neighbours():
    image = noisy(0.1)
    image[30:170, 60:220] = np.nan
    found = noise_map(image)
    np.testing.assert_allclose(found.sigma[30:170, 60:220].mean(), 0.1, rtol=0.1)
    assert found.stderr[100, 140] == pytest.approx(found.sigma[100, 140])  # unknown
    assert found.stderr[10, 30] < 0.1 * found.sigma[10, 30]


def test_gain_and_offset_are_found_within_their_errors():
    line = hp.estimate_noise(noisy(LINE), "affine", white=1.0).channels[0].affine
    assert line.gain == pytest.approx(GAIN, rel=0.1)
    assert abs(line.gain - GAIN) < 3 * line.gain_error
    assert abs(line.offset - OFFSET) < 3 * line.offset_error
    flat = hp.estimate_noise(noisy(0.1), "affine", white=1.0).channels[0].affine
    assert abs(flat.gain) < 3 * flat.gain_error


def test_an_image_of_one_brightness_has_no_line():
    report = hp.estimate_noise(np.full((64, 64), 0.5) + 0.05 * RNG.standard_normal((64, 64)), "map")
    assert report.models == ("map",)


@pytest.mark.parametrize(
    ("image", "kind", "why"),
    [
        (np.zeros((64, 64)), "affine", "there is no measurable noise"),
        (noisy(0.1)[:20, :20], "map", "too little of the image"),
        (0.5 + 0.001 * NOISE[:96, :96], "affine", "one brightness only"),
    ],
)
def test_a_model_that_cannot_be_told_gives_way_to_one_level_with_a_warning(image, kind, why):
    with pytest.warns(UserWarning, match=f"{kind} noise cannot be estimated: .*{why}.*; one level was used"):
        assert hp.estimate_noise(image, kind, white=1.0).models == ("constant",)


def test_a_map_never_goes_below_its_floor():
    image = CLEAN.copy()
    image[:, 128:] += (0.1 * NOISE[:, 128:]).astype(np.float32)
    image[:, :128] = np.linspace(0.2, 0.8, 128)
    found = noise_map(image)
    assert found.sigma.min() == pytest.approx(0.0004)
    at_floor = found.sigma < 0.000401
    np.testing.assert_allclose(found.stderr[at_floor], found.sigma[at_floor], rtol=0.01)


@pytest.mark.parametrize("sigma", [0.1, HALVES], ids=["constant", "map"])
def test_blind_denoising_is_nearly_as_good_as_with_the_truth(sigma):
    image = noisy(sigma)
    options = {"prior": "patch7", "steps": 1}
    blind, told = (psnr(hp.denoise(image, level, **options), CLEAN) for level in (None, sigma))
    assert blind > told - 0.25
    wrong = psnr(hp.denoise(image, np.asarray(sigma) / 2, **options), CLEAN)
    assert wrong < told - 0.25


def test_blind_denoising_of_photons_is_nearly_as_good_as_with_their_gain():
    photons = GAIN * np.random.default_rng(1).poisson(CLEAN / GAIN)
    image = (photons + np.sqrt(OFFSET) * NOISE).astype(np.float32)
    options = {"prior": "patch7", "steps": 1}
    told = psnr(hp.denoise(image, noise=hp.PoissonGaussian(GAIN, np.sqrt(OFFSET)), **options), CLEAN)
    assert psnr(hp.denoise(image, **options), CLEAN) > told - 0.25
    wrong = psnr(hp.denoise(image, noise=hp.PoissonGaussian(GAIN / 4, np.sqrt(OFFSET) / 4), **options), CLEAN)
    assert wrong < told - 0.25


def test_a_map_is_better_than_any_single_level_on_a_photograph():
    clean = (data.camera()[: SHAPE[0], 128 : 128 + SHAPE[1]] / 255).astype(np.float32)
    image = (clean + HALVES * NOISE).astype(np.float32)
    single = max(psnr(hp.denoise(image, level, steps=1), clean) for level in (0.05, 0.07, 0.09, 0.11, 0.15))
    assert psnr(hp.denoise(image, steps=1), clean) > single


@pytest.mark.parametrize("kind", ["constant", "affine", "map"])
def test_denoise_takes_what_estimate_noise_finds(kind):
    image = noisy(LINE)[:80, :100]
    report = hp.estimate_noise(image, kind)
    assert report.models == (kind,)
    assert report.sigma.shape == image.shape
    counts = report.channels[0].counts
    known = {"sigma": report.sigma} if counts is None else {"noise": counts.scale(report.white)}
    told, blind = hp.denoise(image, **known, steps=1), hp.denoise(image, noise=kind, steps=1)
    np.testing.assert_allclose(blind, told, atol=1e-5)  # a constant level comes by another table than a map of it


def test_channels_have_their_own_noise():
    sigmas = np.array([0.02, 0.05, 0.1])
    image = CLEAN[..., None] + sigmas * RNG.standard_normal((*SHAPE, 3))
    report = hp.estimate_noise(image, channel_axis=-1)
    assert report.models == ("constant",) * 3
    np.testing.assert_allclose(report.sigma[0, 0], sigmas, rtol=0.06)
    assert psnr(hp.denoise(image, channel_axis=-1, steps=1), CLEAN[..., None]) > 30


def test_white_noise_raises_no_doubt():
    assert doubts(noisy(0.05), 0.05, 7) == []
    assert doubts(np.rint(noisy(0.05) * 255) / 255, 0.05, 7) == []


def test_a_constant_image_is_not_called_clipped():
    image = np.full((32, 32), 0.3, np.float32)
    assert doubts(image, 0.0, 7) == []
    image[0, 0] = np.nan
    assert doubts(image, 0.0, 7) == []


def test_each_doubt_is_raised():
    assert doubts(np.clip(noisy(0.1) + 0.3, 0, 1), 0.1, 7) == []  # enough is left
    bright = np.clip(noisy(0.1) + 0.6, 0, 1)
    assert ["clipped" in doubt for doubt in doubts(bright, 0.1, 7)] == [True]
    coarse = np.rint(CLEAN * 16) / 16
    assert any("grey levels are 15.9 apart" in doubt for doubt in doubts(coarse, 0.001, 7, white=255))


def test_doubts_of_several_channels_are_told_once():
    found = ["3.1% of the pixels are clipped", "14.0% of the pixels are clipped", "grey levels are coarse"]
    assert one_of_each(found) == [found[0], found[2]]


def test_matrix_products_of_an_estimate_have_one_thread(monkeypatch):
    """Threads of the BLAS do not survive a fork, which may come at any time: the child would wait for them."""
    seen = []

    def look(original):
        def looking(*arguments):
            seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
            return original(*arguments)

        return looking

    for module, name in ((estimation, "describe"), (defects, "find_isolated"), (defects, "in_unit_range")):
        monkeypatch.setattr(module, name, look(getattr(module, name)))
    with threadpool_limits(2, user_api="blas"):
        hp.denoise(noisy(0.1), quality="fast")
    assert len(seen) >= 3
    assert set(seen) == {1}


def test_a_finer_prior_has_no_say_in_noise_that_grows_with_brightness():
    """It weighs dark and bright parts differently: dark frames of a microscope once lost half of their noise level."""
    growing = (CLEAN + np.sqrt(0.001 * CLEAN) * NOISE).astype(np.float32)
    usual, by_filters = (estimation.estimate_noise(growing, "affine", prior=p, white=1.0) for p in (None, "patch7"))
    assert usual.channels[0].affine == by_filters.channels[0].affine
    np.testing.assert_array_equal(usual.sigma, by_filters.sigma)
    usual, by_filters = (estimation.estimate_noise(growing, "constant", prior=p, white=1.0) for p in (None, "patch7"))
    assert usual.sigma[0, 0] != by_filters.sigma[0, 0]  # the control: of one level it has


def test_a_line_that_texture_may_have_drawn_is_not_above_the_level_of_the_finer_prior():
    clean = data.coins()[100:292, 100:292] / 255
    noisy = clean + 7 / 255 * np.random.default_rng(0).standard_normal(clean.shape)
    found = estimation.estimate_noise(noisy, white=1.0).channels[0]
    np.testing.assert_allclose(255 * found.level.sigma, 7.0, rtol=0.05)
    coarse = estimation.estimate_noise(noisy, "affine", white=1.0).channels[0]
    assert 255 * coarse.level.sigma > 7.5  # the control: asked for a line, it is that of the coarser prior
