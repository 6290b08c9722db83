"""`heatprior evaluate`: PSNR, SSIM and time of denoising on a folder of clean images, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from heatprior.cli import batches
from heatprior.presets import DEFAULT

LEVELS = [15.0, 25.0, 50.0, 100.0]
GREY_LEVELS = 255.0  # of the literature
EXAMPLES = {
    "evaluate": """\
  heatprior evaluate photos                              sigma of 15, 25, 50 and 100 of 255
  heatprior evaluate photos --steps 1 -o photos.json     one step, and all figures as JSON
  heatprior evaluate photos --sigma 10 --limit 5 --prior mine.safetensors
"""
}


def evaluate(
    images: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of clean images.")],
    *,
    sigma: Annotated[
        list[float] | None,
        typer.Option(
            metavar="S",
            help="Standard deviation of the noise, in the units of the images; may be repeated.  [default: 15, 25, 50 "
            "and 100 of 255]",
        ),
    ] = None,
    quality: batches.Quality = DEFAULT,
    prior: batches.OwnPrior = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="1", min=1, max=1, help="One step of empirical Bayes at one scale, as in the paper."),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Take the first N images only.")] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, help="Cores to use; times are usually quoted for one.")
    ] = 1,
    output: batches.Json = None,
    force: batches.Replace = False,
) -> None:
    """Measure denoising on clean images.

    Gaussian noise (seed 1000 + i for the i-th file) is added and removed again; colour images are converted to grey.
    PSNR and SSIM are means over the images, times are medians.
    """
    from tqdm import tqdm

    from heatprior import __version__, denoise, load
    from heatprior.data.datasets import folder_files
    from heatprior.data.trials import FIRST_SEED
    from heatprior.errors import HeatpriorError, InvalidInputError
    from heatprior.restoration.denoising import choose_prior
    from heatprior.restoration.evaluation import evaluate as measure
    from heatprior.restoration.evaluation import summarise

    prior = prior or choose_prior(quality)
    found = folder_files(images)
    files = found[:limit]
    batches.check_named((output, [".json"]), read=[*found, images], prior=prior, force=force)
    batches.announce_compiling()
    model = load(prior)
    unit = 1.0 if sigma is None else GREY_LEVELS / _full_scale(files)  # of the literature, for one of the files
    levels = [level * unit for level in sigma or LEVELS]
    failures: list[HeatpriorError] = []
    with tqdm(total=len(files) * len(levels), unit=" images", leave=False, disable=None) as bar:
        results = measure(
            files,
            lambda noisy, level: denoise(noisy, level, quality=quality, prior=model, steps=steps, white=1.0),
            levels=levels,
            threads=threads,
            report=lambda _: bar.update(),
            skip=failures.append if len(files) > 1 else None,
        )
    for failure in failures:
        batches.report_error(failure)
    if not results:
        raise InvalidInputError(f"none of the {len(files)} images of {images} can be used, see above")
    summary = summarise(results)
    word = "core" if threads == 1 else "cores"
    schedule = "" if steps is None else ", one step"
    typer.echo(f"{'σ':>6} {'PSNR':>8} {'SSIM':>8} {'s/Mpx':>8}")
    for at in summary:  # of 255, but for those that were asked for
        typer.echo(f"{at.level / unit:6g} {at.psnr:8.2f} {at.ssim:8.4f} {at.seconds_per_megapixel:8.2f}")
    count = len(files) - len(failures)
    typer.echo(f"{count} of {len(found)} images of {images}, {prior}{schedule}, {threads} {word}")
    record = {
        "version": __version__,
        "images": images.resolve().name,
        "count": count,
        "quality": quality,
        "prior": prior,
        "steps": steps,
        "threads": threads,
        "first_seed": FIRST_SEED,
        "mean": [line._asdict() for line in summary],
        "each": [result._asdict() for result in results],
    }
    batches.write_json(output, record)
    if failures:
        raise typer.Exit(batches.SOME_FAILED)


def _full_scale(files: Sequence[Path]) -> float:
    """Full scale of the type of the first file that can be read."""
    import numpy as np

    from heatprior.errors import HeatpriorError
    from heatprior.images import read_grey

    for path in files:
        try:
            dtype = read_grey(path).dtype
        except HeatpriorError:  # reported when it is measured
            continue
        return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)
    return GREY_LEVELS
