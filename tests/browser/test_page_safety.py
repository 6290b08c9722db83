"""What the server refuses, what survives of it, and that tabs do not meet."""

import http.client
import json
import os
import signal
import time

import pytest
from page_server import GONE, PATIENCE, Server
from steps import choose, give, until, wait_for_whole


def ask(server, method="GET", path="/api/priors", body=None, **headers):
    connection = http.client.HTTPConnection(server.address, timeout=PATIENCE)
    connection.putrequest(method, path, skip_host=True)
    sent = {"Host": server.address, "X-Heatprior-Token": server.token, **headers}
    for name, value in sent.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body or b"")))
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, dict(answer.getheaders())


def test_an_honest_request_is_answered_with_protection(server):
    status, content, headers = ask(server)
    assert (status, "patch7" in json.loads(content)["names"]) == (200, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"X-Heatprior-Token": "wrong"},
        {"X-Heatprior-Token": None},
    ],
)
def test_foreign_requests_are_refused(server, headers):
    status, content, _ = ask(server, **headers)
    assert status in (400, 403)
    assert b"names" not in content


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_is_changed_without_the_token(server, method):
    assert ask(server, method, "/api/tabs", **{"X-Heatprior-Token": None})[0] == 403


def test_names_and_paths_that_lead_elsewhere_are_refused(server):
    tab = json.loads(ask(server, "POST", "/api/tabs")[1])["tab"]
    for name in ("../up.png", "..%2Fup.png", "%2Fetc%2Fpasswd", "a%5Cb.png", "..", "a%00.png"):
        status, content, _ = ask(server, "PUT", f"/api/tabs/{tab}/pictures?name={name}", b"x")
        assert status == 422, name
        assert "plain file name" in json.loads(content)["error"]
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/etc/passwd"):
        status, content, _ = ask(server, path=path)
        assert status == 404, path
        assert b"import" not in content
    assert ask(server, path=f"/api/tabs/{tab}/pictures/..%2f..%2f/view?x=0&y=0&w=1&h=1&step=1")[0] in (404, 410)
    assert ask(server, path="/api/priors/..%2f..%2fetc")[0] in (404, 422)
    assert ask(server, path="/api/tabs/nobody/jobs/none")[0] == 410


def test_nonsense_is_answered_in_one_line(server):
    tab = json.loads(ask(server, "POST", "/api/tabs")[1])["tab"]
    for body in (b"", b"x" * 100, b"\x89PNG\r\n\x1a\n" + b"\0" * 50):
        status, content, _ = ask(server, "PUT", f"/api/tabs/{tab}/pictures?name=a.png", body)
        error = json.loads(content)["error"]
        assert status == 422
        assert "a.png" in error
        assert "\n" not in error
        assert str(server.scratch) not in error
    assert ask(server)[0] == 200


def given_files(server):
    """Names of the files in its folder; `walk` does not mind that some go meanwhile."""
    return {name for _, _, names in os.walk(server.folders()[0]) for name in names}


def test_two_tabs_have_their_own_pictures_and_a_closed_one_leaves_nothing(open_page, server, pictures):
    one, other = open_page(), open_page()
    give(one, pictures / "deep.png")
    give(other, pictures / "colour.jpg")
    for page in (one, other):
        choose(page, quality="fast")
    wait_for_whole(one)
    wait_for_whole(other)
    assert one.inner_text("#name") == "deep.png"
    assert other.inner_text("#name") == "colour.jpg"
    assert {"deep.png", "colour.jpg"} <= given_files(server)
    other.goto("about:blank")
    end = time.monotonic() + PATIENCE
    while "colour.jpg" in given_files(server):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "deep.png" in given_files(server)


def test_ten_tabs_share_the_processors(server, pictures):
    """When the first of ten equal jobs ends, all others are well on their way."""
    tabs = [json.loads(ask(server, "POST", "/api/tabs")[1])["tab"] for _ in range(10)]
    pixels = (pictures / "middle.png").read_bytes()
    places = []
    for tab in tabs:
        picture = json.loads(ask(server, "PUT", f"/api/tabs/{tab}/pictures?name=a.png", pixels)[1])["picture"]
        places.append((tab, picture))
    wanted = json.dumps({"kind": "denoise", "sigma": 20, "error": True}).encode()  # denoised twice: several turns each
    jobs = []
    for tab, picture in places:
        path = f"/api/tabs/{tab}/pictures/{picture}/jobs"
        job = json.loads(ask(server, "POST", path, wanted, **{"Content-Type": "application/json"})[1])["job"]
        jobs.append(f"/api/tabs/{tab}/jobs/{job}")
    end = time.monotonic() + PATIENCE
    states = []
    while not any(state["state"] == "done" for state in states):
        assert time.monotonic() < end
        states = [json.loads(ask(server, path=job)[1]) for job in jobs]
    progress = sorted(state["progress"] for state in states)
    for tab in tabs:
        ask(server, "POST", f"/api/tabs/{tab}/close")
    assert progress[0] > 0.0, progress
    assert progress[5] > 0.4, progress


def test_a_server_that_is_killed_is_told_and_its_folder_swept_by_the_next(open_page, tmp_path, pictures):
    server = Server(tmp_path)
    page = open_page(server.url, expected=GONE)
    give(page, pictures / "middle.png")
    choose(page, sigma="20", quality="best")
    until(page, "document.getElementById('whole-state').textContent.startsWith('Denoising')")
    os.kill(server.process.pid, signal.SIGKILL)
    server.gone()
    page.wait_for_selector("#lost:not([hidden])")
    assert "Start heatprior app again" in page.inner_text("#lost")
    left = server.folders()
    assert len(left) == 1
    second = Server(tmp_path)
    assert left[0] not in second.folders()
    assert second.end() == 128 + signal.SIGTERM
    assert second.folders() == []
