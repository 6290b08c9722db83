"""`heatprior noise`: how much noise is in an image, of which kind, where, and what makes it doubtful."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli import batches
from heatprior.pictures import SUFFIXES as PICTURES

if TYPE_CHECKING:
    from heatprior.images import ImageFile
    from heatprior.noise.channel_noise import ChannelNoise
    from heatprior.noise.estimation import NoiseReport

EXAMPLES = {
    "noise": """\
  heatprior noise photo.png
  heatprior noise photo.png --picture noise.png     see where it is
  heatprior noise scans/*.tif -o noise.json         for other programs
"""
}
NOISE_HELP = "Noise model: constant, affine (variance = a × brightness + b), map, camera, or auto: the best fit."


def noise(
    inputs: Annotated[list[Path], typer.Argument(metavar="IMAGE", readable=False, help="Image files.")],
    *,
    output: batches.Json = None,
    picture: Annotated[Path | None, typer.Option(metavar="PNG", help="Draw the image beside its noise map.")] = None,
    kind: Annotated[str, batches.choice(*batches.NOISES, help=NOISE_HELP, flags=["--noise"])] = "auto",
    white: batches.White = None,
    force: batches.Replace = False,
) -> None:
    """Estimate the noise of images: its kind, its standard deviation sigma with a 90 % interval, and what is doubtful.

    All values are in the units of the image.
    """
    from heatprior.errors import HeatpriorError

    if picture is not None and len(inputs) > 1:
        raise typer.BadParameter("--picture draws one image; give one")
    batches.check_named((output, [".json"]), (picture, PICTURES), read=inputs, force=force)
    batches.announce_compiling()
    results, failed = [], 0
    for path in inputs:
        try:
            results.append(_estimate_file(path, kind, white, picture))
        except (HeatpriorError, OSError) as error:
            if len(inputs) == 1:
                raise
            failed += 1
            batches.report_error(error)
    batches.write_json(output, results)
    if failed:
        raise typer.Exit(batches.SOME_FAILED)


def _estimate_file(path: Path, kind: str, white: float | None, picture: Path | None) -> dict[str, Any]:
    """Estimate, print and draw the noise of one image; returns its entry in the JSON."""
    from heatprior import estimate_noise
    from heatprior.errors import InvalidInputError
    from heatprior.images import read_image
    from heatprior.noise.estimation import find_doubts

    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give its images")
    image = read_image(path)
    with batches.collect_warnings(f"cannot estimate the noise of {path}") as warned:
        report = estimate_noise(image.values(), kind, channel_axis=image.channel_axis, white=white)
    doubts = find_doubts(report, image.values(), image.channel_axis)
    warned += chain.from_iterable(doubts)
    pairs = zip(report.channels, doubts, strict=True)
    found = [{**summarise(channel, report.white), "doubts": own} for channel, own in pairs]
    typer.echo("; ".join([f"{path}: {describe(report)}", *filter(None, [str(report.defects)])]))
    batches.report_warning(path, warned)
    if picture is not None:
        _draw(image, report, picture)
        typer.echo(f"wrote {picture}")
    return {"file": str(path), "white": report.white, "defects": report.defects._asdict(), "channels": found}


def describe(report: NoiseReport) -> str:
    """The noise of a file in one line; of one channel, or of channels that are much alike, with its interval."""
    from heatprior.display import format_level

    found = [channel for channel in report.channels if channel.model != "none"]
    if not found:
        return f"{report.describe_kind()}; if you see some: heatprior denoise --strength 2 or --sigma {report.remedy:g}"
    if {channel.model for channel in found} == {"camera"}:  # the strength that works best, which has no error bar
        return report.describe_kind()
    values = [summarise(channel, report.white) for channel in found]
    low, high = (pick(own["interval90"][end] for own in values) for end, pick in ((0, min), (1, max)))
    line = f"{report.describe_kind()} (90 %: {format_level(low)} to {format_level(high)})"
    if {channel.model for channel in found} == {"constant"}:
        return f"{line}, the same everywhere"
    if len(found) == 1 and found[0].model == "affine":
        gain, offset = values[0]["gain"], values[0]["offset"]
        sign = "−" if offset < 0 else "+"
        return f"{line}, variance {format_level(gain)} × brightness {sign} {format_level(abs(offset))}"
    if any(channel.model == "map" for channel in found):
        ends = min(own["lowest"] for own in values), max(own["highest"] for own in values)
        return f"{line}, from {format_level(ends[0])} to {format_level(ends[1])} over the picture"
    return line


def summarise(channel: ChannelNoise, white: float) -> dict[str, Any]:
    """The noise of a channel as numbers for the JSON, in the units of the image."""
    import numpy as np

    values: dict[str, Any] = {
        "model": channel.model,
        "sigma": channel.level.sigma * white,
        "stderr": channel.level.stderr * white,
        "model_error": channel.model_error * white,
        "interval90": channel.interval90(white),
        "probability": channel.probability,
        "evidence": channel.evidence,
        "lowest": float(np.min(channel.sigma)) * white,
        "highest": float(np.max(channel.sigma)) * white,
    }
    if channel.affine is not None:
        gain, offset, gain_error, offset_error = channel.affine
        values |= {"gain": gain * white, "gain_error": gain_error * white}
        values |= {"offset": offset * white**2, "offset_error": offset_error * white**2}
    return values


def _draw(image: ImageFile, report: NoiseReport, path: Path) -> None:
    """Draw the image, or the middle one of a stack, beside its noise map."""
    from heatprior.display import contrast
    from heatprior.noise.estimation import noise_levels_of
    from heatprior.pictures.figures import Panel, draw_side_by_side

    middle = image.middle
    pixels, levels = image.pixels[middle], noise_levels_of(report, image.pixels.shape, image.channel_axis)[middle]
    low, high = float(levels.min()), float(levels.max())
    same = low == high
    title = f"noise level {high:.3g} everywhere" if same else f"noise level, {low:.3g} to {high:.3g} (white)"
    panels = [Panel("image", pixels, *contrast(pixels)), Panel(title, levels, 0.0, 2.0 * high or 1.0 if same else high)]
    draw_side_by_side(panels, path)
