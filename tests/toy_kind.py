"""A kind of prior that the package does not know: independent Gaussian pixels, in 3×3 patches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from heatprior.priors.protocol import AdaptedPrior
from heatprior.priors.schedules import schedules_on
from heatprior.store import PriorFile, write_prior_file


@dataclass(frozen=True, eq=False)
class ToyPrior:
    """Pixels of one standard deviation around one mean."""

    mean: float
    spread: float
    card: dict = field(default_factory=dict)

    kind: ClassVar[str] = "toy"
    patch_shape: ClassVar[tuple[int, int]] = (3, 3)
    noise_likelihood: ClassVar[None] = None
    parameters: ClassVar[int] = 2

    def _variance(self, sigma):
        return self.spread**2 + np.square(sigma)[..., None]

    def log_prob(self, y, sigma):
        variance = self._variance(sigma)
        return -0.5 * ((y - self.mean) ** 2 / variance + np.log(2 * np.pi * variance)).sum(axis=-1)

    def score(self, y, sigma):
        return (self.mean - y) / self._variance(sigma)

    def sample(self, count, sigma=0.0, *, rng):
        return self.mean + np.sqrt(self._variance(np.broadcast_to(sigma, count))) * rng.standard_normal((count, 9))

    @property
    def schedules(self):
        return schedules_on(self.card)

    def denoise_step(self, image, noise, progress=None, **grid):
        return AdaptedPrior(self).denoise_step(image, noise, progress, **grid)

    def facts(self):
        return {"kind": self.kind, "pixels": f"{self.mean:g} ± {self.spread:g}"}

    def save(self, path):
        numbers = np.array([self.mean, self.spread])
        write_prior_file(Path(path), PriorFile(self.kind, {"numbers": numbers}, self.card))

    @classmethod
    def from_file(cls, contents):
        (numbers,) = contents.arrays("numbers")
        return cls(float(numbers[0]), float(numbers[1]), dict(contents.card))


def draw(prior, path, most=None):  # noqa: ARG001
    """Stands for a picture."""
    path.write_text(f"a picture of {prior.mean:g}")
