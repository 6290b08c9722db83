"""The server: the page, the answers to what it asks, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from json import JSONDecodeError
from pathlib import Path
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from heatprior.app import job_routes, picture_routes, prior_routes
from heatprior.app.guard import Guard, names_of
from heatprior.app.overheard import listen
from heatprior.app.picture_routes import Desk, TooLargeError
from heatprior.app.quick import Pace, warm_up
from heatprior.app.scratch import scratch_folder
from heatprior.app.tabs import GoneError, Tabs
from heatprior.app.turns import QuickLooks, SupersededError
from heatprior.errors import HeatpriorError, OutputFileError

STATIC = Path(__file__).parent / "static"
LARGEST_MB = 1000
PATIENCE = 3  # seconds that requests under way have when the server ends


def application(folder: Path, token: str, names: frozenset[str], largest: int = LARGEST_MB * 1_000_000) -> ASGIApp:
    """The server as a function of requests; what it is given lies in `folder` meanwhile."""
    tabs = Tabs(folder)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        tabs.close_all()

    app = Starlette(
        routes=[
            Route("/", _page),
            Mount("/api", routes=[*picture_routes.ROUTES, *job_routes.ROUTES, *prior_routes.ROUTES]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={
            HeatpriorError: _refused,
            SupersededError: _superseded,
            MemoryError: _no_memory,
            JSONDecodeError: _not_understood,
            HTTPException: _not_found,
            Exception: _failed,
        },
        lifespan=life,
    )
    app.state.desk = Desk(tabs, QuickLooks(), Pace(), largest)
    return Guard(app, names, token)


def serve(host: str, port: int, largest: int, ready: Callable[[str], None]) -> None:
    """Run until interrupted; `ready` is called with the URL once it can be opened. A signal ends the process here."""
    try:
        _serve(host, port, largest, ready)
    except SystemExit as ended:
        # Work under way may be inside compiled code, whose threads the interpreter's own end would abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(str(ended.code)))


def _serve(host: str, port: int, largest: int, ready: Callable[[str], None]) -> None:
    with _listening(host, port) as server_socket, scratch_folder() as folder:
        listen()
        address = server_socket.getsockname()
        token = secrets.token_urlsafe(24)
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        url = f"http://{f'[{shown}]' if ':' in shown else shown}:{address[1]}/?token={token}"
        app = application(folder, token, names_of(host, address[1]), largest)
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=PATIENCE,
            server_header=False,
            proxy_headers=False,
        )
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            signal.signal(number, _end)
        Thread(target=warm_up, daemon=True).start()
        ready(url)
        uvicorn.Server(config).run(sockets=[server_socket])


def _end(number: int, _: object) -> None:
    """Leave by the way on which the temporary folder goes, not at once."""
    raise SystemExit(128 + number)


def _listening(host: str, port: int) -> socket.socket:
    """A socket at the address; at a free port if that is 0."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)  # from now on nobody is turned away, though the first answer takes a moment
    except OSError as error:
        raise OutputFileError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}; choose another, or leave out --port"
        ) from error
    return listening


async def _page(_: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html")


async def _refused(_: Request, error: Exception) -> Response:
    code = 410 if isinstance(error, GoneError) else 413 if isinstance(error, TooLargeError) else 422
    return JSONResponse({"error": " ".join(str(error).split())}, status_code=code)


async def _superseded(_: Request, __: Exception) -> Response:
    return Response(status_code=204)


async def _not_understood(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "the request is no JSON; reload the page"}, 422)


async def _no_memory(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "not enough memory; close other pictures, or cut this one into parts"}, 422)


async def _not_found(_: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 404
    return JSONResponse({"error": "there is nothing here; open the URL that heatprior app printed"}, code)


async def _failed(_: Request, error: Exception) -> Response:
    sys.stderr.write(f"heatprior: error: {type(error).__name__}: {error}\n")
    return JSONResponse({"error": f"something unexpected happened ({type(error).__name__}); please report it"}, 500)
