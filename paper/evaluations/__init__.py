"""Measurements of the library, each a script that writes a record of its own name."""
