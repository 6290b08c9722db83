"""What `hp.restore` is compared with: total variation and a Wiener filter, with the weights that suit the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from paper.evaluations.inverse_trials import Trial, compared, first
from paper.evaluations.total_variation import total_variation

FIRST_WEIGHT = 12.0  # of total variation, over sigma²
FINE = 1.25  # factor between the weights tried
LEAP = 3  # steps of that factor at once, on the first two cases: where to begin
OWN = 2  # steps of that factor at once, for the weight of a single case
FLAT = 0.003  # dB, less than which is no improvement: interpolation has no best weight above zero
ROUNDS = 100
WIENER = np.geomspace(1e-3, 1e-1, 9)


def varied(trial: Trial, weight: float, rounds: int = ROUNDS) -> FloatArray:
    """Total variation with this weight, over sigma²."""
    return total_variation(trial.data, trial.measurement, weight * trial.sigma**2, first(trial), rounds)


def best_total_variation(trials: list[Trial]) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """What it gives with the weight that is best for the mean PSNR; and case by case, with the best for each too."""

    @cache
    def of(case: int, place: int) -> float:
        return compared(trials[case], varied(trials[case], FIRST_WEIGHT * FINE**place))

    def best(cases: range, begin: int, leap: int = 1) -> int:
        def mean(place: int) -> float:
            return float(np.mean([of(case, place) for case in cases]))

        found = begin
        for way in (leap, -leap):
            place = begin + way
            while mean(place) > mean(found) + FLAT:
                found, place = place, place + way
        return found

    everywhere = range(len(trials))
    place = best(everywhere, best(everywhere[:2], 0, LEAP))
    rows = [
        {
            "total variation": round(of(case, place), 3),
            "own weight": round(of(case, best(everywhere[case : case + 1], place, OWN)), 3),
        }
        for case in everywhere
    ]
    weight = FIRST_WEIGHT * FINE**place
    return {
        "psnr": round(float(np.mean([of(case, place) for case in everywhere])), 3),
        "weight over sigma²": round(weight, 3),
        "own weights": round(float(np.mean([row["own weight"] for row in rows])), 3),
        "first case": round(of(0, place), 3),
        "first case, three times the rounds": round(compared(trials[0], varied(trials[0], weight, 3 * ROUNDS)), 3),
    }, rows


def best_wiener(trials: list[Trial]) -> float:
    """Mean PSNR with the best of the ratios."""

    def filtered(trial: Trial, ratio: float) -> FloatArray:
        inverse = trial.measurement.inverse
        assert inverse is not None
        return inverse(trial.measurement.adjoint(trial.data), ratio)

    return max(float(np.mean([compared(t, filtered(t, ratio)) for t in trials])) for ratio in WIENER)


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time, the lesser of two repetitions: the first may compile."""
    times = []
    for _ in range(2):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return round(min(times), 2)
