"""Training material that is made up: patches of a known prior, and small folders of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from examples import filter_bank
from heatprior.data.datasets import PatchSource
from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior


class DrawnFromPrior:
    """What a PatchSource is to a training, with the patches of a known prior, and with noise if asked for."""

    images = 1

    def __init__(self, prior: PatchPrior | GaussianMixturePrior, sigma: float = 0.0) -> None:
        self.prior = prior
        self.size = prior.size
        self.sigma = sigma

    def draw(self, count, rng):
        return self.prior.sample(count, self.sigma, rng=rng).T


def sparse_prior(components: int = 31) -> PatchPrior:
    """Eight filters on 3×3 with peaked, lopsided experts of many widths."""
    means = np.linspace(-1.0, 1.0, components)
    widths = np.geomspace(0.03, 0.3, 8)
    logits = [
        -((np.abs(means - (0.1 if j % 2 else -0.05)) / width) ** (0.7 if j % 3 else 1.0))
        for j, width in enumerate(widths)
    ]
    return PatchPrior(filter_bank(3, 8), Experts(np.stack(logits)))


def oriented_mixture(size: int = 4, **card: object) -> GaussianMixturePrior:
    """Three shapes at three contrasts: patches that are smooth along rows, along columns, and along both."""
    row, column = np.divmod(np.arange(size**2), size)
    basis, covariances = FilterBank.dct(size).matrix, []
    for along_rows, along_columns in [(0.2, 8.0), (8.0, 0.2), (4.0, 4.0)]:
        distance = np.abs(row - row[:, None]) / along_rows + np.abs(column - column[:, None]) / along_columns
        covariances.append(basis @ (0.02 * np.exp(-distance)) @ basis.T)
    return GaussianMixturePrior(np.array(covariances), np.zeros((3, 3)), np.array([0.05, 0.5, 5.0]), card)


def landscape(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Smooth hills and a cliff, float64 in [0, 1]."""
    hills = rng.standard_normal(shape).cumsum(axis=0).cumsum(axis=1)
    hills[:, shape[1] // 2 :] += np.ptp(hills) / 2
    return (hills - hills.min()) / np.ptp(hills)


def folder_of_images(folder: Path, count: int = 3, shape: tuple[int, int] = (40, 48), *, seed: int = 0) -> Path:
    """Grey PNGs of 8 bits."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(count):
        Image.fromarray(np.uint8(255 * landscape(shape, rng))).save(folder / f"{number:02}.png")
    return folder


def small_source(size=4):
    """Patches of three small landscapes."""
    rng = np.random.default_rng(0)
    return PatchSource([landscape((30, 40), rng) for _ in range(3)], size)


def finished(training, steps=10_000):
    """The training after so many more steps, or all."""
    for _ in training.run(steps):
        pass
    return training


def assert_same_bits(one, two):
    """Of two states of a training."""
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
