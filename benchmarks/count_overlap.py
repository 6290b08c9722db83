"""How much more than its own pixels a block computes and reads, since cells of patches are computed whole: counted.

    python benchmarks/count_overlap.py

Blocks of 1,024 rows by some columns, and square ones, of an image of 65,536², for the prior of each quality and for one
step of `patch7`. Writes records/count_overlap.json; nothing is timed.
"""

from __future__ import annotations

from math import prod

from measure import write_result

from heatprior.border.gaps import Window
from heatprior.restoration.pipeline import MOST_SCALES, ONE_STEP, Pipeline
from heatprior.zoo import load

SIDE = 65536
BLOCKS = ((1024, 1024), (1024, 8192), (1024, 16384), (4096, 4096), (8192, 8192))
WAYS = (("patch7", "eb", 1), *((prior, "hqs", scales) for prior in ("fast7", "tuned") for scales in (1, MOST_SCALES)))


def overlaps(pipeline: Pipeline, block: tuple[int, int]) -> dict[str, float]:
    """Pixels of the windows of all blocks over those of the image: the mean over steps, and what is read."""
    lengths: list[list[int]] = []  # of both axes: sums over blocks, for every step and for what is read
    for axis, length in enumerate(block):
        sums: list[int] = []
        for start in range(0, SIDE, length):
            wanted = [slice(0, 1), slice(0, 1)]
            wanted[axis] = slice(start, start + length)
            here = (wanted[0], wanted[1])
            ends = [
                window[axis].stop - window[axis].start for window in (*windows(pipeline, here), pipeline.reads(here))
            ]
            sums = [a + b for a, b in zip(sums, ends, strict=True)] if sums else ends
        lengths.append(sums)
    areas = [prod(pair) / SIDE**2 for pair in zip(*lengths, strict=True)]
    steps = len(pipeline.scales[0].grids)
    return {"computed": round(sum(areas[:-1]) / steps, 3), "read": round(areas[-1], 3)}


def windows(pipeline: Pipeline, wanted: Window) -> list[Window]:
    """What is given to each step, at each scale."""
    needs = enumerate(zip(pipeline.scales, pipeline.needs(wanted), strict=True))
    return [w for number, (scale, need) in needs for w in scale.windows(need.fine, pipeline.merging_between(number))]


def main() -> None:
    counted = {}
    for prior, method, scales in WAYS:
        schedules = ONE_STEP if method == "eb" else None
        pipeline = Pipeline(load(prior), (SIDE, SIDE), schedules, most_scales=scales, margin=0 if schedules else None)
        at = "" if scales == 1 else f" {scales} scales"
        for block in BLOCKS:
            counted[f"{prior} {method}{at}, {block[0]}×{block[1]}"] = overlaps(pipeline, block)
    for name, found in counted.items():
        print(f"{name:38} computed {found['computed']:.3f}  read {found['read']:.3f}")
    write_result("count_overlap", {"side": SIDE, "over_own_pixels": counted})


if __name__ == "__main__":
    main()
