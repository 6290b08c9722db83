"""Plain values of options without pydantic, which newer releases of typer load for them: 0.15 s of every start.

What is no plain number, name, path or choice is left to typer, and so are the words for what is wrong with it.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperCommand, TyperGroup

WHOLE = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class NotPlainError(Exception):
    """A value that is left to typer."""


class QuickCommand(TyperCommand):
    """A command whose options take their plain values at once."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options, that for help among them."""
        return [_speed_up(parameter) for parameter in super().get_params(ctx)]


class QuickGroup(TyperGroup):
    """What the commands belong to."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, that for help among them."""
        return [_speed_up(parameter) for parameter in super().get_params(ctx)]


def _speed_up(parameter: Any) -> Any:
    """The option, by which typer's own method is called only if need be; older releases do without pydantic."""
    if hasattr(parameter, "type_descriptor"):
        vars(parameter)["process_value"] = partial(_process_value, parameter)
    return parameter


def _process_value(parameter: Any, context: Any, value: Any) -> Any:
    described = parameter.type_descriptor
    try:
        found = _value(described.annotation, described.parameter_info, parameter.required, value)
    except NotPlainError:
        return type(parameter).process_value(parameter, context, value)
    return found if parameter.callback is None else parameter.callback(context, parameter, found)


def _value(kind: Any, limits: Any, required: bool, value: Any) -> Any:
    if value is None and not required and get_origin(kind) is None:
        return None
    if limits.parser is not None or limits.clamp:
        raise NotPlainError
    if get_origin(kind) is list and isinstance(value, list | tuple) and value:
        return [_one(get_args(kind)[0], limits, item) for item in value]
    return _one(kind, limits, value)


def _one(kind: Any, limits: Any, value: Any) -> Any:
    if kind in (str, bool) and isinstance(value, kind):
        return value
    if kind is Path and isinstance(value, str):
        return _path(limits, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        for choice in kind:
            if value is choice or value == choice.value:
                return choice
    if kind is int or kind is float:
        return _number(kind, limits, value)
    raise NotPlainError


def _number(kind: Any, limits: Any, value: Any) -> Any:
    pattern = WHOLE if kind is int else DECIMAL
    if type(value) is not kind and not (isinstance(value, str) and pattern.fullmatch(value)):
        raise NotPlainError
    number = kind(value)
    if (limits.min is not None and not number >= limits.min) or (limits.max is not None and not number <= limits.max):
        raise NotPlainError
    return number


def _path(limits: Any, value: str) -> Path:
    """A path of which nothing but that it can be read, if it is there, is asked."""
    asked = limits.exists or limits.writable or limits.resolve_path or limits.allow_dash or limits.path_type
    unreadable = limits.readable and os.path.exists(value) and not os.access(value, os.R_OK)  # noqa: PTH110 (no OSError)
    if asked or unreadable or not (limits.file_okay and limits.dir_okay):
        raise NotPlainError
    return Path(value)
