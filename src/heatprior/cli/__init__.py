"""The command line: parse, call, report. A refusal is one line on stderr and exit code 2, never a traceback.

What is slow to import is imported inside the commands, so that `heatprior --help` is instant. Plain values of options
are read without pydantic, which newer releases of typer load for them: 0.15 s of every start. What is no plain name,
path, choice or default is left to typer, and so are the words for what is wrong with it.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from heatprior import __version__
from heatprior.errors import HeatpriorError, InvalidInputError

# Each command, and the module that has the function of that name, and its EXAMPLES.
COMMANDS = {
    "denoise": "denoise",
    "deblur": "restore",
    "inpaint": "restore",
    "upscale": "restore",
    "noise": "noise",
    "app": "app",
    "evaluate": "evaluate",
    "sample": "priors",
    "show": "priors",
    "train": "train",
    "warmup": "warmup",
}
REFUSED = 2
INTERRUPTED = 130
# What typer raises for wrong usage, ClickException: newer typers hide the click that it comes from.
ParsingError = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])
EXAMPLES = """\
  heatprior denoise photo.jpg               writes photo-denoised.jpg
  heatprior deblur photo.png --gaussian 1.6 also inpaint, upscale
  heatprior noise noisy.png                 how much noise there is, and where
  heatprior app                             the same in the browser
  heatprior evaluate photos                 measure denoising on clean images
  heatprior sample -o patches.png           draw patches from a prior
  heatprior show patch7 -o patch7.png       see its filters and potentials
  heatprior train photos -o mine            learn a prior from a folder of images
"""


class NotPlainError(Exception):
    """A value that is left to typer."""


def _quicken(kind: Any) -> Any:
    """A kind of command whose options take plain values at once; typer's own method is called only if need be."""

    class Quick(kind):  # type: ignore[misc]
        def get_params(self, ctx: Any) -> list[Any]:
            found: list[Any] = super().get_params(ctx)
            for parameter in found:
                if hasattr(parameter, "type_descriptor"):
                    vars(parameter)["process_value"] = partial(_process_value, parameter)
            return found

    return Quick


def _process_value(parameter: Any, context: Any, value: Any) -> Any:
    described = parameter.type_descriptor
    try:
        found = _value(described.annotation, described.parameter_info, value, may_lack=not parameter.required)
    except NotPlainError:
        return type(parameter).process_value(parameter, context, value)
    return found if parameter.callback is None else parameter.callback(context, parameter, found)


def _value(kind: Any, limits: Any, value: Any, *, may_lack: bool = False) -> Any:
    """Return a text, a switch, a default, or a path that must at most be readable; leave all else to typer."""
    if value is None and may_lack and get_origin(kind) is None:
        return None
    if get_origin(kind) is list and isinstance(value, list | tuple) and value:
        return [_value(get_args(kind)[0], limits, item) for item in value]
    if kind in (str, bool, int, float) and type(value) is kind and (kind in (str, bool) or value == limits.default):
        return value
    asked = limits.exists or limits.writable or limits.resolve_path or limits.allow_dash or limits.path_type
    if kind is not Path or not isinstance(value, str) or asked or not (limits.file_okay and limits.dir_okay):
        raise NotPlainError
    if limits.readable and os.path.exists(value) and not os.access(value, os.R_OK):  # noqa: PTH110 (no OSError)
        raise NotPlainError
    return Path(value)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"heatprior {__version__}")
        raise typer.Exit


def heatprior(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback acts on it)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Remove noise from images, restore them, and train image priors that are known at every noise level."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _as_epilog(examples: str) -> str:
    return f"\b\nExamples:\n{examples}"  # the \b keeps the lines as they are


@cache
def application(commands: tuple[str, ...] = tuple(COMMANDS)) -> typer.Typer:
    """The command line with all commands, or with some: a run needs one, and describing the others takes time."""
    app = typer.Typer(
        name="heatprior",
        cls=_quicken(TyperGroup),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True, epilog=_as_epilog(EXAMPLES))(heatprior)
    for name in commands:
        module = import_module(f"heatprior.cli.{COMMANDS[name]}")
        app.command(epilog=_as_epilog(module.EXAMPLES[name]), cls=_quicken(TyperCommand))(getattr(module, name))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the entry point of `heatprior` and `python -m heatprior`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks × or σ is no reason to fail
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if "" in arguments:  # which a path would take for the current folder
            raise InvalidInputError("an argument is empty; give a name ('.' for the current folder), or leave it out")
        with warnings.catch_warnings():
            warnings.showwarning = cast(Any, _warn)
            asked = tuple(arguments[:1]) if arguments and arguments[0] in COMMANDS else tuple(COMMANDS)
            arguments = [_complete(*pair) for pair in zip(arguments, [*arguments, ""][1:], strict=True)]
            code = application(asked)(arguments, prog_name="heatprior", standalone_mode=False)
    except (HeatpriorError, OSError) as error:
        return _refuse(str(error))
    except ParsingError as error:
        command = error.ctx.command_path if error.ctx else "heatprior"
        return _refuse(f"{error.format_message()} (see {command} --help)")
    except MemoryError as error:
        return _refuse(f"not enough memory; ask for less ({str(error) or 'MemoryError'})")
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _complete(argument: str, following: str) -> str:
    """Give an option that may stand alone the value that it then has."""
    return "--volume=any" if argument == "--volume" and following not in ("z", "t") else argument


def _warn(message: Warning | str, *_: object) -> None:
    """Print an uncaught warning in one line, without the source that it came from."""
    typer.echo(f"heatprior: warning: {' '.join(str(message).split())}", err=True)


def _refuse(reason: str) -> int:
    typer.echo(f"heatprior: error: {' '.join(reason.split())}", err=True)
    return REFUSED
