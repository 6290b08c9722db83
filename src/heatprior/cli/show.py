"""`heatprior show`: what a prior is, as a short card, and as a picture: filters and potentials, or shapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from heatprior.priors.convolutional import ConvolutionalPrior
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior
    from heatprior.priors.patch import PatchPrior
    from heatprior.priors.wavelet import WaveletPrior

EXAMPLES = """\b
Examples:
  heatprior show patch7
  heatprior show mine.safetensors --filters 24 -o mine.pdf
"""


def show(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help="A shipped prior by its name, or the path of a prior.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .pdf or .svg.  [default: PRIOR.png]"),
    ] = None,
    filters: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Draw at most so many filters, evenly spaced by norm, or shapes.  [default: 112, 12]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Tell what a prior is, and draw its filters and potentials, or the shapes of a mixture.

    The filters come in the order of their norms, each with the values of its black and white, and below it the
    potentials −log ψ at five noise levels. The shapes come most frequent first, each with its leading axes and the
    weights of its contrasts.
    """
    from heatprior import load
    from heatprior.errors import InvalidInputError
    from heatprior.files import check_output
    from heatprior.kinds import KINDS
    from heatprior.pictures.figures import SUFFIXES
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior
    from heatprior.priors.patch import PatchPrior

    output = output or Path(f"{Path(prior).stem or 'prior'}.png")
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot write {output}: it must be a name that ends in {', '.join(SUFFIXES)}")
    check_output(output, force=force)
    loaded = load(prior)
    KINDS[loaded.kind].drawing()(loaded, output, filters)
    if isinstance(loaded, PatchPrior):
        facts = _summary(loaded)
    elif isinstance(loaded, GaussianMixturePrior):
        facts = _mixture_summary(loaded)
    else:
        facts = _bands_summary(loaded)
    for name, value in facts.items():
        typer.echo(f"{_one_line(name):<12}{_one_line(value)}")
    typer.echo(f"wrote {output}")


def _summary(prior: PatchPrior) -> dict[str, object]:
    from heatprior.priors.patch import KIND

    norms, experts = prior.filters.norms, prior.experts
    facts: dict[str, object] = {
        "name": prior.card.get("name", "none"),
        "kind": KIND,
        "patch size": f"{prior.filters.size}×{prior.filters.size} pixels",
        "filters": f"{prior.filters.count}, of norm {norms.min():.2g} to {norms.max():.2g}",
        "components": f"{experts.logits.shape[1]} per filter, over responses of ±{experts.reach:g}",
        "parameters": prior.parameters,
    }
    return facts | {key: value for key, value in prior.card.items() if key not in facts}


def _mixture_summary(prior: GaussianMixturePrior) -> dict[str, object]:
    from heatprior.priors.gaussian_mixture import KIND

    shapes, contrasts = prior.log_weights.shape
    facts: dict[str, object] = {
        "name": prior.card.get("name", "none"),
        "kind": KIND,
        "patch size": f"{prior.size}×{prior.size} pixels",
        "shapes": shapes,
        "contrasts": f"{contrasts}, from {prior.contrasts.min():.3g} to {prior.contrasts.max():.3g}",
        "parameters": prior.parameters,
    }
    return facts | {key: value for key, value in prior.card.items() if key not in facts}


def _bands_summary(prior: ConvolutionalPrior | WaveletPrior) -> dict[str, object]:
    from heatprior.priors import convolutional, wavelet
    from heatprior.priors.tilings import Tiling

    bands, experts = prior.bands, prior.experts
    if isinstance(bands, Tiling):
        kind, where = convolutional.KIND, f"{bands.scales} rings of frequencies × {bands.orientations} orientations"
    else:
        kind, where = wavelet.KIND, f"{bands.levels} levels of an orthonormal wavelet of {bands.scaling.size} taps"
    facts: dict[str, object] = {
        "name": prior.card.get("name", "none"),
        "kind": kind,
        "bands": f"{bands.count}: {where}",
        "components": f"{experts.logits.shape[1]} per band, over responses of ±{experts.reach:g}",
        "parameters": prior.parameters,
    }
    return facts | {key: value for key, value in prior.card.items() if key not in facts}


def _one_line(value: object) -> str:
    """Text from a file of unknown origin, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))
