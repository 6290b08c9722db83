"""Blind denoising: real pictures by networks that have not seen their camera, clean pictures, and white noise.

    python -m paper.evaluations.real_noise [--data DIR] [--every N] [--only PART ...]

`real`: PolyU, SIDD and CC15, PSNR on 8-bit RGB; the decision is learnt anew without the camera that is tested, in
whichever data set, or without the scene (four groups of scenes of SIDD). `clean`: by how much pictures without noise
change, by source: BSD68, the 32 validation images, scikit-image's and drawings; the means of many shots are in `real`.
`white`: BSD68 with white noise, blindly and told. `after`: the validation images with noise that was compressed,
reduced, or there before the gamma. Writes records/real_noise.json, part by part; what is learnt from comes from
`paper.weights.noise_decision`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import heatprior as hp
from heatprior.noise.decision import COLOUR, GREY
from heatprior.noise.estimation import estimate_noise
from paper import RECORDS
from paper.records import write_record
from paper.weights.drawings import draw
from paper.weights.noise_decision import Row, learn, measure
from paper.weights.noise_pictures import Pair, Pictures
from paper.weights.picture_edits import as_bytes, compress, read, resize

RESULT = RECORDS / "real_noise.json"
WORSE = -0.2  # dB
SEED = 1000
Image_ = NDArray[Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    arguments = parser.parse_args()
    record = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for part in arguments.only:
        record[part] = PARTS[part](arguments.data, arguments.every)
        print(part, json.dumps(record[part], indent=1)[:2000], flush=True)
        write_record(RESULT, {name: record[name] for name in PARTS if name in record})


def group_of(source: str) -> str:
    """What is left out together: a camera, or some scenes of phones."""
    dataset, _, own = source.partition("/")
    return f"sidd {int(own) % 4}" if dataset == "sidd" else own or dataset


def psnr(image: Image_, truth: Image_) -> float:
    """Of 8-bit images."""
    return float(10 * np.log10(255**2 / np.mean((image.astype(np.float64) - truth) ** 2)))


def change(image: Image_, other: Image_) -> float:
    """Root mean square, in grey levels."""
    return float(np.sqrt(np.mean((image.astype(np.float64) - other) ** 2)))


@contextmanager
def without(rows: dict[str, list[Row]], group: str) -> Iterator[None]:
    """Decide by what is learnt without a camera, or some scenes."""
    learnt = {
        name: learn(name, own, lambda row: group in (group_of(row.noise), group_of(row.content)))
        for name, own in rows.items()
    }
    with mock.patch("heatprior.noise.decision._learnt", return_value=learnt):
        yield


def judge_real(data: Path, every: int) -> dict[str, Any]:
    """PSNR of all real pairs, and what becomes of the means, each with its group left out."""
    pictures = Pictures(data)
    rows = measure(pictures.items())
    found: dict[str, dict[str, Any]] = {}
    for group in dict.fromkeys(group_of(pair.source) for pair in pictures.pairs):
        with without({COLOUR: rows[COLOUR], GREY: rows[GREY][:200]}, group):
            for pair in [pair for pair in pictures.pairs if group_of(pair.source) == group][::every]:
                found[pair.name] = _judge_pair(pair)
                print(pair.name, found[pair.name], flush=True)
    return {"sets": {name: _summary(found, name) for name in ("sidd", "polyu", "cc15")}, "pictures": found}


def _judge_pair(pair: Pair) -> dict[str, Any]:
    noisy, mean = read(pair.noisy), read(pair.mean)
    start = time.process_time()
    report = estimate_noise(noisy, channel_axis=-1)
    estimating = time.process_time() - start
    denoised = hp.denoise(noisy, channel_axis=-1)
    return {
        "source": pair.source,
        "noisy": round(psnr(noisy, mean), 2),
        "denoised": round(psnr(denoised, mean), 2),
        "found": str(report),
        "probability": round(report.probability, 3),
        "change_of_mean": round(change(hp.denoise(mean, channel_axis=-1), mean), 2),
        "cpu_seconds_estimating": round(estimating, 2),
        "cpu_seconds": round(time.process_time() - start - estimating, 2),
    }


def _summary(found: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    own = [row for key, row in found.items() if key.startswith(name)]
    noisy, denoised = (np.array([row[key] for row in own]) for key in ("noisy", "denoised"))
    return {
        "pictures": len(own),
        "noisy": round(float(noisy.mean()), 2),
        "denoised": round(float(denoised.mean()), 2),
        "gain": round(float((denoised - noisy).mean()), 2),
        "worse": int((denoised < noisy + WORSE).sum()),
        "unchanged": sum(row["found"] == "no noise found" for row in own),
        "means_changed": sum(row["change_of_mean"] > 1.0 for row in own),
    }


def judge_clean(data: Path, every: int) -> dict[str, Any]:
    """How many pictures without noise change by a grey level or more, by source."""
    pictures = Pictures(data)
    names = (data / "val32.txt").read_text().split()
    folder = data / "bsds500" / "val"
    sources: dict[str, list[Image_]] = {
        "BSD68": [np.asarray(Image.open(path)) for path in sorted((data / "bsd68").glob("*.png"))],
        "validation, colour": [read(folder / Path(name).with_suffix(".jpg").name) for name in names],
        "scikit-image": [read(path) for path in pictures.bundled],
        "drawings": [draw(np.random.default_rng(90000 + number)) for number in range(50)],
    }
    result = {}
    for name, own in sources.items():
        changes = []
        for picture in own[::every]:
            axis = -1 if picture.ndim == 3 else None
            changes.append(change(hp.denoise(picture, channel_axis=axis), picture))
        result[name] = {
            "pictures": len(changes),
            "changed": sum(c >= 1.0 for c in changes),
            "most": round(max(changes), 2),
        }
    return result


def judge_white(data: Path, every: int) -> dict[str, Any]:
    """BSD68, mean PSNR told and blind."""
    files = sorted((data / "bsd68").glob("*.png"))
    result = {}
    for sigma in (5, 15, 25, 50):
        values = []
        for number, path in list(enumerate(files))[::every]:
            clean = np.asarray(Image.open(path), np.float32) / 255
            noisy = clean + sigma / 255 * np.random.default_rng(SEED + number).standard_normal(clean.shape)
            told, blind = hp.denoise(noisy, sigma / 255), hp.denoise(noisy)
            values.append([psnr(255 * np.clip(one, 0, 1), 255 * clean) for one in (told, blind)])
        told_psnr, blind_psnr = np.mean(values, axis=0)
        most = float(np.max([told - blind for told, blind in values]))
        result[str(sigma)] = {"told": round(told_psnr, 2), "blind": round(blind_psnr, 2), "most_lost": round(most, 2)}
    return result


def judge_after(data: Path, every: int) -> dict[str, Any]:
    """Validation images in colour with noise of 15 grey levels, and what was done to them after: mean gain in dB."""
    folder = data / "bsds500" / "val"
    names = (data / "val32.txt").read_text().split()
    ways: dict[str, Callable[[Image_, Image_], tuple[Image_, Image_]]] = {
        **{f"JPEG {q}": lambda noisy, clean, q=q: (compress(noisy, q), clean) for q in (95, 85, 75, 50)},  # type: ignore[misc]
        **{f"reduced {f}": lambda noisy, clean, f=f: (resize(noisy, f), resize(clean, f)) for f in (0.5, 0.7)},  # type: ignore[misc]
        "gamma": lambda noisy, clean: tuple(as_bytes(255 * (one / 255.0) ** (1 / 1.6)) for one in (noisy, clean)),  # type: ignore[dict-item, return-value]
    }
    result = {}
    for way, alter in ways.items():
        gains = []
        for number, name in list(enumerate(names))[::every]:
            clean = read(folder / Path(name).with_suffix(".jpg").name)
            noise = np.random.default_rng(SEED + number).standard_normal(clean.shape)
            noisy, truth = alter(as_bytes(clean + 15.0 * noise), clean)
            gains.append(psnr(hp.denoise(noisy, channel_axis=-1), truth) - psnr(noisy, truth))
        result[way] = {"gain": round(float(np.mean(gains)), 2), "least": round(float(np.min(gains)), 2)}
    return result


PARTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "real": judge_real,
    "clean": judge_clean,
    "white": judge_white,
    "after": judge_after,
}

if __name__ == "__main__":
    main()
