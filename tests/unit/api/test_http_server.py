import asyncio
import contextlib
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from replicator.api.server import address as address_module
from replicator.api.server.address import BoundPort, HttpAddress, bind, parse_http_address
from replicator.api.server.start import start_http
from replicator.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, HttpAddress("127.0.0.1", 8080, asked=False)),
        ("127.0.0.1:9000", HttpAddress("127.0.0.1", 9000, asked=True)),
        ("0.0.0.0:8080", HttpAddress("0.0.0.0", 8080, asked=True)),  # noqa: S104
        (":8080", HttpAddress("0.0.0.0", 8080, asked=True)),  # noqa: S104
        ("9000", HttpAddress("127.0.0.1", 9000, asked=True)),
        ("[::1]:0", HttpAddress("::1", 0, asked=True)),
        ("localhost:0", HttpAddress("localhost", 0, asked=True)),
    ],
)
def test_addresses_are_read(text, expected):
    assert parse_http_address(text) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", "host:port", "host:65536", "::1:80", "h:-1"])
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(InputError) as caught:
        parse_http_address(text)
    assert "127.0.0.1:8080" in caught.value.remedy


@contextlib.contextmanager
def listening(*, port=0):
    with socket.create_server(("127.0.0.1", port)) as taken:
        yield taken.getsockname()[1]


def closed(bound: BoundPort) -> BoundPort:
    bound.listener.close()
    return bound


def test_a_busy_port_that_was_asked_for_is_an_error_that_names_it():
    with listening() as port, pytest.raises(InputError) as caught:
        bind(HttpAddress(port=port, asked=True))
    assert f"port {port} is in use" in caught.value.message
    assert caught.value.exit_code == 2


def test_a_busy_default_port_moves_on_and_says_so():
    with listening() as port:
        bound = closed(bind(HttpAddress(port=port, asked=False)))
    assert bound.port != port
    assert bound.notice == (
        f"port {port} is in use, so the console and API are on port {bound.port}"
    )


def test_when_no_near_port_is_free_the_system_chooses(monkeypatch):
    monkeypatch.setattr(address_module, "_TRIES", 1)
    with listening() as port:
        bound = closed(bind(HttpAddress(port=port, asked=False)))
    assert bound.port != port
    assert str(bound.port) in bound.notice


def test_port_zero_takes_any_free_port():
    bound = closed(bind(HttpAddress(port=0, asked=True)))
    assert bound.port > 0
    assert bound.notice == ""
    assert bound.url == f"http://127.0.0.1:{bound.port}"


def test_all_addresses_are_shown_as_one_a_person_can_open():
    bound = closed(bind(HttpAddress(host="0.0.0.0", port=0, asked=True)))  # noqa: S104
    assert bound.url == f"http://127.0.0.1:{bound.port}"


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_refused(host):
    with pytest.raises(InputError, match="cannot listen there"):
        bind(HttpAddress(host=host, port=0, asked=True))


def test_it_runs_in_a_loop_and_leaves_its_signals_alone(worker):
    async def scenario():
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        server = await start_http(worker, bound=bind(HttpAddress(port=0, asked=True)), token=None)
        during = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"{server.url}/livez")
        await server.stop()
        await server.stop()
        return before == during, answer.status_code, server.url

    same, status_code, url = asyncio.run(scenario())
    assert same
    assert status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/livez")


def test_a_request_in_flight_is_answered_before_it_stops(worker):
    async def scenario():
        entered, go_on = asyncio.Event(), asyncio.Event()

        async def slow():
            entered.set()
            await go_on.wait()
            return {"entries": ["late"]}

        worker.history = slow
        server = await start_http(worker, bound=bind(HttpAddress(port=0, asked=True)), token=None)
        async with httpx.AsyncClient() as client:
            request = asyncio.create_task(client.get(f"{server.url}/api/v1/history"))
            await entered.wait()
            stopping = asyncio.create_task(server.stop())
            go_on.set()
            answer = await request
            await stopping
        return answer.json()

    assert asyncio.run(scenario()) == {"entries": ["late"]}


def test_importing_the_server_does_not_import_the_web_framework():
    code = "import sys, replicator.api.server.start; sys.exit('fastapi' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
