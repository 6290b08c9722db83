"""Learn whether an image has noise, and at which level it is best denoised: `noise/decision.safetensors`.

    python -m paper.weights.noise_decision [--data DIR] [--ship]

For every picture of `noise_pictures` the gain in PSNR is measured at twelve white levels, half an octave apart, in
colours and in grey, where it is worth measuring: uphill from the true level until the gain falls. Gains are of the
mean squared error plus one squared grey level, so that what nobody sees counts for little, and losses end at six
decibels: a picture is spoilt once. Networks choose the level relative to what the flattest patches hold, from pictures
with noise: they maximise the expected gain, Σ_a π(a) gain_a, by Adam. A kernel classifier, in closed form, tells white
noise, whose level is that of the likelihood, and whether to denoise at the level chosen. What was measured is kept in
out/noise_decision, so that a run goes on where it was: it takes an hour of a core.

Nothing is chosen by the pictures it is reported on: `paper.evaluations.real_noise` leaves out every camera and every
scene in turn. How large and how many networks are, the noise added to features, the width and the ridge of the kernel,
and the weights of real pictures were chosen by PolyU with the tested camera left out.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
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
    COLOUR,
    FILE,
    GREY,
    OFFSETS,
    Description,
    Kernel,
    Learnt,
    Networks,
    describe,
    gaussians,
    middle_offset,
)
from paper import RECORDS
from paper.weights.noise_pictures import Item, Pictures
from paper.weights.picture_edits import Picture

MEASURED = RECORDS.parent / "out" / "noise_decision"
LEVELS = 2.0 * 2.0 ** (np.arange(12) / 2.0)  # of 255
UNSEEN = 1.0  # squared grey levels of error that nobody sees
SPOILT = -6.0  # dB: a larger loss counts as this
ENOUGH = 1.2  # dB below the best, where the way uphill ends
BRIGHTNESS = np.array([0.299, 0.587, 0.114])
AXES_OF: dict[str, int | None] = {COLOUR: -1, GREY: None}  # of channels

NETWORKS, HIDDEN, STEPS, BATCH = 3, 28, 1200, 256
RATE, FIRST_MOMENT, SECOND_MOMENT = 5e-3, 0.9, 0.99
FEATURE_NOISE = 0.15  # standard deviations
ENTROPY = 0.02  # dB for each nat
AXES, CENTRES, RIDGE = 64, 1200, 0.1
IMPORTANCE = (0.05, 6.0)  # of a picture to the classifier: the decibels at stake, between these
WHITE_WEIGHT = 10.0  # of a picture with white noise, of which there are few, to the classifier
WHITE_NOISE, MAYBE_WHITE = (
    ("plain",),
    ("white", "treated"),
)  # which pictures teach that noise is white, and which do not
FARTHEST = 4.0  # spreads of a feature
# Of the probability that denoising pays: with a quarter of all photographs and drawings, or a camera, left out in turn,
# one clean picture in fifty changes by a grey level or more.
THRESHOLDS = {COLOUR: 0.67, GREY: 0.74}
REAL_WEIGHT = 6.0  # of a real picture, over one that was made
LEVEL_ERROR = 0.5  # of the level, relative, as left-out cameras have it


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
            known[f"{name}_gains"] = measure_gains(own, truth, AXES_OF[name], is_clean=item.kind == "clean")
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


def measure_gains(noisy: Picture, clean: Picture, channel_axis: int | None, *, is_clean: bool) -> FloatArray:
    """dB at all levels: measured around the best one, by a monotone cubic between, falling on beyond."""
    left = _error(noisy, clean)
    gains: dict[int, float] = {}

    def gain(level: int) -> float:
        if level not in gains:
            told = float(LEVELS[level])
            denoised = hp.denoise(noisy, told, quality="fast", channel_axis=channel_axis, white=255.0)
            gains[level] = 10.0 * float(np.log10((left + UNSEEN) / (_error(denoised, clean) + UNSEEN)))
        return gains[level]

    last = len(LEVELS) - 1
    if is_clean:
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
    noisy = np.array([row.kind != "clean" for row in used])
    weights = np.array([REAL_WEIGHT if row.kind in ("real", "full") else 1.0 for row in used])
    gains = np.array([[gain_at(row, row.found.log_level + offset) for offset in OFFSETS] for row in used])
    level = _train(x[noisy], np.maximum(gains, SPOILT)[noisy], weights[noisy])
    chosen = [row.found.log_level + middle_offset(level.chances(one)) for row, one in zip(used, x, strict=True)]
    axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:AXES].T
    z = x @ axes
    is_white = np.array([row.noise in WHITE_NOISE for row in used])
    told = np.array([row.noise not in MAYBE_WHITE for row in used])
    levels = [row.found.log_white if white else own for row, white, own in zip(used, is_white, chosen, strict=True)]
    taken = np.array([gain_at(row, log_level) for row, log_level in zip(used, levels, strict=True)])
    importance = weights * np.clip(np.abs(taken), *IMPORTANCE)
    drawn = np.random.default_rng(0).choice(len(z), min(CENTRES, len(z)), replace=False, p=_parts(np.sqrt(importance)))
    centres = z[drawn]
    pays, first = _classify(z, centres, taken > 0.0, importance)
    white, second = _classify(z[told], centres, is_white[told], np.where(is_white[told], WHITE_WEIGHT, 1.0))
    kernel = Kernel(axes, centres, np.stack([pays, white], axis=1), np.array([first, second]))
    return Learnt(centre, spread, level, kernel, FARTHEST, THRESHOLDS[name], LEVEL_ERROR)


def _parts(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


def _classify(z: FloatArray, centres: FloatArray, label: NDArray[Any], weights: FloatArray) -> tuple[FloatArray, float]:
    """Weights (m,) of Gaussians and an offset: least squares of ±1, with a ridge in the norm of the kernel."""
    own, weights = gaussians(z, centres), weights / weights.mean()
    target = np.where(label, 1.0, -1.0)
    offset = float((weights * target).sum() / weights.sum())
    ridge = RIDGE * (gaussians(centres, centres) + 1e-6 * np.eye(len(centres)))
    normal = own.T @ (weights[:, None] * own) + ridge
    return np.linalg.solve(normal, own.T @ (weights * (target - offset))), offset


def _train(x: FloatArray, gains: FloatArray, weights: FloatArray) -> Networks:
    """Networks that maximise the expected gain (n, actions)."""
    trained = [_train_one(x, gains.astype(np.float32), weights / weights.sum(), seed) for seed in range(NETWORKS)]
    return Networks(*(np.array(part, np.float64) for part in zip(*trained, strict=True)))


def _train_one(x: FloatArray, gains: FloatArray, chance: FloatArray, seed: int) -> list[FloatArray]:
    """Hidden weights and biases, output weights and biases."""
    rng = np.random.default_rng(seed)
    sizes = (x.shape[1], HIDDEN, gains.shape[1])
    first, second = (rng.standard_normal((a, b)).astype(np.float32) / np.sqrt(a) for a, b in pairwise(sizes))
    parts = [first, np.zeros(sizes[1], np.float32), 0.1 * second, np.zeros(sizes[2], np.float32)]
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parts]
    for step in range(1, STEPS + 1):
        drawn = rng.choice(len(x), BATCH, p=chance)
        seen = x[drawn] + FEATURE_NOISE * rng.standard_normal((BATCH, sizes[0])).astype(np.float32)
        hidden = np.tanh(seen @ parts[0] + parts[1])
        logits = hidden @ parts[2] + parts[3]
        policy = np.exp(logits - logits.max(axis=1, keepdims=True))
        policy /= policy.sum(axis=1, keepdims=True)
        own, logs = gains[drawn], np.log(policy + 1e-9)
        expected, entropy = (policy * own).sum(axis=1, keepdims=True), -(policy * logs).sum(axis=1, keepdims=True)
        slope = (ENTROPY * policy * (logs + entropy) - policy * (own - expected)) / BATCH
        back = (slope @ parts[2].T) * (1.0 - hidden**2)
        rate = RATE * 0.5 * (1.0 + np.cos(np.pi * step / STEPS))
        for number, gradient in enumerate((seen.T @ back, back.sum(axis=0), hidden.T @ slope, slope.sum(axis=0))):
            mean, square = moments[number]
            mean += (1.0 - FIRST_MOMENT) * (gradient - mean)
            square += (1.0 - SECOND_MOMENT) * (gradient**2 - square)
            unbiased = np.sqrt(square / (1.0 - SECOND_MOMENT**step)) + 1e-6
            parts[number] -= rate * (mean / (1.0 - FIRST_MOMENT**step)) / unbiased
    return parts


def write(path: Path, learnt: dict[str, Learnt], counts: dict[str, int]) -> None:
    """In half precision, with a card."""
    tensors: dict[str, NDArray[Any]] = {}
    for name, own in learnt.items():
        tensors |= {f"{name}.centre": own.centre, f"{name}.spread": own.spread}
        for part, values in (("level", own.level), ("kernel", own.kernel)):
            tensors |= {f"{name}.{part}.{field}": value for field, value in values._asdict().items()}
    card = {
        "what": "whether an image has noise, and at which white level it is best denoised",
        "pictures": counts,
        "data": "SIDD validation, PolyU, CC15 (pairs with means of many shots), BSDS500 train, scikit-image, drawings",
        "made_by": "python -m paper.weights.noise_decision --ship",
        "farthest": FARTHEST,
        "threshold": THRESHOLDS,
        "error": dict.fromkeys(learnt, LEVEL_ERROR),
    }
    halves = {name: np.ascontiguousarray(values, np.float16) for name, values in tensors.items()}
    path.write_bytes(save(halves, metadata={"heatprior": json.dumps(card, sort_keys=True)}))


if __name__ == "__main__":
    main()
