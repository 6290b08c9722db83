"""`heatprior noise`: how much noise is in an image, of which kind, where, and what makes it doubtful."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.reports import say_if_compiling, warnings_in_one_line

if TYPE_CHECKING:
    from heatprior.images import ImageFile
    from heatprior.noise.channel_noise import ChannelNoise
    from heatprior.noise.estimation import NoiseReport
    from heatprior.noise.profiles import NoiseProfile

SOME_FAILED = 1
COLOURS = ("red", "green", "blue")
EXAMPLES = """\b
Examples:
  heatprior noise photo.png
  heatprior noise photo.png --picture noise.png     see where it is
  heatprior noise scans/*.tif -o noise.json         for other programs
  heatprior noise photos/*.jpg --save camera.json   for heatprior denoise --noise-model
"""


class NoiseKind(StrEnum):
    """What `--noise` may be."""

    auto = "auto"
    constant = "constant"
    affine = "affine"
    map = "map"
    correlated = "correlated"


NOISE_HELP = "One level, variance = a · brightness + b, a map, correlated from pixel to pixel, or what fits best."


def noise(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="IMAGE", readable=False, help="Images (.png, .jpg, .tif, .npy).")
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="JSON", help="Write what was found as JSON.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the image beside its noise map, and the spectrum.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="Write the noise profile of the camera, from all images together."),
    ] = None,
    kind: Annotated[NoiseKind, typer.Option("--noise", help=NOISE_HELP)] = NoiseKind.auto,
    prior: Annotated[
        str, typer.Option(metavar="PRIOR", help="A shipped prior by its name, or the path of a prior.")
    ] = "patch7",
    white: Annotated[
        float | None,
        typer.Option(metavar="W", help="The value that is full scale.  [default: found]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace outputs that exist; never an input.")] = False,
) -> None:
    """Estimate the noise of images: sigma with its 90 % interval, a and b of variance = a x + b, and doubts.

    All is in the units of the image.
    """
    from heatprior import load
    from heatprior.errors import HeatpriorError
    from heatprior.files import replacing

    if picture is not None and len(inputs) > 1:
        raise typer.BadParameter("--picture draws one image; give one")
    _check_outputs([output, save], picture, [*inputs, Path(prior)], force=force)
    say_if_compiling()
    model = load(prior)
    results, failed = [], 0
    for path in inputs:
        try:
            results.append(_look_at(path, kind.value, model, white, picture))
        except (HeatpriorError, OSError) as error:
            if len(inputs) == 1:
                raise
            failed += 1
            typer.echo(f"heatprior: error: {' '.join(str(error).split())}", err=True)
    if save is not None:
        _profile_of(inputs, white).save(save)
        typer.echo(f"wrote {save}")
    if output is not None:
        with replacing(output) as temporary:
            temporary.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        typer.echo(f"wrote {output}")
    if failed:
        raise typer.Exit(SOME_FAILED)


def _profile_of(paths: list[Path], white: float | None) -> NoiseProfile:
    """Of the camera that took these images: those that cannot be read are refused."""
    from heatprior.errors import InvalidInputError
    from heatprior.images import read_image
    from heatprior.noise.estimation import noise_profile

    images = [read_image(path) for path in paths]
    if len({image.channel_axis for image in images}) > 1:
        raise InvalidInputError("some images are grey and some in colour; give images of one camera and one kind")
    values = [image.values() for image in images]
    return noise_profile(values, channel_axis=images[0].channel_axis, white=white or images[0].white)


def _check_outputs(outputs: list[Path | None], picture: Path | None, read: list[Path], *, force: bool) -> None:
    """Refuse, before any work, what would be lost or cannot be written; pictures have another suffix than the rest."""
    from heatprior.cli.jobs import refuse_inputs
    from heatprior.cli.outputs import check_output
    from heatprior.errors import OutputFileError

    for output in outputs:
        if output is not None and output.suffix.lower() != ".json":
            raise OutputFileError(f"cannot write {output}: it must be a name that ends in .json")
    if picture is not None:
        from heatprior.pictures.figures import SUFFIXES

        if picture.suffix.lower() not in SUFFIXES:
            raise OutputFileError(f"cannot draw {picture}: it must be a name that ends in {', '.join(SUFFIXES)}")
    written = [path for path in (*outputs, picture) if path is not None]
    refuse_inputs(written, read)
    for path in written:
        check_output(path, force=force)


def _look_at(path: Path, kind: str, prior: Any, white: float | None, picture: Path | None) -> dict[str, Any]:
    """Estimate, print and draw the noise of one image; returns what goes into the JSON."""
    from heatprior import estimate_noise
    from heatprior.errors import InvalidInputError
    from heatprior.images import read_image
    from heatprior.noise.channel_noise import doubts_of
    from heatprior.pixels.inputs import as_channels, in_unit_range

    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give its images")
    image = read_image(path)
    try:
        with warnings_in_one_line(path):
            report = estimate_noise(
                image.values(), kind, prior=prior, channel_axis=image.channel_axis, white=white or image.white
            )
    except InvalidInputError as error:
        raise InvalidInputError(f"cannot estimate the noise of {path}: {error}") from error
    channels = as_channels(image.values(), image.channel_axis)
    flat = channels.reshape(-1, *channels.shape[-2:])
    found = []
    for channel, pixels, name in zip(report.channels, flat, _names(image), strict=True):
        numbers = in_numbers(channel, report.white)
        typer.echo(f"{path}{name}: {in_words(channel, report.white)}")
        numbers["doubts"] = doubts_of(channel, in_unit_range(pixels, report.white), prior.patch_shape[0])
        for doubt in numbers["doubts"]:
            typer.echo(f"heatprior: warning: {path}{name}: {doubt}", err=True)
        found.append(numbers)
    if picture is not None:
        draw(image, report, picture)
        typer.echo(f"wrote {picture}")
    return {"file": str(path), "white": report.white, "channels": found}


def in_words(channel: ChannelNoise, white: float) -> str:
    """What was found, in a line."""
    from heatprior.noise.doubts import NINETY

    values = in_numbers(channel, white)
    low, high = values["interval90"]
    sigma = f"sigma {values['sigma']:.3g}, 90 % from {low:.3g} to {high:.3g}"
    if values["sigma"] == 0:
        sigma = f"no measurable noise (sigma below {high:.2g})"
    line = ""
    if "gain" in values:
        line = (
            f"variance {values['gain']:.3g} (±{values['gain_error']:.1g}) x + "
            f"{values['offset']:.3g} (±{values['offset_error']:.1g})"
        )
    if channel.model == "constant":
        return f"{sigma}, the same everywhere"
    with_light = f"{'grows' if values.get('gain', 0.0) > 0 else 'falls'} with brightness: {line}"
    if channel.model == "correlated":
        length = (
            "" if "length" not in values else f" over {values['length']:.2g} (±{values['length_error']:.1g}) pixels"
        )
        slope = f", {with_light}" if abs(values.get("gain", 0.0)) > NINETY * values.get("gain_error", 0.0) > 0 else ""
        return f"correlated{length}{slope}; on average {sigma}"
    if channel.model == "affine":
        return f"{with_light}; on average {sigma}"
    return f"varies from place to place: sigma {values['lowest']:.3g} to {values['highest']:.3g}; on average {sigma}"


def in_numbers(channel: ChannelNoise, white: float) -> dict[str, Any]:
    """The same for the JSON, in the units of the image."""
    import numpy as np

    from heatprior.noise.doubts import NINETY

    sigma, stderr = (value * white for value in channel.level)
    misfit = channel.model_error * white
    half = NINETY * float(np.hypot(stderr, misfit))
    values: dict[str, Any] = {
        "model": channel.model,
        "sigma": sigma,
        "stderr": stderr,
        "model_error": misfit,
        "interval90": [max(0.0, sigma - half), sigma + half],
        "evidence": channel.evidence,
        "lowest": float(np.min(channel.sigma)) * white,
        "highest": float(np.max(channel.sigma)) * white,
    }
    if channel.correlated is not None:
        noise = channel.correlated
        right, down = noise.spectrum.autocovariance[0, 1], noise.spectrum.autocovariance[1, 0]
        values |= {"length": noise.spectrum.length, "length_error": noise.length_error}
        values |= {"correlation": [float(right), float(down)]}
        values |= {
            "brightness": (noise.brightness * white).tolist(),
            "variances": (noise.variances * white**2).tolist(),
        }
    if channel.affine is not None:
        gain, offset, gain_error, offset_error = channel.affine
        values |= {"gain": gain * white, "gain_error": gain_error * white}
        values |= {"offset": offset * white**2, "offset_error": offset_error * white**2}
    return values


def draw(image: ImageFile, report: NoiseReport, path: Path) -> None:
    """The image, or the middle one of a stack, beside its noise map and, where noise is correlated, its spectrum."""
    from heatprior.noise.estimation import noise_levels_of
    from heatprior.pictures.comparisons import Panel, contrast, draw_side_by_side
    from heatprior.pictures.noise_spectra import spectrum_panel

    frame = 3 if image.colour else 2
    middle = tuple(count // 2 for count in image.pixels.shape[: image.pixels.ndim - frame])
    pixels, levels = image.pixels[middle], noise_levels_of(report, image.pixels.shape, image.channel_axis)[middle]
    low, high = float(levels.min()), float(levels.max())
    title = f"noise level, black 0, white {high:.3g}; lowest {low:.3g}"
    panels = [Panel("image", pixels, *contrast(pixels)), Panel(title, levels, 0.0, high)]
    if report.profile is not None:
        panels.append(spectrum_panel(report.profile.channels[0].spectrum, pixels.shape[:2]))
    draw_side_by_side(panels, path)


def _names(image: ImageFile) -> Iterator[str]:
    """What stands behind the name of the file: the number of the picture in a stack, the colour."""
    shape = image.pixels.shape[: -3 if image.colour else -2]
    count = 1
    for side in shape:
        count *= side
    for number in range(count):
        place = f"[{number}]" if count > 1 else ""
        for colour in COLOURS if image.colour else ("",):
            yield f"{place} {colour}".rstrip()
