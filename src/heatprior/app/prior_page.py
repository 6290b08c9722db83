"""The page of the prior: filters, potentials at a noise level, scores, samples, a likelihood, as numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np

from heatprior.app.pictures import OpenedPicture, encode_bmp, quantise
from heatprior.app.work import within
from heatprior.arrays import FloatArray
from heatprior.border.pixels import in_unit_range
from heatprior.border.scale import full_scale
from heatprior.display import mosaic
from heatprior.errors import InvalidInputError
from heatprior.priors.patch import PatchPrior
from heatprior.zoo import load

SHOWN = ("patch7", "patch15", "fast7")  # those with filters
MOST_FILTERS = 112  # as many as the paper shows
POINTS, FINE_POINTS = 81, 241  # of a curve
GRID = (6, 10)  # samples, down and across
SAMPLE_SIDE, GAP = 35, 2  # pixels of a sample on the page, at most unless it has more, and between them
LARGEST_SIGMA = 0.5
LEVELS = np.geomspace(0.002, LARGEST_SIGMA, 33)  # at which the likelihood is computed
PATCHES = 2000  # of the picture, for the likelihood
GREEN = 1


@lru_cache(maxsize=4)
def load_shown(name: str) -> PatchPrior:
    """Load one of the shipped priors that have filters; nothing else is read."""
    if name not in SHOWN:
        raise InvalidInputError(f"{name[:40]!r} is not shown here; choose {', '.join(SHOWN)}")
    return cast("PatchPrior", load(name))


def parse_sigma(text: str) -> float:
    """Parse a noise level, full scale being 1."""
    return within({"sigma": text}, "sigma", 0.0, LARGEST_SIGMA, 0.0)


def describe_filters(name: str) -> dict[str, Any]:
    """Describe a prior: its filters by rising norm, their norms, and its facts."""
    prior = load_shown(name)
    order = _order(prior)
    facts = prior.facts()
    return {
        "name": name,
        "size": prior.size,
        "filters": np.round(prior.filters.matrix[order], 5).tolist(),
        "norms": np.round(prior.filters.norms[order], 5).tolist(),
        "count": prior.filters.count,
        "facts": {key: str(facts[key]) for key in ("patch size", "parameters")},
    }


def potentials(name: str, sigma: float) -> dict[str, Any]:
    """Compute −log psi_j over the responses of every filter shown: (filters, points)."""
    prior = load_shown(name)
    responses, grid = _make_grid(prior, POINTS)
    values = -prior.experts.log_density(grid, sigma * prior.filters.norms)[:, _order(prior)]
    return {"responses": responses.tolist(), "potentials": np.round(values.T, 3).tolist()}


def expert(name: str, place: int, sigma: float) -> dict[str, Any]:
    """Of one filter: the potential, and the score of its response, d/du log psi_j."""
    prior = load_shown(name)
    order = _order(prior)
    j = order[min(max(place, 0), len(order) - 1)]
    responses, grid = _make_grid(prior, FINE_POINTS)
    tau = sigma * prior.filters.norms
    return {
        "responses": np.round(responses, 5).tolist(),
        "potential": np.round(-prior.experts.log_density(grid, tau)[:, j], 4).tolist(),
        "score": np.round(prior.experts.first_derivative(grid, tau)[:, j], 4).tolist(),
    }


def samples(name: str, sigma: float, seed: int) -> bytes:
    """Exact draws of noisy patches side by side, as BMP; the same seed shows the same patches under more noise."""
    prior = load_shown(name)
    down, across = GRID
    drawn = prior.sample(down * across, sigma, rng=np.random.default_rng(seed)).reshape(-1, prior.size, prior.size)
    levels = quantise(drawn / np.maximum(np.abs(drawn).max(axis=(1, 2), keepdims=True), 1e-6), -1.0, 1.0)
    enlarged = np.kron(levels, np.ones((1, *(max(1, SAMPLE_SIDE // prior.size),) * 2), np.uint8))
    return encode_bmp(mosaic(enlarged, across, gap=GAP, filling=255))


def likelihood(name: str, picture: OpenedPicture, frame: int) -> dict[str, Any]:
    """Mean log-density of patches of a frame over the noise level, and where it is highest, in units of the image."""
    prior = load_shown(name)
    pixels = picture.frame(frame)
    grey = pixels[..., GREEN] if picture.image.colour else pixels
    white = full_scale(None, picture.values, picture.image.channel_axis)
    patches = _draw_patches(in_unit_range(grey, white), prior.size)
    values = np.array([float(prior.log_prob(patches, sigma).mean()) for sigma in LEVELS])
    best = int(values.argmax())
    highest, near = float(LEVELS[best]), slice(best - 1, best + 2)
    if 0 < best < len(LEVELS) - 1 and np.diff(values[near], 2) < 0:  # the top of the parabola through its neighbours
        bend, slope, _ = np.polyfit(np.log(LEVELS[near]), values[near], 2)
        highest = float(np.exp(-slope / (2.0 * bend)))
    return {
        "sigmas": (LEVELS * white).tolist(),
        "values": np.round(values, 4).tolist(),
        "best": highest * white,
        "white": white,
        "patches": len(patches),
        "channel": "green" if picture.image.colour else "grey",
    }


def _draw_patches(image: FloatArray, size: int) -> FloatArray:
    """Patches (n, b²) from all over an image (H, W), none with a missing pixel, at places that chance has drawn."""
    if min(image.shape) < size:
        raise InvalidInputError(f"the picture is smaller than a patch of {size}×{size} pixels; open a larger one")
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(0, length, PATCHES) for length in windows.shape[:2])
    patches = windows[rows, columns].reshape(PATCHES, -1).astype(np.float64)
    patches = patches[np.isfinite(patches).all(axis=1)]
    if len(patches) == 0:
        raise InvalidInputError("the picture has too many missing pixels; open another")
    return patches


def _make_grid(prior: PatchPrior, points: int) -> tuple[FloatArray, FloatArray]:
    """Responses from end to end (points,), and the same of every filter (points, J)."""
    responses = np.linspace(-prior.experts.reach, prior.experts.reach, points)
    return responses, np.repeat(responses[:, None], prior.filters.count, axis=1)


@lru_cache(maxsize=8)
def _order(prior: PatchPrior) -> list[int]:
    from heatprior.pictures.priors import filters_by_norm  # noqa: PLC0415 (it brings matplotlib)

    return filters_by_norm(prior, MOST_FILTERS)
