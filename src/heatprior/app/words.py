"""The noise of a picture in plain words: how much, of which kind, how certain, and what is doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatprior.app.pictures import FrameNoise
from heatprior.display import format_full_scale, format_level
from heatprior.noise.channel_noise import NINETY

COLOURS = ("red", "green", "blue")


def describe_noise(noise: FrameNoise) -> dict[str, Any]:
    """A headline, sentences, doubts, and the numbers that controls begin with; noise beside what the picture uses."""
    report = noise.report
    white = report.brightest
    levels = [float(level) for level in noise.levels]
    sigma = float(np.sqrt(np.mean(np.square(levels))))
    part = sigma / white
    if report.is_none:
        headline, sentences = (
            "No noise found",
            ["The picture stays as it is. If you see noise, move the strength to the right."],
        )
    else:
        headline, sentences = f"σ ≈ {format_level(sigma)} of {format_full_scale(white)}", [_describe_amount(part)]
    if report.defects:
        sentences.append(f"{report.defects.describe_mending().capitalize()}.")
    if noise.from_part:
        sentences.append("From the middle of the picture; the whole is being looked at.")
    elif not report.is_none:
        sentences += _describe_details(noise, levels)
    return {
        "headline": headline,
        "sentences": sentences,
        "doubts": list(noise.doubts),
        "sigma": sigma,
        "white": white,
        "fromPart": noise.from_part,
        "models": list(report.models),
    }


def _describe_amount(part: float) -> str:
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


def _describe_details(noise: FrameNoise, levels: list[float]) -> list[str]:
    report = noise.report
    half = max(
        NINETY * float(np.hypot(channel.level.stderr, channel.model_error)) * report.white
        for channel in report.channels
    )
    low, high = max(0.0, min(levels) - half), max(levels) + half
    sentences = [f"With 90 % certainty between {format_level(low)} and {format_level(high)}."]
    if len(levels) == len(COLOURS):
        each = ", ".join(f"{name} {format_level(level)}" for name, level in zip(COLOURS, levels, strict=True))
        sentences.append(f"By colour: {each}.")
    kinds = set(report.models)
    if "camera" in kinds:
        sentences.append(
            "As a camera leaves it, smoothed and compressed; σ is that of the white noise that stands for it."
        )
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
        sentences.append(
            f"It varies from place to place, from {format_level(least)} to {format_level(most)}; see the noise map."
        )
    return sentences
