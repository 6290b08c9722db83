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

from tqdm import tqdm

from heatprior import load
from heatprior.data import bsds500
from heatprior.data.trials import FIRST_SEED
from heatprior.records import write_record
from heatprior.reproduction.checkerboard import METHODS, SQUARE, board, measured, summary
from heatprior.reproduction.published import CHECKERBOARD

IMAGES = 10
RESULT = Path(__file__).parent / "results" / "checkerboard.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the validation images; writes nothing")
    parser.add_argument("--limit", type=int, default=IMAGES)
    arguments = parser.parse_args()
    found = bsds500.validation(arguments.data) if arguments.validation else bsds500.bsd68(arguments.data)
    files = found[: arguments.limit]
    prior = load("patch7")
    numbered = enumerate(tqdm(files, leave=False, disable=None))
    result = summary([measured(board(number, path), prior) for number, path in numbered])
    print(f"{len(files)} images; models: {', '.join(sorted(set(result['models'])))}")
    for method in METHODS:
        one = result[method]
        print(
            f"{method}: blind {one['blind']:.2f} dB, true map {one['true_map']:.2f}, best single sigma "
            f"{one['best_single']:.2f}; most lost {one['most_lost']:.2f}"
        )
    print(f"map: root mean square error {result['map_error']:.1%}, bias {result['map_bias']:+.1%}, inside the squares")
    if len(files) == IMAGES and not arguments.validation:
        about = {"images": IMAGES, "first_seed": FIRST_SEED, "sigmas": CHECKERBOARD, "square": SQUARE}
        write_record(RESULT, {**about, **result})
        print(f"wrote {RESULT}")


if __name__ == "__main__":
    main()
