"""`heatprior show`: what a prior is, as a short card, and its filters and potentials as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from heatprior.priors.patch import PatchPrior

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
        int, typer.Option(metavar="N", min=1, help="Draw at most so many filters, evenly spaced by norm.")
    ] = 112,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Tell what a prior is, and draw its filters and potentials.

    The filters come in the order of their norms, each with the values of its black and white, and below it the
    potentials −log ψ at five noise levels.
    """
    from heatprior import load
    from heatprior.errors import InvalidInputError
    from heatprior.files import check_output
    from heatprior.pictures import SUFFIXES, draw_prior

    output = output or Path(f"{Path(prior).stem or 'prior'}.png")
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot write {output}: it must be a name that ends in {', '.join(SUFFIXES)}")
    check_output(output, force=force)
    loaded = load(prior)
    draw_prior(loaded, output, filters=filters)
    for name, value in _summary(loaded).items():
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


def _one_line(value: object) -> str:
    """Text from a file of unknown origin, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))
