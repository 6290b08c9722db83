"""Who may talk to the server: the page that it served itself, opened with the token, under a name that is its own.

Any page in any browser may send requests to a loopback port. The Host is checked against names that lead here only by
themselves (a foreign name that was pointed at 127.0.0.1 is refused), the Origin against the same names, and everything
but the page's own code needs the token, which only the URL that was printed holds.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


def names_of(host: str, port: int) -> frozenset[str]:
    """What the Host of an honest request may be."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    if not is_loopback(host):
        names |= {f"[{host}]" if ":" in host else host}
    if host in ("0.0.0.0", "::"):
        names |= {socket.gethostname(), socket.getfqdn()}
        names |= {str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    return frozenset(f"{name.lower()}:{port}" for name in names)


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
        """Why a request is not answered."""
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
