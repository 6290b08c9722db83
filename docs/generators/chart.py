"""Quality against time, from the record of paper/evaluations/speed_quality.py."""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure

COLOURS = {
    "quality": "#ff7f0e",
    "patch": "#1f77b4",
    "mixture": "#d62728",
    "image": "#2ca02c",
    "peer": "#7f7f7f",
    "network": "#000000",
}
NAMES = {
    "quality": "`hp.denoise`, fast, default and best",
    "patch": "products of experts on patches",
    "mixture": "mixtures of Gaussians",
    "image": "priors of whole images",
    "peer": "others, measured",
    "network": "a network: its published weights' PSNR, its architecture's time",
}


def draw_quality_for_time(root: Path, path: Path) -> None:
    """PSNR on BSD68 over seconds per megapixel of one core, a dot for each prior and method."""
    record = json.loads((root / "records" / "speed_quality.json").read_text(encoding="utf-8"))
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes = figure.subplots()
    for family, colour in COLOURS.items():
        points = [point for point in record["points"] if point["family"] == family]
        seconds, psnr = ([point[key] for point in points] for key in ("seconds_per_megapixel", "psnr"))
        axes.scatter(seconds, psnr, color=colour, s=28, label=NAMES[family])
        for point, x, y in zip(points, seconds, psnr, strict=True):
            axes.annotate(point["name"], (x, y), (4, 3), textcoords="offset points", fontsize=7)
    axes.set(xscale="log", xlabel="seconds per megapixel, one core", ylabel="PSNR in dB")
    axes.set_title(f"BSD68, 255σ = {record['level']} (others: its first 15 images)", fontsize=10)
    axes.grid(visible=True, color="0.9")
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
