"""How much more than its own pixels a block computes and reads, since cells of patches are computed whole: counted.

    python benchmarks/count_overlap.py

Blocks of 1,024 rows by some columns, and square ones, of an image of 65,536², for the prior of each quality and for one
step of `patch7`. Writes benchmarks/results/overlap.json; nothing is timed.
"""

from __future__ import annotations

from math import prod
from typing import cast

from measure import write_result

from heatprior.restoration.multiscale_pieces import MultiscaleWay, way_of
from heatprior.restoration.pieces import Way
from heatprior.zoo import load

SIDE = 65536
BLOCKS = ((1024, 1024), (1024, 8192), (1024, 16384), (4096, 4096), (8192, 8192))
WAYS = (("patch7", "eb", 1), ("fast7", "hqs", 1), ("fast7", "hqs", 3), ("tuned", "hqs", 1), ("tuned", "hqs", 3))


def overlaps(way: Way | MultiscaleWay, block: tuple[int, int]) -> dict[str, float]:
    """Pixels of the windows of all blocks over those of the image: the mean over steps, and what is read."""
    lengths: list[list[int]] = []  # of both axes: sums over blocks, for every step and for what is read
    for axis, length in enumerate(block):
        sums: list[int] = []
        for start in range(0, SIDE, length):
            wanted = [slice(0, 1), slice(0, 1)]
            wanted[axis] = slice(start, start + length)
            here = (wanted[0], wanted[1])
            ends = [window[axis].stop - window[axis].start for window in (*way.windows(here), way.reads(here))]
            sums = [a + b for a, b in zip(sums, ends, strict=True)] if sums else ends
        lengths.append(sums)
    areas = [prod(pair) / SIDE**2 for pair in zip(*lengths, strict=True)]
    steps = len(way.grids) if isinstance(way, Way) else len(way.ways[0].grids)
    return {"computed": round(sum(areas[:-1]) / steps, 3), "read": round(areas[-1], 3)}


def main() -> None:
    counted = {}
    for prior, method, scales in WAYS:
        way = way_of(load(prior), method, (SIDE, SIDE), scales=scales)
        at = "" if scales == 1 else f" {scales} scales"
        for block in BLOCKS:
            counted[f"{prior} {method}{at}, {block[0]}×{block[1]}"] = overlaps(cast("Way | MultiscaleWay", way), block)
    for name, found in counted.items():
        print(f"{name:38} computed {found['computed']:.3f}  read {found['read']:.3f}")
    write_result("overlap", {"side": SIDE, "over_own_pixels": counted})


if __name__ == "__main__":
    main()
