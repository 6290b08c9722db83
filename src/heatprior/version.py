"""The version of the package, for its own parts and for cards and records."""

__version__ = "0.1.0"
