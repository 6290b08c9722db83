"""Pixels as they are given: their type and scale, their channels, and those that are missing."""
