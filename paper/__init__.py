"""The paper beside the package: its claims, judged; how the shipped weights were made; what is measured of them."""

from __future__ import annotations

from pathlib import Path

from heatprior import zoo
from heatprior.errors import InvalidInputError
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import StoredPrior

RECORDS = Path(__file__).parents[1] / "records"  # every measured figure of the project, a JSON file for each script
EXHIBITS = Path(__file__).parent / "priors"  # priors that are studied here and not shipped


def prior_file(name: str) -> Path:
    """The file of a prior by its name: among the shipped ones, or else among the exhibits, where a new one belongs."""
    return (zoo.FOLDER if name in zoo.names() else EXHIBITS) / f"{name}.safetensors"


def load(name: str) -> StoredPrior:
    """A shipped prior or an exhibit by its name, or any prior by its path."""
    return zoo.load(name if Path(name).suffix else prior_file(name))


def load_patch_prior(name: str) -> PatchPrior:
    """The same for those who need filters and experts."""
    loaded = load(name)
    if not isinstance(loaded, PatchPrior):
        raise InvalidInputError(f"{name} is a {type(loaded).__name__}; expected a PatchPrior such as patch7")
    return loaded
