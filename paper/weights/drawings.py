"""Clean pictures that no camera took: diagrams and screens, and patterns that repeat."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from paper.weights.picture_edits import FILTERS, Picture, Rng, as_bytes, resize


def draw(rng: Rng, side: int = 256) -> Picture:
    """Shapes, lines and letters, as in diagrams and on screens."""
    ground = tuple(int(v) for v in rng.integers(0, 256, 3)) if rng.random() < 0.6 else (255, 255, 255)
    image = Image.new("RGB", (2 * side, 2 * side), ground)
    if rng.random() < 0.5:
        y, x = np.mgrid[: 2 * side, : 2 * side] / (2 * side)
        first, last = rng.integers(0, 256, 3), rng.integers(0, 256, 3)
        way = x * rng.random() + y * rng.random()
        way /= way.max()
        image = Image.fromarray(as_bytes(first + (last - first) * way[..., None]))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.integers(3, 60)):
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        ends = [int(v) for v in rng.integers(0, 2 * side, 4)]
        left, right = sorted(ends[::2])
        top, bottom = sorted(ends[1::2])
        box, shape = (left, top, right, bottom), rng.integers(5)
        if shape == 0:
            pen.rectangle(box, fill=colour if rng.random() < 0.6 else None, outline=colour)
        elif shape == 1:
            pen.ellipse(box, fill=colour if rng.random() < 0.6 else None, outline=colour)
        elif shape == 2:
            pen.line(ends, fill=colour, width=int(rng.integers(1, 9)))
        elif shape == 3:
            pen.polygon([int(v) for v in rng.integers(0, 2 * side, 2 * int(rng.integers(3, 7)))], fill=colour)
        else:
            for row in range(rng.integers(1, 12)):
                letters = "".join(chr(v) for v in rng.integers(33, 126, rng.integers(5, 40)))
                pen.text((left, top + 12 * row), letters, fill=colour)
    drawn = np.asarray(image)
    return resize(drawn, 0.5, FILTERS[1]) if rng.random() < 0.5 else drawn[:side, :side]


def draw_pattern(rng: Rng, side: int = 256) -> Picture:
    """Gratings, rings, chessboards, dots or cells, with hard or soft edges, as in fabrics, print and test charts."""
    y, x = np.mgrid[:side, :side] - rng.uniform(0, side, 2)[:, None, None]
    angle, period, kind = rng.uniform(0, np.pi), np.exp(rng.uniform(np.log(2.5), np.log(60.0))), rng.integers(5)
    across, along = (x * np.cos(angle) + y * np.sin(angle)) / period, (y * np.cos(angle) - x * np.sin(angle)) / period
    if kind == 4:
        places = rng.uniform(0, side, (max(8, int((side / max(period, 6.0)) ** 2)), 2))
        points = np.indices((side, side)).reshape(2, -1).T
        wave = rng.uniform(-1, 1, len(places))[cKDTree(places).query(points)[1]].reshape(side, side)
    else:
        waves = (
            np.sin(2 * np.pi * across),
            np.sin(2 * np.pi * np.hypot(across, along)),
            np.sin(2 * np.pi * across) * np.sin(2 * np.pi * along),
            np.cos(2 * np.pi * across) + np.cos(2 * np.pi * along) - rng.uniform(0, 1.5),
        )
        wave = np.clip(waves[kind] * (1.0 if rng.random() < 0.4 else rng.uniform(1.0, 30.0)), -1, 1)
    if rng.random() < 0.3:
        wave = gaussian_filter(wave, rng.uniform(0.4, 1.5))
    dark, bright = rng.uniform(0, 255, (2, 3)) if rng.random() < 0.5 else rng.uniform(0, 255, (2, 1))
    return as_bytes((dark + (bright - dark) * (wave[..., None] + 1) / 2) * np.ones(3))
