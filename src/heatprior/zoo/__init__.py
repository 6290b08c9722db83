"""The shipped priors, and the one way to load a prior, by name or by path."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from heatprior.errors import PriorFileError
from heatprior.priors.patch import PatchPrior
from heatprior.store import read_prior_file

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def load(prior: str | PathLike[str]) -> PatchPrior:
    """A shipped prior by its name (`"patch7"`), or any prior by the path of its file.

    >>> load("patch7").filters.count
    48
    """
    if isinstance(prior, str) and prior in names():
        path = FOLDER / f"{prior}.safetensors"
    else:
        path = Path(prior)
        if not path.suffix and not path.exists():
            raise PriorFileError(f"no prior is called {prior!r}; shipped are {', '.join(names())}; or give a path")
    try:
        return PatchPrior.from_file(read_prior_file(path))
    except PriorFileError as error:
        message = str(error)
        raise PriorFileError(message if str(path) in message else f"{path}: {message}") from error
