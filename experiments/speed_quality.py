"""Speed against quality: seconds per megapixel on one core and PSNR at 255 sigma = 25, of every method measured.

    python experiments/speed_quality.py

Measures nothing: it gathers what is in experiments/results and benchmarks/results, of which missing records are told
and left out. Times are those of the benchmarks, which are taken in one run with nothing else going on; where there is
none, the median over the images. Writes experiments/results/speed_quality.json and speed_quality.png.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from heatprior.pictures.figures import COLOURS, save_figure
from heatprior.records import write_record

LEVEL = 25  # 255 sigma
ALL = 68  # images
HERE = Path(__file__).parent
RESULTS, BENCHMARKS = HERE / "results", HERE.parent / "benchmarks" / "results"
BLACK, BLUE, GREEN, ORANGE, RED = COLOURS
MIXTURES = ("mixture", "epll")
METHODS = {"eb": "one step", "hqs": "HQS"}
# Of the peers: their names in experiments/peers.py, in the benchmark, and in the picture.
PEERS = {
    "bm3d": ("bm3d", "BM3D"),
    "scikit-image NLM": ("scikit-image NLM (fast)", "NLM (scikit-image)"),
    "scikit-image TV": ("scikit-image TV (Chambolle)", "TV (scikit-image)"),
    "scikit-image wavelet, cycle-spun": ("scikit-image wavelet, 4×4 cycle-spun", "wavelet, cycle-spun (scikit-image)"),
    "OpenCV NLM": ("OpenCV NLM, 8 bits", "NLM (OpenCV)"),
}
# Convolutional networks, by the same protocol on all images, one core of another machine: PSNR, s/Mpx.
ELSEWHERE = {"DnCNN-S": (29.23, 13.0), "FFDNet": (29.20, 2.0)}


class Family(NamedTuple):
    """How the points of one kind look, and what the legend says of them."""

    legend: str
    colour: str
    marker: str
    hollow: bool = False


FAMILIES = {
    "mixture": Family("heatprior, mixtures of Gaussians", RED, "o"),
    "patch": Family("heatprior, patch priors", BLUE, "^"),
    "image": Family("heatprior, priors of whole images", GREEN, "v"),
    "peer": Family("other methods", BLACK, "s"),
    "elsewhere": Family("networks, measured elsewhere", BLACK, "D", hollow=True),
}


class Point(NamedTuple):
    """One method."""

    name: str
    family: str
    psnr: float
    seconds_per_megapixel: float
    images: int


def main() -> None:
    benchmarks: dict[str, Any] = {}
    for name in ("denoising", "mixture"):
        benchmarks |= record(BENCHMARKS / f"{name}.json").get("one_core", {})
    points = [*own(benchmarks), *mixtures(benchmarks), *peers(benchmarks)]
    points += [Point(name, "elsewhere", *figures, ALL) for name, figures in ELSEWHERE.items()]
    points.sort(key=lambda point: point.seconds_per_megapixel)
    for point in points:
        print(f"{point.name:36} {point.seconds_per_megapixel:8.3f} s/Mpx {point.psnr:7.2f} dB, {point.images} images")
    write_record(RESULTS / "speed_quality.json", {"level": LEVEL, "points": [point._asdict() for point in points]})
    save_figure(figure(points), RESULTS / "speed_quality.png")
    print(f"wrote {RESULTS / 'speed_quality.png'}")


def record(path: Path) -> dict[str, Any]:
    """What was measured, or nothing."""
    if not path.is_file():
        print(f"there is no {path.parent.parent.name}/{path.parent.name}/{path.name} yet: left out")
        return {}
    contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return contents


def own(benchmarks: dict[str, Any]) -> Iterator[Point]:
    """Table 1 and the priors of whole images."""
    for name, family in (("table1", "patch"), ("whole_images", "image")):
        found = record(RESULTS / f"{name}.json")
        for row in found.get("measured", []):
            if row["prior"] in MIXTURES or (family == "image" and row["prior"].startswith("patch")):
                continue  # has its place elsewhere
            line = at_level(row["levels"])
            model = row["prior"].replace("denoise", "patch")  # the same model takes the same time
            bench = benchmarks.get(f"heatprior {model} {row['method']}", line)
            label = f"{row['prior']}, {METHODS[row['method']]}"
            yield Point(label, family, line["psnr"], bench["seconds_per_megapixel"], found["images"])


def mixtures(benchmarks: dict[str, Any]) -> Iterator[Point]:
    found = record(RESULTS / "mixtures.json")
    for name, lines in found.get("rows", {}).items():
        if not name.startswith(MIXTURES):
            continue  # the same method with another mixture
        line = at_level(lines)
        time = benchmarks.get(name, line)["seconds_per_megapixel"]
        yield Point(name, "mixture", line["psnr"], time, found["images"])


def peers(benchmarks: dict[str, Any]) -> Iterator[Point]:
    found = record(RESULTS / "peers.json")
    for name, (benchmark, label) in PEERS.items():
        if found and benchmark in benchmarks:
            psnr = found["methods"][name]["psnr"][found["levels"].index(LEVEL)]
            yield Point(label, "peer", psnr, benchmarks[benchmark]["seconds_per_megapixel"], found["images"])


def at_level(lines: list[dict[str, float]]) -> dict[str, float]:
    return next(line for line in lines if line["level"] == LEVEL)


def figure(points: list[Point]) -> Figure:
    result = Figure(figsize=(8.6, 5.6), layout="constrained")
    axes: Axes = result.subplots()
    axes.set_xscale("log")
    for key, family in FAMILIES.items():
        some = [point for point in points if point.family == key]
        few = min((point.images for point in some), default=ALL)
        axes.plot(
            [point.seconds_per_megapixel for point in some],
            [point.psnr for point in some],
            linestyle="none",
            marker=family.marker,
            markersize=7,
            color=family.colour,
            markerfacecolor="white" if family.hollow else family.colour,
            label=family.legend + (f" (first {few} images)" if few < ALL else ""),
        )
    axes.set_xlabel("seconds per megapixel, one core")
    axes.set_ylabel("PSNR in dB on BSD68")
    axes.set_title(f"Gaussian noise, 255σ = {LEVEL}: up and to the left is better", fontsize=11)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.2, y=0.08)
    axes.legend(loc="lower right", fontsize=8)
    label(axes, points)
    return result


def label(axes: Axes, points: list[Point]) -> None:
    """Names beside the points, each at the first place around its point that covers nothing else."""
    drawn = axes.get_figure()
    assert isinstance(drawn, Figure)
    canvas: Any = FigureCanvasAgg(drawn)  # knows how large letters are
    drawn.draw_without_rendering()
    to_pixels: Callable[[Any], Any] = axes.transData.transform
    centres = [to_pixels((point.seconds_per_megapixel, point.psnr)) for point in points]
    radius = 5.0 * drawn.dpi / 72.0
    taken = [Bbox.from_bounds(x - radius, y - radius, 2 * radius, 2 * radius) for x, y in centres]
    legend = axes.get_legend()
    assert legend is not None
    taken.append(legend.get_window_extent())
    inside = axes.get_window_extent()
    places = [
        (distance * across, distance * up)
        for distance in (9, 15, 22, 30, 40)
        for across, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))
    ]
    for point in points:
        for across, up in places:
            note = axes.annotate(
                point.name,
                (point.seconds_per_megapixel, point.psnr),
                (across, up),
                textcoords="offset points",
                horizontalalignment="center" if across == 0 else ("left" if across > 0 else "right"),
                verticalalignment="center" if up == 0 else ("bottom" if up > 0 else "top"),
                fontsize=8,
                color=FAMILIES[point.family].colour,
                arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
            )
            note.update_positions(canvas.get_renderer())
            box = Text.get_window_extent(note)  # without the line to its point
            free = inside.x0 < box.x0 and box.x1 < inside.x1 and inside.y0 < box.y0 and box.y1 < inside.y1
            if free and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            note.remove()
        else:
            print(f"the picture has no room for the name of {point.name}")


if __name__ == "__main__":
    main()
