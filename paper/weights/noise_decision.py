"""Learn whether an image has noise, and at which level it is best denoised: `noise/decision.safetensors`.

    python -m paper.weights.noise_decision [--data DIR] [--ship]

For every picture of `noise_pictures` the gain in PSNR is measured at twelve white levels, half an octave apart, in
colours and in grey, where it is worth measuring: uphill from the true level until the gain falls. Gains are of the
mean squared error plus one squared grey level, so that what nobody sees counts for little. Least squares in closed
form, by Gaussians around pictures, tell the best level relative to what the flattest patches hold, from pictures with
noise; whether noise is white, so that its level is that of the likelihood; and whether to denoise. What was measured is
kept in out/noise_decision, so that a run goes on where it was: it takes an hour of a core.

`paper.evaluations.real_noise` leaves out of the fit every camera and every scene in turn. The constants below, such as
the width of the Gaussians and the weights of pictures, were chosen by what PolyU, CC15 and SIDD gain with the tested
camera left out, and thresholds by what clean photographs change: these sets took part in choosing them, if not in the
fit. BSD68 and the validation images did not.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from scipy.interpolate import PchipInterpolator

import heatprior as hp
from heatprior.arrays import FloatArray
from heatprior.border.entry import enter
from heatprior.files import replacing
from heatprior.noise.decision import (
    ARRAYS,
    COLOUR,
    FILE,
    GREY,
    NARROWNESS,
    NUMBERS,
    STRONGEST,
    Description,
    Learnt,
    describe,
    gaussians,
)
from paper import RECORDS
from paper.weights.noise_pictures import Item, Pictures
from paper.weights.picture_edits import Picture

MEASURED = RECORDS.parent / "out" / "noise_decision"
LEVELS = STRONGEST * 2.0 ** (np.arange(-11, 1) / 2.0)  # of 255
UNSEEN = 1.0  # squared grey levels of error that nobody sees
ENOUGH = 1.2  # dB below the best, where the way uphill ends
BRIGHTNESS = np.array([0.299, 0.587, 0.114])
AXES_OF: dict[str, int | None] = {COLOUR: -1, GREY: None}  # of channels

OFFSETS = np.linspace(-1.0, 3.0, 81)  # of the logarithms of the levels that are compared, from what is flattest
AS_GOOD = 0.1  # dB
AXES = 150
CENTRES = {COLOUR: 1200, GREY: 600}  # pictures with a Gaussian around them
RIDGE = 0.05
IMPORTANCE = (0.05, 6.0)  # of a noisy picture to the classifier: the decibels at stake, between these
CLEAN_IMPORTANCE = 3.0  # of a clean one
WHITE_WEIGHT = 10.0  # of a picture with white noise, of which there are few, to the classifier
WHITE_NOISE = ("plain", "faint")  # pictures that teach that noise is white; of MAYBE_WHITE it is not known
MAYBE_WHITE = ("white", "treated")
FARTHEST = 4.0  # spreads of a feature
# Of the probabilities that denoising pays, and that noise is white: with a quarter of all photographs and drawings, or
# a camera, left out in turn, one clean picture in fifty changes by a grey level or more, and one picture in two hundred
# is wrongly said to have white noise.
PAYS_THRESHOLDS = {COLOUR: 0.6, GREY: 0.83}
WHITE_THRESHOLDS = {COLOUR: 0.6, GREY: 0.45}
REAL_WEIGHTS = (20.0, 6.0)  # of a real picture over one that was made: to the level, and to whether it pays
LEVEL_ERROR = 0.5  # of the level, relative, as left-out cameras have it


REAL = ("real", "full")  # kinds of pictures with a camera's own noise


class Row(NamedTuple):
    """What was measured of a picture, in colours or in grey."""

    name: str
    noise: str
    content: str
    kind: str
    found: Description  # levels of 255
    gains: FloatArray  # dB at the LEVELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    parser.add_argument("--ship", action="store_true", help=f"write {FILE.name} into the package")
    arguments = parser.parse_args()
    rows = measure(Pictures(arguments.data).items())
    learnt = {name: learn(name, own) for name, own in rows.items()}
    target = FILE if arguments.ship else MEASURED / FILE.name
    write(target, learnt, {name: len(own) for name, own in rows.items()})
    print("wrote", target)


def measure(items: Any) -> dict[str, list[Row]]:
    """All rows, in colours and in grey; what is kept is read."""
    rows: dict[str, list[Row]] = {COLOUR: [], GREY: []}
    for number, item in enumerate(items):
        made, seen = (MEASURED / folder / f"{item.name}.npz" for folder in ("pictures", "features"))
        if not seen.exists():
            _keep(made, seen, item)
            print(number, item.name, flush=True)
        with np.load(seen) as kept:
            for name, own in rows.items():
                if f"{name}_gains" in kept:
                    found = Description(*(kept[f"{name}_{field}"] for field in Description._fields))
                    own.append(Row(item.name, item.noise, item.content, item.kind, found, kept[f"{name}_gains"]))
    return rows


def _keep(made: Path, seen: Path, item: Item) -> None:
    """Keep a picture with its gains, which are slow to measure, and what is seen of it, which may be looked at anew."""
    if made.exists():
        with np.load(made) as kept:
            known = dict(kept)
    else:
        noisy, clean = item.make()
        greys = [np.rint(picture @ BRIGHTNESS).astype(np.uint8) for picture in (noisy, clean)]
        known = {COLOUR: noisy, GREY: greys[0]}
        for name, (own, truth) in ((COLOUR, (noisy, clean)), (GREY, greys)):
            known[f"{name}_gains"] = measure_gains(own, truth, AXES_OF[name], item.kind)
        _save(made, known)
    found: dict[str, Any] = {}
    for name, axis in AXES_OF.items():
        look = look_at(known[name], axis)
        if look is not None:
            found |= {f"{name}_{field}": value for field, value in look._asdict().items()}
            found[f"{name}_gains"] = known[f"{name}_gains"]
    _save(seen, found)


def _save(file: Path, values: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary:
        np.savez_compressed(temporary, **values)


def look_at(picture: NDArray[np.uint8], channel_axis: int | None) -> Description | None:
    """What the library sees, levels of 255."""
    full = enter(picture, channel_axis=channel_axis).full
    planes = picture[None] if channel_axis is None else np.moveaxis(picture, -1, 0)
    found = describe(planes.astype(np.float32) / np.float32(full))
    shift = float(np.log(full / 255.0))
    return found and found._replace(log_level=found.log_level + shift, log_white=found.log_white + shift)


def measure_gains(noisy: Picture, clean: Picture, channel_axis: int | None, kind: str) -> FloatArray:
    """dB at all levels: measured around the best one, by a monotone cubic between, falling on beyond.

    Real pictures, which teach the level first, are denoised at the default quality, whose best levels are lower where
    noise is weak and higher where it is strong; the others at the fast one, in an eighth of the time.
    """
    left, quality = _error(noisy, clean), "default" if kind in REAL else "fast"
    gains: dict[int, float] = {}

    def gain(level: int) -> float:
        if level not in gains:
            told = float(LEVELS[level])
            denoised = hp.denoise(noisy, told, quality=quality, channel_axis=channel_axis, white=255.0)
            gains[level] = 10.0 * float(np.log10((left + UNSEEN) / (_error(denoised, clean) + UNSEEN)))
        return gains[level]

    last = len(LEVELS) - 1
    if kind == "clean":
        for level in (1, 4):
            gain(level)
    else:
        low = high = int(np.clip(round(2.0 * np.log2(1.6 * np.sqrt(left) / LEVELS[0])), 0, last))
        gain(low)
        while low > 0 and gains[low] > max(gains.values()) - ENOUGH:
            low = max(low - 2, 0)
            gain(low)
        while high < last and gains[high] > max(gains.values()) - ENOUGH:
            high = min(high + 2, last)
            gain(high)
        best = max(gains, key=gains.__getitem__)
        for level in (best - 1, best + 1):
            if 0 <= level <= last:
                gain(level)
    places = np.array(sorted(gains))
    values, numbers = np.array([gains[k] for k in places]), np.arange(last + 1.0)
    if len(places) == 1:
        return np.full(last + 1, values[0])
    curve = np.nan_to_num(PchipInterpolator(places, values, extrapolate=False)(numbers))
    slope = min((values[-1] - values[-2]) / (places[-1] - places[-2]), -0.5)
    curve = np.where(numbers > places[-1], values[-1] + slope * (numbers - places[-1]), curve)
    return np.where(numbers < places[0], values[0] * 2.0 ** (numbers - places[0]), curve)


def _error(picture: NDArray[Any], clean: NDArray[Any]) -> float:
    return float(np.mean((picture.astype(float) - clean.astype(float)) ** 2))


def gain_at(row: Row, log_level: float) -> float:
    """dB of a level that was not measured."""
    logs = np.log(LEVELS)
    if log_level < logs[0]:
        return float(row.gains[0] * np.exp(2.0 * (log_level - logs[0])))
    if log_level > logs[-1]:
        return float(row.gains[-1] + (row.gains[-1] - row.gains[-2]) / (logs[1] - logs[0]) * (log_level - logs[-1]))
    return float(np.interp(log_level, logs, row.gains))


def learn(name: str, rows: Sequence[Row], left_out: Callable[[Row], bool] = lambda _: False) -> Learnt:
    """What the rows teach, but for those that are left out and for the means of phones, which hold noise."""
    used = [row for row in rows if not left_out(row) and not (row.kind == "clean" and row.content.startswith("sidd"))]
    features = np.array([row.found.features for row in used])
    centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    x = np.clip((features - centre) / spread, -FARTHEST, FARTHEST).astype(np.float32)
    axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:AXES].T
    z = x @ axes
    noisy, is_white, told, real = np.array(
        [
            (row.kind != "clean", row.noise in WHITE_NOISE, row.noise not in MAYBE_WHITE, row.kind in REAL)
            for row in used
        ]
    ).T
    most = np.clip([row.gains.max() for row in used], *IMPORTANCE)
    at_stake = np.where(real, REAL_WEIGHTS[1], 1.0) * np.where(noisy, most, CLEAN_IMPORTANCE)
    chances = np.sqrt(at_stake) / np.sqrt(at_stake).sum()
    chosen = np.random.default_rng(0).choice(len(z), min(CENTRES[name], len(z)), replace=False, p=chances)
    narrowness = NARROWNESS / len(centre)
    own, between = gaussians(z, z[chosen], narrowness), gaussians(z[chosen], z[chosen], narrowness)

    def regress(target: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
        """Least squares, with a ridge in the norm of the kernel."""
        weights = weights / weights[weights > 0.0].mean()
        offset = float((weights * target).sum() / weights.sum())
        normal = own.T @ (weights[:, None] * own) + RIDGE * (between + 1e-6 * np.eye(len(between)))
        return np.linalg.solve(normal, own.T @ (weights * (target - offset))), offset

    offsets = np.array([best_offset(row) for row in used])
    level = regress(offsets, noisy * np.where(real, REAL_WEIGHTS[0], 1.0) * np.sqrt(np.sqrt(most)))
    white = regress(_signs(is_white), told * np.where(is_white, WHITE_WEIGHT, 1.0))
    logs = np.array([row.found.log_level for row in used]) + own @ level[0] + level[1]
    gains = np.array([gain_at(row, log) for row, log in zip(used, logs, strict=True)])
    pays = regress(_signs(noisy & (gains > 0.0)), at_stake)
    weights, constants = (np.array(values) for values in zip(level, white, pays, strict=True))
    thresholds = WHITE_THRESHOLDS[name], PAYS_THRESHOLDS[name]
    return Learnt(centre, spread, axes, z[chosen], weights, constants, FARTHEST, *thresholds, LEVEL_ERROR)


def best_offset(row: Row) -> float:
    """Log of the best level tried, less that of the flattest patches; in between, if several are as good."""
    most = np.log(LEVELS[-1]) - row.found.log_level
    tried = most >= OFFSETS
    offsets = OFFSETS[tried] if tried.any() else np.array([most])
    gains = np.array([gain_at(row, row.found.log_level + offset) for offset in offsets])
    chances = np.exp((gains - gains.max()) / AS_GOOD)
    return float(chances @ offsets / chances.sum())


def _signs(label: NDArray[Any]) -> FloatArray:
    return np.where(label, 1.0, -1.0)


def write(path: Path, learnt: dict[str, Learnt], counts: dict[str, int]) -> None:
    """In half precision, with a card."""
    tensors = {f"{name}.{part}": getattr(own, part) for name, own in learnt.items() for part in ARRAYS}
    card = {
        "what": "whether an image has noise, and at which white level it is best denoised",
        "pictures": counts,
        "data": "SIDD validation, PolyU, CC15 (pairs with means of shots), BSDS500, scikit-image, drawings, patterns",
        "made_by": "python -m paper.weights.noise_decision --ship",
        **{part: {name: getattr(own, part) for name, own in learnt.items()} for part in NUMBERS},
    }
    halves = {name: np.ascontiguousarray(values, np.float16) for name, values in tensors.items()}
    path.write_bytes(save(halves, metadata={"heatprior": json.dumps(card, sort_keys=True)}))


if __name__ == "__main__":
    main()
