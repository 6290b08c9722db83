"""The shipped priors, and the one way to load a prior, by name or by path."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np

from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kinds import KINDS
from heatprior.priors.adapter import complete
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import DiffusedPrior, Prior
from heatprior.priors.stored import StoredPrior
from heatprior.store import read_prior_file

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def load(prior: str | PathLike[str]) -> StoredPrior:
    """A shipped prior by its name, or any prior by the path of its file.

    Parameters
    ----------
    prior : str or path
        Such as "patch7" or "mine/prior.safetensors".

    Returns
    -------
    PatchPrior, GaussianMixturePrior, WaveletPrior or ConvolutionalPrior
        By what the file holds.

    Examples
    --------
    >>> load("patch7").parameters
    8352
    """
    if isinstance(prior, str) and prior in names():
        path = FOLDER / f"{prior}.safetensors"
    else:
        path = Path(prior)
        if not path.suffix and not path.exists():
            raise PriorFileError(f"no prior is called {prior!r}; shipped are {', '.join(names())}; or give a path")
    try:
        contents = read_prior_file(path)
        with np.errstate(all="ignore"):  # parameters that overflow or are NaN are refused, in one line
            loaded: StoredPrior = KINDS[contents.kind].prior_class().from_file(contents)
        return loaded
    except PriorFileError as error:
        message = str(error)
        raise PriorFileError(message if str(path) in message else f"{path}: {message}") from error


@lru_cache(maxsize=4)
def shipped(name: str) -> StoredPrior:
    """A shipped prior, the same object each time: what was computed from it serves the next image, too."""
    return load(name)


def as_prior(prior: str | PathLike[str] | DiffusedPrior) -> Prior:
    """A prior by name, by path, or as it is, with all that the algorithms ask for."""
    return load(prior) if isinstance(prior, str | PathLike) else complete(prior)


def load_patch_prior(prior: str | PathLike[str]) -> PatchPrior:
    """The same for those who need filters and experts; any other kind is refused."""
    loaded = load(prior)
    if not isinstance(loaded, PatchPrior):
        raise InvalidInputError(f"{prior} is a {type(loaded).__name__}; expected a PatchPrior such as patch7")
    return loaded
