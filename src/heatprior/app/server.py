"""The server: the page, who may talk to it, the answers to what it asks, and an end that leaves nothing behind.

Any page in any browser may send requests to a loopback port. The Host is checked against names that lead here only by
themselves (a foreign name that was pointed at 127.0.0.1 is refused), the Origin against the same names, and everything
but the page's own code needs the token, which only the URL that was printed holds.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heatprior.app.jobs import QuickLooks, SupersededError, capture_warnings, describe_failure
from heatprior.app.routes import ROUTES, ServerState, TooLargeError
from heatprior.app.tabs import GoneError, Tabs, scratch_folder
from heatprior.app.views import OF_DENOISING, OF_RESTORING, Pace, warm_up
from heatprior.errors import HeatpriorError, OutputFileError

STATIC = Path(__file__).parent / "static"
HTTP_PORT = 80
PATIENCE = 3  # seconds that requests under way have when the server ends
TOKEN_HEADER = "x-heatprior-token"
CODE = "/static/"  # the page's own code, which holds nothing of anybody
PROTECTION = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def application(folder: Path, token: str, names: frozenset[str], largest: int) -> ASGIApp:
    """The server as a function of requests; what it is given lies in `folder` meanwhile."""
    tabs = Tabs(folder)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        tabs.close_all()

    app = Starlette(
        routes=[
            Route("/", _answer_page),
            Mount("/api", routes=ROUTES),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers=dict.fromkeys(
            (HeatpriorError, SupersededError, MemoryError, HTTPException, Exception), _answer_error
        ),
        lifespan=life,
    )
    app.state.shared = ServerState(tabs, QuickLooks(), Pace(*OF_DENOISING), Pace(*OF_RESTORING), largest)
    return Guard(app, names, token)


def serve(host: str, port: int, largest: int, ready: Callable[[str], None]) -> None:
    """Run until interrupted; `ready` is called with the URL once it can be opened. A signal ends the process here."""
    try:
        with _open_socket(host, port) as server_socket, scratch_folder() as folder:
            capture_warnings()
            port, token = server_socket.getsockname()[1], secrets.token_urlsafe(24)
            app = application(folder, token, host_names(host, port), largest)
            config = uvicorn.Config(
                app, log_level="critical", access_log=False, timeout_graceful_shutdown=PATIENCE,
                server_header=False, proxy_headers=False,
            )  # fmt: skip
            for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
                signal.signal(number, lambda ended, _: sys.exit(128 + ended))  # by the way on which the folder goes
            Thread(target=warm_up, daemon=True).start()
            shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
            ready(f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={token}")
            uvicorn.Server(config).run(sockets=[server_socket])
    except SystemExit as ended:
        # Work under way may be inside compiled code, whose threads the interpreter's own end would abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(str(ended.code)))


def _open_socket(host: str, port: int) -> socket.socket:
    """Open a socket at the address; at a free port if that is 0."""
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


async def _answer_page(_: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html")


async def _answer_error(_: Request, error: Exception) -> Response:
    """Say in one line what failed."""
    if isinstance(error, SupersededError):
        return Response(status_code=204)
    if isinstance(error, HTTPException):
        words = "there is nothing here; open the URL that heatprior app printed"
        return JSONResponse({"error": words}, error.status_code)
    codes = {GoneError: 410, TooLargeError: 413, HeatpriorError: 422, MemoryError: 422, Exception: 500}
    code = next(code for kind, code in codes.items() if isinstance(error, kind))
    return JSONResponse({"error": describe_failure(error)}, code)


def host_names(host: str, port: int) -> frozenset[str]:
    """List what the Host of an honest request may be."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    if not is_loopback(host):
        names |= {f"[{host}]" if ":" in host else host}
    if host in ("0.0.0.0", "::"):
        names |= {socket.gethostname(), socket.getfqdn(), *_own_addresses()}
    ports = ("", f":{port}") if port == HTTP_PORT else (f":{port}",)  # which browsers leave out
    return frozenset(f"{name.lower()}{port}" for name in names for port in ports)


def _own_addresses() -> set[str]:
    """The addresses of this computer, as far as it knows them: its name need not resolve."""
    found = set()
    with suppress(OSError):
        found |= {str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outwards:
        outwards.connect(("192.0.2.1", 9))  # sends nothing; an address that is nobody's, by RFC 5737
        found.add(str(outwards.getsockname()[0]))
    return found


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this computer alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Let through what is asked under one of `names`, by no other page, with the token; refuse the rest in one line."""

    def __init__(self, app: ASGIApp, names: Iterable[str], token: str) -> None:
        self._app, self._names, self._token = app, frozenset(names), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # the server's own start and end; it has no sockets of another kind
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in PROTECTION.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self.refusal(scope)
        answer = self._app if refusal is None else JSONResponse({"error": refusal}, status_code=403)
        await answer(scope, receive, protected)

    def refusal(self, scope: Scope) -> str | None:
        """Say why a request is refused; None if it is not."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [host := headers.get("host", "")] or host.lower() not in self._names:
            return "the request was sent to another name than this server has; open the URL that heatprior app printed"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self._names}:
            return "the request came from another page; open the URL that heatprior app printed"
        if scope["path"].startswith(CODE):
            return None
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        given = headers.get(TOKEN_HEADER) or asked
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return "the token is missing or wrong; open the URL that heatprior app printed"
        return None
