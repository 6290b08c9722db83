"""`heatprior evaluate`: PSNR, SSIM and time of denoising on a folder of clean images, as a table and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatprior.cli.denoise import Adapt, Best, Fast, Method, Scales, quality_of
from heatprior.cli.reports import say_if_compiling

if TYPE_CHECKING:
    from heatprior.restoration.evaluation import Summary

BSD68 = "bsd68"
SOME_FAILED = 1
LEVELS = [15.0, 25.0, 50.0, 100.0]
EXAMPLES = """\b
Examples:
  heatprior evaluate photos                              255 sigma of 15, 25, 50 and 100
  heatprior evaluate bsd68 --method eb -o bsd68.json     BSD68, wherever `heatprior data` finds it
  heatprior evaluate photos --sigma 10 --limit 5 --prior mine.safetensors
"""


def evaluate(
    images: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder of clean images, or the word bsd68 for that data set.")
    ],
    *,
    sigma: Annotated[
        list[float],
        typer.Option(
            metavar="S",
            help="Standard deviation of the noise, grey levels being 0 to 255 as in the literature; may be repeated.",
        ),
    ] = LEVELS,
    fast: Fast = False,
    best: Best = False,
    prior: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="A shipped prior by its name, or the path of a prior.  [default: tuned]"),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Half-quadratic splitting, or one step of empirical Bayes.")
    ] = Method.hqs,
    adapt: Adapt = False,
    scales: Scales = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Take the first N images only.")] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, help="Cores to use; times are usually quoted for one.")
    ] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="JSON", help="Write all figures to this file.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where bsd68 is.  [default: HEATPRIOR_DATA, or the cache]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Measure denoising on clean images.

    Gaussian noise is added, image i of the sorted files having seed 1000 + i, and removed again; colours become grey.
    PSNR and SSIM are means over the images, times the median.
    """
    from tqdm import tqdm

    from heatprior import denoise as denoised
    from heatprior import load
    from heatprior.cli.outputs import check_output
    from heatprior.data import bsds500
    from heatprior.data.datasets import folder_files
    from heatprior.data.trials import FIRST_SEED
    from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError
    from heatprior.records import write_record
    from heatprior.restoration.adaptation import as_mixture
    from heatprior.restoration.evaluation import evaluate as measure
    from heatprior.restoration.evaluation import summarise
    from heatprior.restoration.qualities import prior_name
    from heatprior.restoration.recipes import EVERY_SCALE, usual_scales

    quality = quality_of(fast, best)
    prior = prior or prior_name(quality, density=adapt)
    if output is not None:
        if output.suffix.lower() != ".json":
            raise OutputFileError(f"cannot write {output}: it must be a name that ends in .json")
        check_output(output, force=force)
    found = bsds500.bsd68(data) if images == BSD68 else folder_files(Path(images))
    files = found[:limit]
    say_if_compiling()
    model = as_mixture(load(prior)) if adapt else load(prior)
    used = scales or usual_scales(model, method.value)
    failures: list[HeatpriorError] = []
    with tqdm(total=len(files) * len(sigma), unit=" images", leave=False, disable=None) as bar:
        results = measure(
            files,
            lambda noisy, level: denoised(
                noisy,
                level,
                quality=quality,
                prior=model,
                method=method.value,
                adapt=adapt,
                scales=scales,
                white=1.0,
            ),
            levels=sigma,
            threads=threads,
            report=lambda _: bar.update(),
            skip=failures.append if len(files) > 1 else None,
        )
    for failure in failures:
        typer.echo(f"heatprior: error: {' '.join(str(failure).split())}", err=True)
    if not results:
        raise InvalidInputError(f"none of the {len(files)} images of {images} can be used, see above")
    summary = summarise(results)
    word = "core" if threads == 1 else "cores"
    typer.echo(table(summary))
    count = len(files) - len(failures)
    typer.echo(f"{count} of {len(found)} images of {images}, {prior}, {method.value}, {threads} {word}")
    if output is not None:
        record = {
            "images": images if images == BSD68 else Path(images).resolve().name,
            "count": count,
            "quality": quality,
            "prior": prior,
            "method": method.value,
            "adapt": adapt,
            "scales": "all" if used == EVERY_SCALE else used,
            "threads": threads,
            "first_seed": FIRST_SEED,
            "mean": [line._asdict() for line in summary],
            "each": [result._asdict() for result in results],
        }
        write_record(output, record)
        typer.echo(f"wrote {output}")
    if failures:
        raise typer.Exit(SOME_FAILED)


def table(summary: list[Summary]) -> str:
    """A line for each noise level."""
    lines = [f"{'255σ':>6} {'PSNR':>8} {'SSIM':>8} {'s/Mpx':>8}"]
    lines += [f"{s.level:6g} {s.psnr:8.2f} {s.ssim:8.4f} {s.seconds_per_megapixel:8.2f}" for s in summary]
    return "\n".join(lines)
