"""Make `fast7`: the parameters of `denoise7` with three steps of splitting, patches three pixels apart.

    python -m paper.weights.make_fast7

Of the eight steps of `denoise7` the first, the fourth and the seventh, at noise levels 1.6 times as high, since each
has more to remove: chosen on crops of validation images. Writes the prior among the shipped ones.
"""

from __future__ import annotations

from dataclasses import replace

from paper import load_patch_prior, prior_file

STEPS, FACTOR, STRIDE = (0, 3, 6), 1.6, 3


def main() -> None:
    prior = load_patch_prior("denoise7")
    slow = prior.schedules
    schedules = {
        "sigmas": list(slow.sigmas),
        "levels": [[round(FACTOR * levels[step], 4) for step in STEPS] for levels in slow.levels],
        "weights": [[weights[step] for step in STEPS] for weights in slow.weights],
        "strides": [STRIDE] * len(STEPS),
    }
    fast = replace(prior, card={**prior.card, "name": "fast7", "parameters of": "denoise7", "hqs": schedules})
    fast.save(prior_file("fast7"))


if __name__ == "__main__":
    main()
