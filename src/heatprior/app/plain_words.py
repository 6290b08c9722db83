"""What was found of the noise, for people to read: how much, of which kind, how sure, and what is doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatprior.app.opened import FrameNoise
from heatprior.noise.profiles import NoiseProfile

NINETY = 1.645  # standard errors: the interval that holds the truth in 90 of 100 cases
STRONGER = 1.25  # times: what is called growing with brightness
COLOURS = ("red", "green", "blue")


def noise_in_words(noise: FrameNoise, full_scale: float | None = None) -> dict[str, Any]:
    """A headline, sentences, doubts, and the numbers that controls begin with.

    `full_scale` is what is told as white, without it what the estimate took for it.
    """
    report = noise.report
    white = report.white if full_scale is None else full_scale
    levels = [float(level) for level in noise.levels]
    sigma = float(np.sqrt(np.mean(np.square(levels))))
    part = sigma / white
    full = f"{white:.3g}" if white < 1000 else f"{white:.0f}"
    headline = f"σ ≈ {_short(sigma)} of {full}"
    sentences = [_amount(part)]
    if noise.from_part:
        sentences.append("From the middle of the picture; the whole is being looked at.")
    else:
        sentences += _details(noise, levels)
    return {
        "headline": headline,
        "sentences": sentences,
        "doubts": list(noise.doubts),
        "sigma": sigma,
        "white": white,
        "fromPart": noise.from_part,
        "models": list(report.models),
    }


def _amount(part: float) -> str:
    """How it looks to people, `part` being that of full scale."""
    for limit, words in (
        (0.002, "Hardly any noise."),
        (0.012, "A little noise, as in daylight."),
        (0.04, "Visible noise, as indoors."),
        (0.12, "Strong noise, as at night."),
    ):
        if part < limit:
            return words
    return "Very strong noise: fine detail is lost in it."


def _short(value: float) -> str:
    """Three digits, also if the last is 0, and no powers of ten in large numbers."""
    return f"{value:#.3g}".removesuffix(".") if value < 1000 else f"{value:.0f}"


def _details(noise: FrameNoise, levels: list[float]) -> list[str]:
    report = noise.report
    half = max(
        NINETY * float(np.hypot(channel.level.stderr, channel.model_error)) * report.white
        for channel in report.channels
    )
    low, high = max(0.0, min(levels) - half), max(levels) + half
    sentences = [f"With 90 % certainty between {_short(low)} and {_short(high)}."]
    if len(levels) == len(COLOURS):
        each = ", ".join(f"{name} {_short(level)}" for name, level in zip(COLOURS, levels, strict=True))
        sentences.append(f"By colour: {each}.")
    kinds = set(report.models)
    if report.profile is not None:
        sentences += _correlated(report.profile)
    if kinds == {"constant"}:
        sentences.append("The same everywhere: the noise map gives no reason to think otherwise.")
    if "affine" in kinds:
        lines = [channel.affine for channel in report.channels if channel.model == "affine" and channel.affine]
        grows = all(line.gain > 0 for line in lines)
        sentences.append(
            "It grows with brightness, as light counted by a camera does." if grows else "It falls with brightness."
        )
    if "map" in kinds:
        ends = [(float(np.min(channel.sigma)), float(np.max(channel.sigma))) for channel in report.channels]
        least, most = min(end[0] for end in ends) * report.white, max(end[1] for end in ends) * report.white
        sentences.append(f"It varies from place to place, from {_short(least)} to {_short(most)}; see the noise map.")
    return sentences


def _correlated(profile: NoiseProfile) -> list[str]:
    """How far neighbouring pixels share their noise, and whether it is stronger in the light: that of brightness."""
    noise = profile.channels[0]
    nearest = max(float(noise.spectrum.autocovariance[0, 1]), float(noise.spectrum.autocovariance[1, 0]))
    sentences = [
        f"Neighbouring pixels share it (correlation {nearest:.2f}, over {noise.spectrum.length:.1f} pixels), as after "
        "demosaicing or compression; that is taken into account."
    ]
    darkest, brightest = np.sqrt(noise.variances[[0, -1]])
    if brightest > STRONGER * darkest:
        sentences.append("It grows with brightness, as light counted by a camera does.")
    elif darkest > STRONGER * brightest:
        sentences.append("It is strongest in the dark, as where a camera brightens shadows.")
    return sentences
