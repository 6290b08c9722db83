"""The errors that heatprior raises; each message says what was expected, what was given, and the remedy."""

from __future__ import annotations


class HeatpriorError(Exception):
    """Base class of the errors that heatprior raises; the command line prints one line and exits with code 2."""


class InvalidInputError(HeatpriorError, ValueError):
    """An argument has the wrong shape, type or value."""


class PriorFileError(HeatpriorError, ValueError):
    """A file is not a prior, is damaged, or holds parameters that are not those of a density."""


class ImageFileError(HeatpriorError, ValueError):
    """A file is not an image that can be read, or is damaged."""


class TrainingError(HeatpriorError, RuntimeError):
    """Training cannot go on: it diverged, or a run does not fit what was asked of it."""


class OutputFileError(HeatpriorError, OSError):
    """A result cannot be written where it was asked for."""
