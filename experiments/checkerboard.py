"""The paper's checkerboard: noise of 0.1 and 0.2 in squares, denoised without being told, on the first BSD68 images.

    python experiments/checkerboard.py [--data DIR]
    python experiments/checkerboard.py --validation --limit 4      a trial, on other images; writes nothing

For each method: mean PSNR of the blind result, of the same method given the true map, and given the single sigma that
is best for the image; and the error of the map inside the squares, half a patch and more from their edges. Writes
experiments/results/checkerboard.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from heatprior import bsds500, denoise, estimate_noise, load
from heatprior.arrays import FloatArray
from heatprior.images import read_grey
from heatprior.records import write_record
from heatprior.trials import FIRST_SEED, psnr

LOW, HIGH = 0.1, 0.2
SQUARE = 64  # pixels
EDGE = 8  # pixels at the edges of the squares that the error of the map leaves out
SINGLE = (0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17)
IMAGES = 10
METHODS = ("eb", "hqs")
RESULT = Path(__file__).parent / "results" / "checkerboard.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, default=IMAGES)
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    rows = [measured(number, path) for number, path in enumerate(tqdm(files, leave=False, disable=None))]
    result: dict[str, Any] = {"models": [row["model"] for row in rows]}
    print(f"{len(files)} images; models: {', '.join(sorted(set(result['models'])))}")
    for method in METHODS:
        told, blind, single = (np.mean([row[method][key] for row in rows]) for key in ("told", "blind", "single"))
        lost = [row[method]["told"] - row[method]["blind"] for row in rows]
        print(
            f"{method}: blind {blind:.2f} dB, true map {told:.2f}, best single sigma {single:.2f}; "
            f"most lost {max(lost):.2f}"
        )
        result[method] = {"blind": blind, "true_map": told, "best_single": single, "most_lost": max(lost)}
    for name in ("map_error", "map_bias"):
        result[name] = float(np.mean([row[name] for row in rows]))
    print(f"map: root mean square error {result['map_error']:.1%}, bias {result['map_bias']:+.1%}, inside the squares")
    if len(files) == IMAGES and not arguments.validation:
        about = {"images": IMAGES, "first_seed": FIRST_SEED, "sigmas": [LOW, HIGH], "square": SQUARE}
        write_record(RESULT, {**about, **result})
        print(f"wrote {RESULT}")


def measured(number: int, path: Path) -> dict[str, Any]:
    clean = read_grey(path) / np.float32(255)
    noise = np.random.default_rng(FIRST_SEED + number).standard_normal(clean.shape)
    rows, columns = np.indices(clean.shape)
    true = np.where((rows // SQUARE + columns // SQUARE) % 2, HIGH, LOW)
    noisy = (clean + true * noise).astype(np.float32)
    prior = load("patch7")
    report = estimate_noise(noisy, prior=prior, white=1.0)

    def quality(sigma: float | FloatArray, method: str) -> float:
        return psnr(denoise(noisy, sigma, prior=prior, method=method, white=1.0), clean)

    inside = np.all([(place % SQUARE >= EDGE) & (place % SQUARE < SQUARE - EDGE) for place in (rows, columns)], axis=0)
    error = (report.sigma / true - 1)[inside]
    result: dict[str, Any] = {
        "model": report.models[0],
        "map_error": float(np.sqrt(np.square(error).mean())),
        "map_bias": float(error.mean()),
    }
    for method in METHODS:
        single = max(quality(sigma, method) for sigma in SINGLE)
        result[method] = {
            "told": quality(true, method),
            "blind": quality(report.sigma, method),
            "single": single,
        }
    return result


if __name__ == "__main__":
    main()
