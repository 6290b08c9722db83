"""`heatprior app`: see it and use it in the browser; all on this computer."""

from __future__ import annotations

from typing import Annotated

import typer

LARGEST_MB = 1000
EXAMPLES = {
    "app": """\
  heatprior app                        opens the browser
  heatprior app --no-browser           prints the URL instead
  heatprior app --host 192.168.1.7     for others on the network; anyone with the URL can use it
"""
}


def app(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; by default only this computer can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 0,
    largest: Annotated[int, typer.Option(metavar="MB", min=1, help="Largest file accepted.")] = LARGEST_MB,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Denoise and restore pictures in the browser, and explore the priors.

    Everything runs on this computer; no data leaves it. Press Ctrl+C to stop.
    """
    from importlib.util import find_spec

    from heatprior.errors import InvalidInputError

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise InvalidInputError(
            "the page needs starlette and uvicorn, which are not installed: pip install 'heatprior[app]'"
        )
    from heatprior.app.server import serve

    def ready(url: str) -> None:
        typer.echo(f"heatprior is at {url}")
        if browser:
            import threading
            import webbrowser

            threading.Timer(0.5, webbrowser.open, [url]).start()

    serve(host, port, largest * 1_000_000, ready)
