"""`hp.adapt`: a mixture fitted to noisy images by likelihood alone."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from synthetic import oriented_mixture

import heatprior as hp
from heatprior.noise_value import Noise
from heatprior.priors.expectation_maximisation import log_likelihood
from heatprior.restoration.adaptation import STRENGTH, fit_to_images
from paper.weights.handmade import dct_prior

SIGMA = 0.05
PRIOR = oriented_mixture(3, name="oriented")


def texture(shape, seed=0, period=5.0):
    """Slanted stripes of slowly changing phase: nothing that the prior expects."""
    rng = np.random.default_rng(seed)
    row, column = np.meshgrid(*map(np.arange, shape), indexing="ij")
    phase = rng.uniform(0, 6) + np.cumsum(0.1 * rng.standard_normal(shape[1]))
    return 0.5 + 0.2 * np.sin(2 * np.pi * (row + column) / period + phase)


def noisy(clean, seed=0, sigma=SIGMA):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def patches_of(image, size=3):
    return np.lib.stride_tricks.sliding_window_view(image, (size, size)).reshape(-1, size**2)


def likelihood(prior, image, sigma=SIGMA):
    """Mean log-density of the noisy patches of an image."""
    return log_likelihood(prior, patches_of(image), sigma)


def same(one, other):
    return np.array_equal(one.covariances, other.covariances) and np.array_equal(one.log_weights, other.log_weights)


def test_held_out_noisy_patches_of_the_same_kind_become_more_likely():
    adapted_prior = hp.adapt(PRIOR, noisy(texture((80, 90))), SIGMA, white=1.0)
    held_out = noisy(texture((80, 90), seed=1), seed=1)
    assert likelihood(adapted_prior, held_out) > likelihood(PRIOR, held_out) + 0.5
    other = noisy(texture((80, 90), seed=1)[:, ::-1], seed=1)  # slanted the other way
    assert likelihood(adapted_prior, other) < likelihood(adapted_prior, held_out) - 0.5


def test_what_is_learnt_is_the_clean_image():
    """At no noise: the noise is part of the model, and not of what it learns."""
    prior = hp.adapt(PRIOR, noisy(texture((80, 90))), SIGMA, white=1.0)
    blind = hp.adapt(PRIOR, noisy(texture((80, 90))), 1e-4, white=1.0)  # takes the noise for texture
    clean = texture((80, 90), seed=1)
    assert likelihood(prior, clean, 0.01) > likelihood(PRIOR, clean, 0.01) + 0.3
    assert likelihood(prior, clean, 0.01) > likelihood(blind, clean, 0.01) + 0.3


def test_patches_of_the_prior_itself_teach_next_to_nothing():
    rng = np.random.default_rng(0)
    images = [PRIOR.sample(1, SIGMA, rng=rng).reshape(3, 3).astype(np.float32) for _ in range(600)]
    prior = fit_to_images(PRIOR, [(image, Noise.constant(SIGMA)) for image in images])
    held_out = PRIOR.sample(4000, SIGMA, rng=rng)
    change = log_likelihood(prior, held_out, SIGMA) - log_likelihood(PRIOR, held_out, SIGMA)
    assert abs(change) < 0.1
    assert change < 0.02  # nobody knows better than the truth


def test_few_patches_change_little():
    image = noisy(texture((80, 90)))
    changes = [
        np.abs(hp.adapt(PRIOR, image[:side, :side], SIGMA).covariances - PRIOR.covariances).max()
        for side in (4, 20, 80)
    ]
    size = np.abs(patches_of(image)).max() ** 2  # of what one patch can add to a covariance, at the least contrast
    assert changes[0] < size / PRIOR.contrasts.min() * 4 / STRENGTH  # one patch, and the prior counts as STRENGTH / 2²
    assert changes[0] < changes[1] < changes[2]


def test_missing_pixels_do_not_count():
    image = noisy(texture((60, 60)))
    image[20:40, 10:30] = np.nan
    prior = hp.adapt(PRIOR, image, SIGMA)
    assert np.isfinite(prior.covariances).all()
    cut = image.copy()
    cut[:, 45:] = np.nan
    assert same(hp.adapt(PRIOR, cut, SIGMA), hp.adapt(PRIOR, image[:, :45], SIGMA))
    assert not same(hp.adapt(PRIOR, cut, SIGMA), prior)


def test_the_image_given_is_not_changed():
    image = noisy(texture((30, 30))).astype(np.float32)
    image[3, 3] = np.nan
    before = image.copy()
    hp.adapt(PRIOR, image, SIGMA)
    np.testing.assert_array_equal(image, before)


def test_a_map_of_one_level_is_that_level():
    image = noisy(texture((40, 50)))
    assert same(hp.adapt(PRIOR, image, np.full(image.shape, SIGMA)), hp.adapt(PRIOR, image, SIGMA))


def test_a_map_of_noise_is_taken_patch_by_patch():
    sigma = np.where(np.arange(90) < 45, 0.02, 0.3) * np.ones((80, 1))
    image = texture((80, 90)) + sigma * np.random.default_rng(0).standard_normal((80, 90))
    held_out = noisy(texture((80, 90), seed=1), seed=1)
    right, wrong = hp.adapt(PRIOR, image, sigma), hp.adapt(PRIOR, image, sigma[:, ::-1])
    assert likelihood(right, held_out) > likelihood(PRIOR, held_out) + 0.3
    assert likelihood(right, held_out) > likelihood(wrong, held_out) + 0.3


def test_units_types_and_channels_do_not_matter():
    grey = np.clip(np.rint(255 * noisy(texture((40, 50)))), 0, 255).astype(np.uint8)
    expected = hp.adapt(PRIOR, grey / np.float32(255), SIGMA, white=1.0)
    for image, sigma, options in [
        (grey, 255 * SIGMA, {"white": 255}),
        (grey * np.float32(4), 4 * 255 * SIGMA, {"white": 4 * 255}),
        (grey[None], 255 * SIGMA, {"white": 255}),
    ]:
        prior = hp.adapt(PRIOR, image, sigma, **options)
        np.testing.assert_allclose(prior.covariances, expected.covariances, rtol=1e-3, atol=1e-6)
    three = hp.adapt(PRIOR, np.dstack([grey] * 3), 255 * SIGMA, channel_axis=-1, white=255)  # thrice as many patches
    held_out = noisy(texture((80, 90), seed=1), seed=1)
    assert likelihood(three, held_out) > likelihood(expected, held_out)


def test_it_is_the_same_every_time_and_keeps_the_card_and_the_contrasts():
    image = noisy(texture((60, 60)))
    one = hp.adapt(PRIOR, image, SIGMA)
    assert same(one, hp.adapt(PRIOR, image, SIGMA))
    assert one.card == PRIOR.card
    np.testing.assert_array_equal(one.contrasts, PRIOR.contrasts)


def test_a_large_image_is_seen_in_part_and_teaches_as_much():
    image = noisy(texture((300, 310)))
    held_out = noisy(texture((80, 90), seed=1), seed=1)
    assert likelihood(hp.adapt(PRIOR, image, SIGMA), held_out) > likelihood(PRIOR, held_out) + 0.5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Noisy images of one kind, of several types."""
    images = [noisy(texture((40, 44), seed=number), seed=number) for number in range(3)]
    Image.fromarray(np.uint8(np.clip(255 * images[0], 0, 255))).save(tmp_path / "a.png")
    Image.fromarray(np.dstack([np.uint8(np.clip(255 * images[1], 0, 255))] * 3)).save(tmp_path / "b.png")
    Image.fromarray(np.uint8(np.clip(255 * images[2], 0, 255))).save(tmp_path / "c.png")
    (tmp_path / "notes.txt").write_text("no image\n")
    return tmp_path


def test_a_folder_of_images_of_one_kind(folder: Path):
    held_out = noisy(texture((80, 90), seed=5), seed=5)
    together = hp.adapt(PRIOR, folder, 255 * SIGMA)
    assert same(together, hp.adapt(PRIOR, str(folder), 255 * SIGMA))
    one = hp.adapt(PRIOR, np.asarray(Image.open(folder / "a.png")), 255 * SIGMA)
    assert likelihood(together, held_out) > likelihood(one, held_out) > likelihood(PRIOR, held_out)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"prior": dct_prior(3)}, "a PatchPrior cannot be adapted; give a mixture, such as 'mixture'"),
        ({"prior": "patch7"}, "a PatchPrior cannot be adapted"),
        ({"image": np.zeros((2, 50))}, "no patch of 3×3 valid pixels to adapt to; give a larger one"),
        ({"image": np.full((20, 20), np.nan)}, "no patch of 3×3 valid pixels"),
        ({"image": "nowhere"}, "nowhere is no folder with images"),
        ({"image": Path(__file__)}, "is no folder with images"),
        ({"sigma": 0.0}, "expected a positive number"),
        ({"sigma": np.full((3, 3), 0.1)}, "sigma has shape"),
        ({"channel_axis": 5}, "channel_axis is 5"),
    ],
)
def test_what_cannot_be_adapted_is_refused_in_one_line(arguments, remedy):
    options = {"prior": PRIOR, "image": np.zeros((20, 20)), "sigma": SIGMA} | arguments
    with pytest.raises(hp.InvalidInputError) as refusal:
        hp.adapt(**options)
    assert remedy in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_folder_without_images_is_refused(tmp_path: Path):
    with pytest.raises(hp.InvalidInputError, match="is no folder with images; give one with noisy images of one kind"):
        hp.adapt(PRIOR, tmp_path, SIGMA)
