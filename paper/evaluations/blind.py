"""Denoising without being told the noise, where it is white, absent, or white and compressed: it must not suffer.

    python -m paper.evaluations.blind white|clean|jpeg [--data DIR] [--every 1] [--resume] [--validation]

white: PSNR on BSD68 with noise of 15, 25 and 50, blind and told sigma. clean: by how much images without noise are
changed, root mean square in grey levels. jpeg: noise of 20, rounded and saved as JPEG, PSNR before and after. Choices
are made on the validation images, with --validation, which writes nothing. Each part of
records/blind.json is replaced by itself, image by image, with the commit it was measured at; --resume keeps
the images that are there.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr, with_noise
from heatprior.images import read_grey
from heatprior.restoration.denoising import Settings, denoise, plan
from paper import RECORDS, bsds500
from paper.records import running_commit, write_record

WHITE_LEVELS = (15, 25, 50)  # of 255
JPEG_LEVEL, JPEG_QUALITIES = 20, (100, 90, 75)
RESULT = RECORDS / "blind.json"


def white(clean: FloatArray, number: int) -> Iterator[dict[str, Any]]:
    """At each level: PSNR blind and told."""
    for level in WHITE_LEVELS:
        noisy = with_noise(clean, number, level / 255)
        blind, _ = plan(noisy, None, Settings(white=1.0))
        told = denoise(noisy, level / 255, white=1.0)
        found = float(np.mean(blind.report.sigma)) * 255 if blind.report else 0.0
        yield {
            "case": str(level),
            "blind": psnr(blind.denoise(), clean),
            "told": psnr(told, clean),
            "model": blind.report.models[0] if blind.report else "",
            "sigma": found,
        }


def unspoilt(clean: FloatArray, number: int) -> Iterator[dict[str, Any]]:  # noqa: ARG001
    """By how much a clean image is changed."""
    image = np.rint(clean * 255).astype(np.uint8)
    result, _ = plan(image, None, Settings())
    change = float(np.sqrt(np.mean(np.square(result.denoise().astype(np.float64) - image))))
    yield {"case": "clean", "change": change, "model": result.report.models[0] if result.report else ""}


def jpeg(clean: FloatArray, number: int) -> Iterator[dict[str, Any]]:
    """PSNR of the compressed noisy image, and of that denoised."""
    noisy = np.rint(np.clip(with_noise(clean, number, JPEG_LEVEL / 255), 0.0, 1.0) * 255).astype(np.uint8)
    for quality in JPEG_QUALITIES:
        file = io.BytesIO()
        Image.fromarray(noisy).save(file, "JPEG", quality=quality)
        compressed = np.asarray(Image.open(file))
        result, _ = plan(compressed, None, Settings())
        before, after = (psnr(x.astype(np.float32) / 255, clean) for x in (compressed, result.denoise()))
        model = result.report.models[0] if result.report else ""
        yield {"case": f"quality {quality}", "compressed": before, "denoised": after, "model": model}


PARTS = {"white": white, "clean": unspoilt, "jpeg": jpeg}


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean of every figure, case by case; of changes the largest, too."""
    found: dict[str, dict[str, float]] = {}
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        numbers = [key for key in own[0] if isinstance(own[0][key], float)]
        found[case] = {key: round(float(np.mean([row[key] for row in own])), 3) for key in numbers}
        if "blind" in found[case]:
            found[case]["largest_loss"] = round(max(row["told"] - row["blind"] for row in own), 3)
        if "change" in found[case]:
            found[case]["largest_change"] = round(max(row["change"] for row in own), 3)
        if "denoised" in found[case]:
            found[case]["least_gain"] = round(min(row["denoised"] - row["compressed"] for row in own), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--every", type=int, default=1, help="of so many images one")
    parser.add_argument("--resume", action="store_true", help="keep the images that the record has")
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    arguments = parser.parse_args()
    part, recorded = arguments.part, not arguments.validation
    files = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    rows: list[dict[str, Any]] = recorded_parts().get(part, {}).get("rows", []) if arguments.resume and recorded else []
    known = {row["file"] for row in rows}
    for number, file in list(enumerate(files))[:: arguments.every]:
        if file.name in known:
            continue
        clean = (read_grey(file) / 255).astype(np.float32)
        for row in PARTS[part](clean, number):
            rows.append({"file": file.name, **row})
            print(*(f"{value:.3f}" if isinstance(value, float) else value for value in rows[-1].values()), flush=True)
        if recorded:
            images = len({row["file"] for row in rows})
            own = {"commit": running_commit(), "images": images, "mean": summary(rows), "rows": rows}
            write_record(RESULT, {"parts": {**recorded_parts(), part: own}})
    print(json.dumps(summary(rows), indent=1))


def recorded_parts() -> dict[str, Any]:
    """What was measured before."""
    return dict(json.loads(RESULT.read_text())["parts"]) if RESULT.exists() else {}


if __name__ == "__main__":
    main()
