"""An error bar on a count: how many cells there are, and how sure that is, given how noisy the picture is.

    python examples/count_cells.py

Cells are drawn, so that their number is known. They are counted in the denoised image, and in images that the clean one
might as well be (`posterior_samples`): the spread of those counts is what the noise leaves open.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, label

import heatprior as hp

SHAPE = (192, 192)
CELLS = 40
SIGMA = 0.15  # of full scale
THRESHOLD = 0.42  # brightness of a cell
SMALLEST = 12  # pixels
DRAWS = 12


def main() -> None:
    """Draw, denoise, count."""
    rng = np.random.default_rng(0)
    clean, count = draw_cells(rng)
    noisy = clean + SIGMA * rng.standard_normal(SHAPE)
    denoised = hp.denoise(noisy, SIGMA, prior="mixture")
    counts = [count_cells(draw) for draw in hp.posterior_samples(noisy, SIGMA, DRAWS, rng=rng)]
    found, clearly = count_cells(denoised), count_cells(clean)
    print(f"drawn {count} cells; counted {clearly} in the clean and {found} in the denoised image")
    print(f"with an error bar, from {DRAWS} draws: {np.mean(counts):.1f} ± {np.std(counts):.1f}")


def draw_cells(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Discs of different brightness on an uneven ground, some of them hardly to be seen, and how many there are."""
    ground = 0.25 + 0.03 * gaussian_filter(rng.standard_normal(SHAPE), 12) / 0.024
    rows, columns = np.indices(SHAPE)
    taken: list[tuple[float, float]] = []
    image = ground
    while len(taken) < CELLS:
        place = rng.uniform(8, SHAPE[0] - 8), rng.uniform(8, SHAPE[1] - 8)
        if all(np.hypot(place[0] - y, place[1] - x) > 16 for y, x in taken):
            taken.append(place)
            disc = np.hypot(rows - place[0], columns - place[1]) < rng.uniform(3.5, 6.0)
            image = np.where(disc, rng.uniform(0.4, 0.7), image)
    return gaussian_filter(image, 0.8), len(taken)


def count_cells(image: np.ndarray) -> int:
    """Bright regions that are large enough."""
    regions, _ = label(image > THRESHOLD)
    return int(np.count_nonzero(np.bincount(regions.ravel())[1:] >= SMALLEST))


if __name__ == "__main__":
    main()
