"""Speed against quality: seconds per megapixel on one core and PSNR at 255 sigma = 25, of every method measured.

    python -m paper.evaluations.speed_quality

Measures nothing: it gathers what is in records/, of which missing records are told and left out. Times are those of
benchmarks/bench_front.py, all of one run on one processor; what that does not time has none. Writes
records/speed_quality.json and docs/speed-quality.png.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from heatprior.pictures.figures import COLOURS
from paper import RECORDS
from paper.claims.plots import save_diagram
from paper.records import write_record

LEVEL = 25  # 255 sigma
NETWORK = "FFDNet's architecture"
ALL = 68  # images
PICTURE = RECORDS.parent / "docs" / "speed-quality.png"
BLACK, BLUE, GREEN, ORANGE, RED = COLOURS
MIXTURES = ("mixture", "epll")
METHODS = {"eb": "one step", "hqs": "HQS"}
# Of the peers: their names in paper/evaluations/peers.py, in the benchmark, and in the picture.
PEERS = {
    "bm3d": ("bm3d", "BM3D"),
    "scikit-image NLM": ("scikit-image NLM (fast)", "NLM (scikit-image)"),
    "scikit-image TV": ("scikit-image TV (Chambolle)", "TV (scikit-image)"),
    "scikit-image wavelet, cycle-spun": ("scikit-image wavelet, 4×4 cycle-spun", "wavelet, cycle-spun (scikit-image)"),
    "OpenCV NLM": ("OpenCV NLM, 8 bits", "NLM (OpenCV)"),
}
QUALITIES = {"default": "bsd68-default", "fast": "bsd68-fast", "best": "bsd68-best"}  # and the records of their PSNR
FFDNET = 29.20  # dB, by the same protocol on all images; the time is that of its architecture with random weights


class Family(NamedTuple):
    """How the points of one kind look, and what the legend says of them."""

    legend: str
    colour: str
    marker: str
    hollow: bool = False


FAMILIES = {
    "quality": Family("heatprior, fast, default and best", ORANGE, "P"),
    "mixture": Family("heatprior, mixtures of Gaussians", RED, "o"),
    "patch": Family("heatprior, patch priors", BLUE, "^"),
    "image": Family("heatprior, priors of whole images", GREEN, "v"),
    "peer": Family("other methods", BLACK, "s"),
    "network": Family("FFDNet, a network", BLACK, "D", hollow=True),
}


class Point(NamedTuple):
    """One method."""

    name: str
    family: str
    psnr: float
    seconds_per_megapixel: float
    images: int


class Measured(NamedTuple):
    """The PSNR of a method, and its name in the benchmark of times."""

    name: str
    family: str
    psnr: float
    timed: str
    images: int


def main() -> None:
    times = {name: row["seconds_per_megapixel"] for name, row in record("bench_front").get("one_core", {}).items()}
    found = [*qualities(), *own(), *mixtures(), *peers()]
    points = [
        Point(name, family, psnr, times[timed], images) for name, family, psnr, timed, images in found if timed in times
    ]
    if NETWORK in times:
        points.append(Point("FFDNet", "network", FFDNET, times[NETWORK], ALL))
    points.sort(key=lambda point: point.seconds_per_megapixel)
    for point in points:
        print(f"{point.name:36} {point.seconds_per_megapixel:8.3f} s/Mpx {point.psnr:7.2f} dB, {point.images} images")
    write_record(RECORDS / "speed_quality.json", {"level": LEVEL, "points": [point._asdict() for point in points]})
    save_diagram(figure(points), PICTURE)
    print(f"wrote {PICTURE}")


def record(name: str) -> dict[str, Any]:
    """What was measured, or nothing."""
    path = RECORDS / f"{name}.json"
    if not path.is_file():
        print(f"there is no records/{path.name} yet: left out")
        return {}
    contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return contents


def qualities() -> Iterator[Measured]:
    for quality, name in QUALITIES.items():
        found = record(name)
        if found:
            yield Measured(quality, "quality", at_level(found["mean"])["psnr"], quality, found["count"])


def own() -> Iterator[Measured]:
    """Table 1 and the priors of whole images."""
    table = record("claim-table1").get("figures", {})
    for row in table.get("rows", []):
        model = row["prior"].replace("denoise", "patch")  # the same model takes the same time
        psnr = row["psnr"][table["levels"].index(LEVEL)]
        yield Measured(name_of(row), "patch", psnr, f"heatprior {model} {row['method']}", table["images"])
    found = record("whole_images")
    for row in found.get("measured", []):
        if row["prior"] not in MIXTURES and not row["prior"].startswith("patch"):  # which have their place elsewhere
            timed = f"heatprior {row['prior']} {row['method']}"
            yield Measured(name_of(row), "image", at_level(row["levels"])["psnr"], timed, found["images"])


def name_of(row: dict[str, Any]) -> str:
    return f"{row['prior']}, {METHODS[row['method']]}"


def mixtures() -> Iterator[Measured]:
    found = record("mixtures")
    for name, lines in found.get("rows", {}).items():
        yield Measured(name, "mixture", at_level(lines)["psnr"], name, found["images"])


def peers() -> Iterator[Measured]:
    found = record("peers")
    for name, (timed, label) in PEERS.items():
        if found:
            psnr = found["methods"][name]["psnr"][found["levels"].index(LEVEL)]
            yield Measured(label, "peer", psnr, timed, found["images"])


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
