"""How strong the evidence for noise that grows with brightness is, where it does and where texture alone says so.

    python -m paper.evaluations.line_evidence [--data DIR]

Photographs of the test part of BSDS500, in grey, which nothing else of noise estimation is judged by, with white noise
and with that of photons. `CERTAIN` in noise/channel_noise.py lies above all that white noise reaches, and below most of
what photons do. A minute; writes records/line_evidence.json.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from heatprior.images import read_grey
from heatprior.noise.channel_noise import CERTAIN, channel_noise
from heatprior.zoo import load
from paper import RECORDS
from paper.records import write_record

EVERY = slice(2, None, 8)  # of the photographs
WHITE = (3, 5, 8, 12)  # levels, of 255
PEAKS = (30, 100, 300)  # photons at white


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEATPRIOR_DATA", ".")))
    files = sorted((parser.parse_args().data / "bsds500" / "test").glob("*.jpg"))[EVERY]
    priors = [load("patch7"), load("mixture")]
    found: dict[str, list[float]] = {}
    for number, path in enumerate(files):
        clean = read_grey(path).astype(np.float32) / np.float32(255)
        noisy = {
            f"white {level}": clean + level / 255 * np.random.default_rng(number).standard_normal(clean.shape)
            for level in WHITE
        } | {f"photons {peak}": np.random.default_rng(number).poisson(peak * clean) / peak for peak in PEAKS}
        for name, image in noisy.items():
            evidence = channel_noise(image.astype(np.float32), priors).evidence
            found.setdefault(name, []).append(evidence.get("affine", 0.0))
    record = {
        name: {
            "images": len(own),
            "least": round(min(own), 1),
            "median": round(float(np.median(own)), 1),
            "most": round(max(own), 1),
            "certain": sum(value > CERTAIN for value in own),
        }
        for name, own in found.items()
    }
    for name, row in record.items():
        print(name, row, flush=True)
    write_record(RECORDS / "line_evidence.json", {"certain": CERTAIN, "evidence": record})


if __name__ == "__main__":
    main()
