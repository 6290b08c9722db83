"""Learn whether an image has noise, and at which level it is best denoised: `noise/decision.safetensors`.

    python -m paper.weights.noise_decision [--data DIR] [--ship]

For every picture of `noise_pictures` the gain in PSNR is measured at twelve white levels, half an octave apart, in
colours and in grey, where it is worth measuring: uphill from the true level until the gain falls. Gains are of the
mean squared error plus one squared grey level, so that what nobody sees counts for little, and losses end at six
decibels: a picture is spoilt once. One kind of networks chooses the level relative to what the flattest patches hold,
from pictures with noise; the other whether to denoise at that level. Each maximises its expected gain, Σ_a π(a) gain_a,
by Adam. What was measured is kept in out/noise_decision, so that a run goes on where it was: it takes an hour or two.

Nothing is chosen by the pictures it is reported on: `paper.evaluations.real_noise` leaves out every camera and every
scene in turn. How large and how many networks are, the noise added to features, and the weights of real pictures were
chosen by PolyU with the tested camera left out.
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
from heatprior.noise.decision import COLOUR, FILE, GREY, OFFSETS, Learnt, Networks, describe
from paper import RECORDS
from paper.weights.noise_pictures import Item, Picture, Pictures

MEASURED = RECORDS.parent / "out" / "noise_decision"
LEVELS = 2.0 * 2.0 ** (np.arange(12) / 2.0)  # of 255
UNSEEN = 1.0  # squared grey levels of error that nobody sees
SPOILT = -6.0  # dB: a larger loss counts as this
ENOUGH = 1.2  # dB below the best, where the way uphill ends
BRIGHTNESS = np.array([0.299, 0.587, 0.114])

NETWORKS, HIDDEN, STEPS, BATCH = 3, 28, 1200, 256
RATE, FIRST_MOMENT, SECOND_MOMENT = 5e-3, 0.9, 0.99
FEATURE_NOISE = 0.15  # standard deviations
ENTROPY = 0.02  # dB for each nat
FARTHEST, THRESHOLD = 4.0, 0.3  # spreads of a feature; chance that denoising pays
REAL_WEIGHT = 6.0  # of a real picture, over one that was made
LEVEL_ERROR = 0.5  # of the level, relative, as left-out cameras have it


class Row(NamedTuple):
    """What was measured of a picture, in colours or in grey."""

    noise: str
    content: str
    kind: str
    features: FloatArray
    log_level: float  # of what is flattest, of 255
    gains: FloatArray  # dB at the LEVELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    parser.add_argument("--ship", action="store_true", help=f"write {FILE.name} into the package")
    arguments = parser.parse_args()
    rows = measure(Pictures(arguments.data).items())
    learnt = {name: learn(own) for name, own in rows.items()}
    target = FILE if arguments.ship else MEASURED / FILE.name
    write(target, learnt, {name: len(own) for name, own in rows.items()})
    print("wrote", target)


def measure(items: Any) -> dict[str, list[Row]]:
    """All rows, in colours and in grey; those that are kept are read."""
    rows: dict[str, list[Row]] = {COLOUR: [], GREY: []}
    MEASURED.mkdir(parents=True, exist_ok=True)
    for number, item in enumerate(items):
        file = MEASURED / f"{item.name}.npz"
        if not file.exists():
            _measure_item(item, file)
            print(number, item.name, flush=True)
        with np.load(file) as kept:
            for name, own in rows.items():
                if f"{name}_features" in kept:
                    values = (kept[f"{name}_{field}"] for field in ("features", "log_level", "gains"))
                    features, log_level, gains = values
                    own.append(Row(item.noise, item.content, item.kind, features, float(log_level), gains))
    return rows


def _measure_item(item: Item, file: Path) -> None:
    noisy, clean = item.make()
    greys = [np.rint(picture @ BRIGHTNESS).astype(np.uint8) for picture in (noisy, clean)]
    found: dict[str, Any] = {}
    for name, (own, truth), axis in ((COLOUR, (noisy, clean), -1), (GREY, greys, None)):
        features = look_at(own, axis)
        if features is not None:
            gains = measure_gains(own, truth, axis, is_clean=item.kind == "clean")
            found |= {f"{name}_features": features[0], f"{name}_log_level": features[1], f"{name}_gains": gains}
    np.savez(file, **found)


def look_at(picture: NDArray[np.uint8], channel_axis: int | None) -> tuple[FloatArray, float] | None:
    """Features as the library sees them, and the level of what is flattest, of 255."""
    full = enter(picture, channel_axis=channel_axis).full
    planes = picture[None] if channel_axis is None else np.moveaxis(picture, -1, 0)
    found = describe(planes.astype(np.float32) / np.float32(full))
    return None if found is None else (found.features, found.log_level + float(np.log(full / 255.0)))


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
        for level in (0, 2, 4, 6):
            if gain(level) < -8.0:
                break
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


def learn(rows: Sequence[Row], left_out: Callable[[Row], bool] = lambda _: False) -> Learnt:
    """What the rows teach, but for those that are left out and for the means of phones, which hold noise."""
    used = [row for row in rows if not left_out(row) and not (row.kind == "clean" and row.content.startswith("sidd"))]
    features = np.array([row.features for row in used])
    centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    x = np.clip((features - centre) / spread, -FARTHEST, FARTHEST).astype(np.float32)
    noisy = np.array([row.kind != "clean" for row in used])
    weights = np.array([REAL_WEIGHT if _is_real(row) else 1.0 for row in used])
    gains = np.array([[gain_at(row, row.log_level + offset) for offset in OFFSETS] for row in used])
    level = _train(x[noisy], np.maximum(gains, SPOILT)[noisy], weights[noisy])
    chosen = [_middle(level.chances(one)) for one in x]
    taken = [max(gain_at(row, row.log_level + offset), SPOILT) for row, offset in zip(used, chosen, strict=True)]
    pays = _train(x, np.stack([np.zeros(len(used)), taken], axis=1), weights)
    return Learnt(centre, spread, level, pays, FARTHEST, THRESHOLD, LEVEL_ERROR)


def _is_real(row: Row) -> bool:
    """Whether a camera took it as it is: a picture, or all of a mean of many shots."""
    return row.kind in ("real", "full")


def _middle(chances: FloatArray) -> float:
    return float(np.interp(0.5, np.cumsum(chances) - chances / 2.0, OFFSETS))


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
        for part, networks in (("level", own.level), ("leave", own.pays)):
            tensors |= {f"{name}.{part}.{field}": values for field, values in networks._asdict().items()}
    card = {
        "what": "whether an image has noise, and at which white level it is best denoised",
        "pictures": counts,
        "data": "SIDD validation, PolyU, CC15 (pairs with means of many shots), BSDS500 train, scikit-image, drawings",
        "made_by": "python -m paper.weights.noise_decision --ship",
        "farthest": FARTHEST,
        "threshold": THRESHOLD,
        "error": dict.fromkeys(learnt, LEVEL_ERROR),
    }
    halves = {name: np.ascontiguousarray(values, np.float16) for name, values in tensors.items()}
    path.write_bytes(save(halves, metadata={"heatprior": json.dumps(card, sort_keys=True)}))


if __name__ == "__main__":
    main()
