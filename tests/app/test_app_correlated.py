"""Noise that neighbouring pixels share, as photographs have it: told in words, and kept at any strength."""

import numpy as np
import pytest

import heatprior as hp
from heatprior.app.choices import Choice, strengthened
from heatprior.app.layers import Wanted, show
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.app.quick import Pace, careful_look, quick_look
from heatprior.app.screen import Region, halved
from heatprior.app.work import denoise_whole
from heatprior.noise.affine import Affine
from heatprior.noise.channel_noise import ChannelNoise
from heatprior.noise.estimation import NoiseReport
from heatprior.noise.levels import Estimate
from heatprior.noise.profiles import NoiseProfile, StationaryNoise
from heatprior.noise_model import NoiseSpectrum

SIGMA = 14.0
FREQUENCIES = np.fft.fftfreq(32)
SMOOTHED = NoiseSpectrum(np.exp(-12.0 * (FREQUENCIES[:, None] ** 2 + FREQUENCIES[None, :] ** 2)))


def opened(folder, *, stack=False):
    """A ramp with correlated noise, in 8 bits; its truth."""
    clean = np.add.outer(np.linspace(60, 180, 96), np.linspace(-20, 20, 112))
    noisy = clean + SIGMA * SMOOTHED.field(clean.shape, np.random.default_rng(5))
    pixels = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    np.save(folder / "shared.npy", np.stack([pixels, pixels[::-1]]) if stack else pixels)
    return OpenedPicture("p", folder / "shared.npy", "shared.npy"), clean


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A picture whose noise is known as it is."""
    picture, clean = opened(tmp_path_factory.mktemp("given"))
    level = SIGMA / 255
    noise = StationaryNoise(SMOOTHED, np.array([0.2, 0.8]), np.full(2, level**2), np.full(2, 1e-5))
    channel = ChannelNoise("correlated", Estimate(level, 1e-4), None, {}, np.full((96, 112), level), None, 1e-3, noise)
    report = NoiseReport(np.full((96, 112), SIGMA), (channel,), 255.0, (NoiseProfile((noise,)),))
    picture.noise[0] = FrameNoise(report, from_part=False)
    return picture, clean


def test_it_is_told_in_words(known):
    told = " ".join(noise_in_words(known[0].noise[0])["sentences"])
    assert "Neighbouring pixels share it (correlation 0.46" in told
    assert "The same everywhere" not in told


@pytest.mark.parametrize(("gain", "word"), [(0.01, "grows"), (-0.01, "falls")])
def test_noise_grows_or_falls_with_brightness_as_the_line_does(gain, word):
    line = Affine(gain, 0.02, 1e-3, 1e-4)
    channel = ChannelNoise("affine", Estimate(0.1, 1e-3), line, {}, np.full((8, 8), 0.1), None, 1e-3)
    report = NoiseReport(np.full((8, 8), 0.1), (channel,), 0.961084)
    told = noise_in_words(FrameNoise(report, from_part=False))
    assert any(sentence.startswith(f"It {word} with brightness") for sentence in told["sentences"])
    assert told["headline"].endswith("of 0.961")


def test_what_was_found_times_one_is_what_denoise_finds_itself(known):
    pixels = known[0].frame(0)
    told = strengthened(hp.estimate_noise(pixels, "correlated", white=255.0), 1.0)
    assert "noise" in told
    np.testing.assert_array_equal(
        hp.denoise(pixels, quality="fast", **told), hp.denoise(pixels, noise="correlated", white=255.0, quality="fast")
    )


def test_more_strength_keeps_the_correlation(known):
    """Nearer to the truth than white noise of the same strength, which takes what neighbours share for the image."""
    picture, clean = known
    result = denoise_whole(picture, Choice(strength=1.2, quality="fast"), lambda _: None)
    assert result["command"] is None  # it would need a file
    kept = picture.result(result["result"]).load()
    white = hp.denoise(picture.frame(0), 1.2 * float(picture.noise[0].levels[0]), white=255.0, quality="fast")
    assert np.std(kept - clean) < 0.8 * np.std(white - clean)


def test_a_careful_look_follows_a_quick_one_where_it_sees_more(known):
    picture, clean = known
    region = Region.within(picture.frame_shape, 16, 16, 64, 64, 1)
    wanted = Wanted("denoised", 0, region, Choice(), None)
    assert show(picture, wanted, Pace()).rough
    assert show(picture, wanted._replace(closeness="exact"), Pace()).rough
    assert not show(picture, wanted._replace(closeness="careful"), Pace()).rough
    assert not show(picture, wanted._replace(choice=Choice(sigma=10.0)), Pace()).rough
    truth = clean[region.reduced]
    looks = careful_look(picture, 0, region, Choice()), quick_look(picture, 0, region, Choice(), Pace())
    careful, quick = (np.std(look - truth) for look in looks)
    assert careful < 0.8 * quick


def test_means_of_pixels_that_share_their_noise_have_more_of_it(known):
    """The level of the reduced image is what is left there, not that of white noise, which is half as much."""
    from heatprior.app.quick import _level

    picture, clean = known
    noise, region = picture.noise[0], Region(0, 0, 112, 96, 2)
    left = float(np.std(halved(picture.frame(0)) - halved(clean)))
    level = float(np.mean(_level(noise, Choice(), region, None)))
    assert abs(level / left - 1.0) < 0.05  # a standard error of 1,300 correlated pixels
    assert left > 1.4 * np.std(picture.frame(0) - clean) / 2


def test_each_frame_of_a_stack_has_its_own_noise(tmp_path):
    picture, _ = opened(tmp_path, stack=True)
    result = denoise_whole(picture, Choice(strength=1.5, quality="fast"), lambda _: None)
    kept = picture.result(result["result"]).load()
    for number in range(2):
        report = hp.estimate_noise(picture.frame(number), white=255.0)
        told = {"white": 255.0, **strengthened(report, 1.5)}
        np.testing.assert_array_equal(kept[number], hp.denoise(picture.frame(number), quality="fast", **told))
