"""What clients without a token may try on a worker's port, and that probes are answered meanwhile."""

import asyncio
import contextlib
import http.client
import socket
import time

import httpx
import pytest

from replicator.api.access.admission import MAX_REQUESTS
from replicator.api.server import connection

PROMPT_SECONDS = 1.0
STATUS = (
    b"GET /api/v1/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer correct-horse-battery\r\n\r\n"
)


def address(url):
    _, _, port = url.removeprefix("http://").partition(":")
    return "127.0.0.1", int(port)


def answers_promptly(url, path="/livez"):
    """The status code. A single try may show how busy the machine is: the fastest of three counts."""
    tries = [answered(url, path) for _ in range(3)]
    assert min(seconds for _, seconds in tries) < PROMPT_SECONDS
    assert len({code for code, _ in tries}) == 1
    return tries[0][0]


def answered(url, path):
    began = time.monotonic()
    client = http.client.HTTPConnection(*address(url), timeout=20)
    try:
        client.request("GET", path)
        return client.getresponse().status, time.monotonic() - began
    finally:
        client.close()


@pytest.fixture
def connect(clusterwide_url):
    """Opens connections to the server and sends the same beginning on each."""
    with contextlib.ExitStack() as stack:

        def open_many(count, beginning=b""):
            found = []
            for _ in range(count):
                one = stack.enter_context(socket.create_connection(address(clusterwide_url), 20))
                one.sendall(beginning)
                found.append(one)
            return found

        yield open_many


@pytest.mark.parametrize("letter", ["a", "key", "-----BEGIN ", "token ", "password=", "bearer "])
def test_a_path_of_16000_letters_is_refused_within_a_second(clusterwide_url, letter):
    path = "/" + (letter * 16_000)[:16_000].replace(" ", "%20")
    assert answers_promptly(clusterwide_url, path[:24_000]) == 414


@pytest.mark.parametrize(
    "beginning", [b"", b"GET /livez HT", b"POST /api/v1/pause HTTP/1.1\r\nA: "]
)
def test_probes_are_answered_while_500_connections_are_silent(clusterwide_url, connect, beginning):
    connect(500, beginning)
    for path in ("/livez", "/readyz"):
        assert answers_promptly(clusterwide_url, path) == 200


def test_probes_are_answered_while_status_is_slow(clusterwide_url, connect, worker):
    entered, leave = [], asyncio.Event()

    async def slow():
        entered.append(asyncio.get_running_loop())
        await leave.wait()
        return {}

    worker.status = slow
    asked = connect(MAX_REQUESTS + 8, STATUS)
    try:
        deadline = time.monotonic() + 30
        while len(entered) < MAX_REQUESTS and time.monotonic() < deadline:
            assert answers_promptly(clusterwide_url) == 200
        assert answers_promptly(clusterwide_url, "/readyz") == 200
    finally:
        entered[0].call_soon_threadsafe(leave.set)
    codes = [one.recv(4096).split()[1] for one in asked]
    assert codes.count(b"200") == MAX_REQUESTS
    assert codes.count(b"503") == 8


def test_a_request_that_never_ends_is_cut(monkeypatch, clusterwide_url, connect):
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.2)
    for beginning in (
        b"",
        b"GET /livez HTTP/1.1\r\nHost: a\r\n",
        b"GET /livez HTTP/1.0\r\n\r\nGET /",
    ):
        (one,) = connect(1, beginning)
        one.settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            while one.recv(4096):
                pass


def test_a_client_that_does_not_read_its_answer_is_cut(
    monkeypatch, clusterwide_url, connect, worker
):
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.2)

    async def large():
        return {"text": "x" * 50_000_000}

    worker.status = large
    (one,) = connect(1, STATUS)
    one.settimeout(20)
    deadline = time.monotonic() + 20
    with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012
        while time.monotonic() < deadline:  # the other end shows only to one who writes
            one.sendall(b"x")


def test_a_kept_connection_is_used_again(clusterwide_url):
    with httpx.Client() as client:
        assert [client.get(f"{clusterwide_url}/livez").status_code for _ in range(3)] == [200] * 3
