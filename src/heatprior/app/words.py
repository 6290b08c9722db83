"""The noise of a picture in plain words: how much, of which kind, how certain, and what is doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatprior.app.pictures import FrameNoise
from heatprior.display import format_full_scale, format_level
from heatprior.restoration.denoising import FLOOR

COLOURS = ("red", "green", "blue")
AMOUNTS = (  # how noise looks to people, up to which part of what is shown
    (0.002, "Hardly any noise."),
    (0.012, "A little noise, as in daylight."),
    (0.04, "Visible noise, as indoors."),
    (0.12, "Strong noise, as at night."),
    (float("inf"), "Very strong noise: fine detail is lost in it."),
)


def describe_noise(noise: FrameNoise, ends: tuple[float, float]) -> dict[str, Any]:
    """A headline, sentences, doubts, and the numbers that controls begin with; `ends` are shown as black and white."""
    report = noise.report
    span = ends[1] - ends[0]
    levels = [float(level) for level in noise.levels]
    sigma = float(np.sqrt(np.mean(np.square(levels))))
    if report.is_none:
        headline = "No noise found"
        sentences = ["The picture stays as it is. If you see noise, move the strength to the right."]
    else:
        headline = f"σ ≈ {format_level(sigma)} of {format_full_scale(span)}"
        sentences = [next(words for limit, words in AMOUNTS if sigma / span < limit)]
        if ends != (0.0, 255.0):
            sentences.append(f"The picture uses {format_level(ends[0])} to {format_level(ends[1])}.")
    if report.defects:
        sentences.append(f"{report.defects.describe_mending().capitalize()}.")
    if noise.from_part:
        sentences.append("From the middle of the picture; the rest is still being examined.")
    elif not report.is_none:
        sentences += _describe_details(noise, levels)
    return {
        "headline": headline,
        "sentences": sentences,
        "doubts": list(noise.doubts),
        "sigma": sigma,
        "floor": FLOOR * report.white,
    }


def _describe_details(noise: FrameNoise, levels: list[float]) -> list[str]:
    report = noise.report
    kinds = set(report.models)
    sentences = []
    if "camera" not in kinds:
        low, high = zip(*(channel.interval90(report.white) for channel in report.channels), strict=True)
        sentences.append(f"With 90 % certainty between {format_level(min(low))} and {format_level(max(high))}.")
    if len(levels) == len(COLOURS):
        each = ", ".join(f"{name} {format_level(level)}" for name, level in zip(COLOURS, levels, strict=True))
        sentences.append(f"By colour: {each}.")
    if "camera" in kinds:
        sentences.append("Smoothed and compressed by a camera; σ is the strength at which removing it works best.")
    if kinds == {"constant"}:
        sentences.append("The same everywhere, as far as the noise map shows.")
    if "affine" in kinds:
        sentences.append(_describe_counts(noise))
    if "map" in kinds:
        ends = [(float(np.min(channel.sigma)), float(np.max(channel.sigma))) for channel in report.channels]
        least, most = min(end[0] for end in ends) * report.white, max(end[1] for end in ends) * report.white
        sentences.append(
            f"It varies from place to place, from {format_level(least)} to {format_level(most)}; see the noise map."
        )
    return sentences


def _describe_counts(noise: FrameNoise) -> str:
    report = noise.report
    lines = [channel.affine for channel in report.channels if channel.model == "affine" and channel.affine]
    counts = [channel.counts for channel in report.channels if channel.counts]
    if any(line.gain <= 0 for line in lines):
        return "It falls with brightness."
    words = "It grows with brightness, as light counted by a camera does"
    if len(counts) != 1:
        return f"{words}."
    photons = (noise.brightness / report.white - counts[0].black) / counts[0].gain
    return f"{words}: about {max(photons, 0.0):.2g} photons per pixel in the mid-tones."
