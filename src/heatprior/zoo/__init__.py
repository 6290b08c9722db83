"""The shipped priors, and the one way to load a prior, by name or by path."""

from __future__ import annotations

from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np

from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kinds import KINDS
from heatprior.priors.protocol import DiffusedPrior, Prior, StoredPrior, complete
from heatprior.store import read_prior_file

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of the shipped priors."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def load(prior: str | PathLike[str]) -> StoredPrior:
    """Load a shipped prior by its name, or any prior by the path of its file.

    A shipped prior is loaded once: the same name gives the same object, with all that was computed from it.

    Parameters
    ----------
    prior : str or path
        Name or path, such as "patch7" or "mine/prior.safetensors".

    Returns
    -------
    PatchPrior, GaussianMixturePrior, WaveletPrior or ConvolutionalPrior
        The prior, of the kind that the file holds.

    Examples
    --------
    >>> load("patch7").parameters
    8352
    """
    if isinstance(prior, str) and prior in names():
        return _load_shipped(prior)
    if not isinstance(prior, str | PathLike):
        raise PriorFileError(f"the prior is a {type(prior).__name__}; expected a name such as 'patch7', or a path")
    path = Path(prior)
    if not path.suffix and not path.exists():
        raise PriorFileError(f"no prior is called {prior!r}; shipped are {', '.join(names())}; or give a path")
    return _load_file(path)


@cache
def _load_shipped(name: str) -> StoredPrior:
    return _load_file(FOLDER / f"{name}.safetensors")


def _load_file(path: Path) -> StoredPrior:
    try:
        contents = read_prior_file(path)
        with np.errstate(all="ignore"):  # parameters that overflow or are NaN are refused, in one line
            loaded: StoredPrior = KINDS[contents.kind].find("prior").from_file(contents)
        return loaded
    except (InvalidInputError, PriorFileError) as error:
        message = str(error)
        raise PriorFileError(message if str(path) in message else f"{path}: {message}") from error


def as_prior(prior: str | PathLike[str] | DiffusedPrior) -> Prior:
    """A prior by name, by path, or an object completed with all that the algorithms need."""
    return load(prior) if isinstance(prior, str | PathLike) else complete(prior)
