"""A piece of an image has the same bits as the whole: any prior on patches, any method, strides, maps and gaps."""

import numpy as np
import pytest
from pieces_of_images import noise_in, pieces
from pipelines import empirical_bayes, half_quadratic_splitting

from examples import gaussian_mixture, patch_prior
from heatprior.border.gaps import GAP_SCALES, REACH, UNIT, fill_missing
from heatprior.errors import InvalidInputError
from heatprior.kernels import patches as row_bands
from heatprior.kernels.patches import EVERY, Grid
from heatprior.noise_value import Noise
from heatprior.priors import mixture_step, protocol
from heatprior.priors.protocol import complete
from heatprior.restoration.pipeline import ONE_STEP, Pipeline
from heatprior.zoo import load

RNG = np.random.default_rng(0)
SHAPE = (75, 461)
METHODS = {"hqs": half_quadratic_splitting, "eb": empirical_bayes}
ON_GRIDS = {"hqs": {"sigmas": [0.1], "levels": [[1.0, 0.5]], "weights": [[0.3, 0.1]], "strides": [2, 3]}}


def pipeline_of(prior, method, shape, fillings=0):
    """At one scale."""
    if method == "eb":
        return Pipeline(prior, shape, ONE_STEP, most_scales=1, margin=0, fillings=fillings)
    return Pipeline(prior, shape, most_scales=1, fillings=fillings)


class Smoother:
    """A prior that knows nothing but log_prob, score and sample."""

    def log_prob(self, y, sigma):
        return -0.5 * ((y - 0.5) ** 2).sum(axis=-1) / (0.04 + np.square(sigma))

    def score(self, y, sigma):
        return (0.5 - y) / (0.04 + np.square(sigma))[..., None]

    def sample(self, count, sigma=0.0, *, rng):  # noqa: ARG002
        return rng.normal(0.5, 0.2, (count, 9))


def mixture():
    prior = gaussian_mixture(4, 3, (0.3, 1.5))
    prior.card.update(ON_GRIDS)
    return prior


PRIORS = {"patch": lambda: patch_prior(3, 8, 5), "mixture": mixture, "any": lambda: complete(Smoother())}


@pytest.fixture
def small_cells(monkeypatch):
    """Cells of a few rows and columns, so that a small image has several."""
    monkeypatch.setattr(row_bands, "BAND", 8)
    monkeypatch.setattr(mixture_step, "TILE", 24)
    monkeypatch.setattr(protocol, "TILE", 100)


def noisy(shape):
    image = RNG.normal(0.5, 0.2, shape).astype(np.float32)
    image[20:60, 150:260] = np.nan  # wider than is filled
    image[RNG.random(shape) < 0.01] = np.nan
    return image


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("is_map", [False, True], ids=["level", "map"])
def test_pieces_have_the_bits_of_the_whole(kind, method, is_map):
    image, prior = noisy(SHAPE), PRIORS[kind]()
    levels = RNG.uniform(0.05, 0.15, SHAPE).astype(np.float32) if is_map else None
    whole = METHODS[method](image, noise_in(levels, (slice(None), slice(None))), prior=prior)
    pipeline = pipeline_of(prior, method, SHAPE, 1)
    computed = []
    for wanted in pieces(SHAPE, 40, 170):
        here = pipeline.reads(wanted)
        computed.append(pipeline.scales[0].windows(wanted)[-1])
        np.testing.assert_array_equal(pipeline.denoise(image[here], noise_in(levels, here), wanted), whole[wanted])
    assert len(set(map(str, computed))) > 1  # a negative control of sorts: pieces are not simply the whole


@pytest.mark.usefixtures("small_cells")
def test_a_piece_that_mistakes_its_place_for_the_next_pixel_differs(monkeypatch):
    image, prior = noisy(SHAPE), mixture()
    whole = METHODS["hqs"](image, 0.1, prior=prior)
    of_piece = Grid.of_piece
    monkeypatch.setattr(Grid, "of_piece", lambda grid, shape, corner: of_piece(grid, shape, (corner[0], corner[1] + 1)))
    pipeline, wanted = pipeline_of(prior, "hqs", SHAPE, 1), (slice(40, 75), slice(170, 340))
    denoised = pipeline.denoise(image[pipeline.reads(wanted)], Noise.constant(0.1), wanted)
    # Much more than rounding, which differs between processors.
    assert np.abs(denoised - whole[wanted]).max() > 1e-3


@pytest.mark.usefixtures("small_cells")
def test_integers_need_no_more_than_their_cells():
    pipeline, wanted = pipeline_of(mixture(), "eb", (400, 400)), (slice(100, 150), slice(100, 150))
    rows, columns = pipeline.reads(wanted)
    assert (rows.start, rows.stop) == (96, 155)
    assert (columns.start, columns.stop) == (96, 171)


def test_priors_of_whole_images_are_refused():
    with pytest.raises(InvalidInputError, match="whole image at once"):
        pipeline_of(load("wavelet-density"), "hqs", (64, 64)).reads((slice(0, 8), slice(0, 8)))


def test_gaps_are_filled_from_no_further_than_is_said():
    image = RNG.normal(0.5, 0.2, (40 * UNIT, 40 * UNIT)).astype(np.float32)
    image[200:420, 200:430] = np.nan
    image[RNG.random(image.shape) < 0.2] = np.nan
    whole = image.copy()
    fill_missing(whole, GAP_SCALES)
    assert np.isfinite(whole).all()
    first = (16 * UNIT - REACH) // UNIT * UNIT
    part = image[first : 16 * UNIT + 20 + REACH, first : 16 * UNIT + 20 + REACH].copy()
    fill_missing(part, GAP_SCALES)
    inside = slice(16 * UNIT - first, 16 * UNIT - first + 20)
    np.testing.assert_array_equal(part[inside, inside], whole[16 * UNIT : 16 * UNIT + 20, 16 * UNIT : 16 * UNIT + 20])
    shifted = image[first + 1 : 16 * UNIT + 20 + REACH, first + 1 : 16 * UNIT + 20 + REACH].copy()
    fill_missing(shifted, GAP_SCALES)  # a piece that does not begin at a multiple of UNIT
    inside = slice(inside.start - 1, inside.stop - 1)
    assert not np.array_equal(shifted[inside, inside], whole[16 * UNIT : 16 * UNIT + 20, 16 * UNIT : 16 * UNIT + 20])


@pytest.mark.parametrize("grid", [EVERY, Grid(2, 1), Grid(3, 2)], ids=str)
def test_the_grid_of_a_piece_is_that_of_the_whole(grid):
    whole, corner, shape, size = (50, 61), (11, 20), (24, 30), 5
    piece = grid.of_piece(whole, corner)
    for own, all_of_them, first, length in zip(
        piece.places(shape, size), grid.places(whole, size), corner, shape, strict=True
    ):
        inside = (all_of_them >= first) & (all_of_them + size <= first + length)
        np.testing.assert_array_equal(own, all_of_them[inside] - first)
    for own, counts, first, length in zip(
        piece.counts(shape, size), grid.counts(whole, size), corner, shape, strict=True
    ):
        np.testing.assert_array_equal(own, counts[first : first + length])
