"""Who may talk to the server: itself, with the token; no other name, no other page."""

import socket

import pytest

pytest.importorskip("starlette", reason="the page is the extra heatprior[app]")
pytest.importorskip("uvicorn", reason="the page is the extra heatprior[app]")

from heatprior.app.server import Guard, host_names

TOKEN = "right"
GUARD = Guard(None, host_names("127.0.0.1", 8000), TOKEN)


def refusal(path="/api/tabs", query="", **headers):
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return GUARD.refusal({"type": "http", "path": path, "query_string": query.encode(), "headers": pairs})


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_the_page_itself_is_let_through(host):
    assert refusal(host=host, x_heatprior_token=TOKEN) is None
    assert refusal(host=host, query=f"token={TOKEN}") is None
    assert refusal(host=host, origin=f"http://{host}", x_heatprior_token=TOKEN) is None
    assert refusal("/static/main.js", host=host) is None  # holds nothing of anybody


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8000", "x_heatprior_token": TOKEN},
        {"host": "127.0.0.1", "x_heatprior_token": TOKEN},
        {"host": "127.0.0.1:8001", "x_heatprior_token": TOKEN},
        {"x_heatprior_token": TOKEN},
        {"host": "127.0.0.1:8000", "origin": "http://evil.example", "x_heatprior_token": TOKEN},
        {"host": "127.0.0.1:8000", "origin": "null", "x_heatprior_token": TOKEN},
        {"host": "127.0.0.1:8000", "x_heatprior_token": "wrong"},
        {"host": "127.0.0.1:8000", "x_heatprior_token": "ünicode"},
        {"host": "127.0.0.1:8000"},
    ],
)
def test_all_else_is_refused(headers):
    assert "open the URL" in refusal(**headers)


def test_two_hosts_in_one_request_are_refused():
    scope = {
        "type": "http",
        "path": "/static/main.js",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")] * 2,
    }
    assert GUARD.refusal(scope) is not None


def test_an_address_that_was_asked_for_is_a_name_of_the_server():
    assert "192.168.1.7:8000" in host_names("192.168.1.7", 8000)
    assert "192.168.1.7:8000" not in host_names("127.0.0.1", 8000)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_name_of_the_computer_need_not_resolve(monkeypatch, host):
    def refuse(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "gethostname", lambda: "Box")
    names = host_names(host, 8000)
    assert {"127.0.0.1:8000", "localhost:8000", "box:8000"} <= names


def test_browsers_leave_out_the_usual_port():
    assert {"127.0.0.1", "127.0.0.1:80"} <= host_names("127.0.0.1", 80)
    assert "127.0.0.1" not in host_names("127.0.0.1", 8000)
