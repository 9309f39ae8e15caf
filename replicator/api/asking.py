"""Asks running workers over HTTP whether they do their work; the client side of the probes.

A name may stand for many workers: a headless Service answers with one address per pod, and all of
them are asked.
"""

import http.client
import json
import socket
import urllib.parse
from collections.abc import Callable, Sequence

from replicator.clock import Clock
from replicator.errors import InputError
from replicator.observability.metrics import read_exposition
from replicator.observability.release_health import ReleaseHealth, WorkerAnswer, release_health

POLL_SECONDS = 1.0
ANSWER_SECONDS = 5.0


def watch_release(
    urls: Sequence[str],
    *,
    token: str | None,
    timeout_seconds: float,
    clock: Clock,
    on_waiting: Callable[[tuple[str, ...]], None],
) -> ReleaseHealth:
    """Asks until everything is proven, a canary is lost, or the time is over.

    Args:
        urls: ``http://host:port`` of workers; a host with several addresses is several workers.
        token: bearer token, where the workers want one for their metrics.
        timeout_seconds: how long to wait in all.
        clock: the time.
        on_waiting: called with what is missing whenever that changes.

    Raises:
        InputError: a URL cannot be used.
    """
    parsed = [_parsed(url) for url in urls]
    deadline = clock.monotonic() + timeout_seconds
    first: dict[str, WorkerAnswer] = {}
    reported: tuple[str, ...] = ()
    while True:
        latest = [_ask(host, address, port, token) for host, address, port in _workers(parsed)]
        if any(answer.reasons for answer in latest):
            first.clear()  # what is lost while lanes start is no loss of a running release
        for answer in latest:
            if answer.samples:
                first.setdefault(answer.address, answer)
        health = release_health(list(first.values()), latest)
        waiting = health.waiting_for
        if not waiting or health.lost or clock.monotonic() >= deadline:
            return health
        if waiting != reported:
            reported = waiting
            on_waiting(waiting)
        clock.sleep(POLL_SECONDS)


def _parsed(url: str) -> tuple[str, int]:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme != "http":
        raise InputError(
            f"'{url}' is not the address of a worker",
            subject="--url",
            remedy="Write http://HOST:PORT.",
        )
    return host, port or 80


def _workers(places: Sequence[tuple[str, int]]) -> list[tuple[str, str, int]]:
    found: dict[tuple[str, int], str] = {}
    for host, port in places:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            continue  # the name has no address yet: no pod runs
        # A worker of both families has two addresses: one of them is enough, and `localhost` is known
        # by both where a worker listens on one.
        family = min((each[0] for each in answers), key=lambda kind: kind != socket.AF_INET)
        for kind, *_, place in answers:
            if kind == family:
                found.setdefault((str(place[0]), port), host)
    return [(host, address, port) for (address, port), host in sorted(found.items())]


def _ask(host: str, address: str, port: int, token: str | None) -> WorkerAnswer:
    name = f"{address}:{port}"
    try:
        status, body = _get(host, address, port, "/readyz", None)
        answer = json.loads(body)
        reasons = () if status == 200 else tuple(answer.get("reasons", ())) or (f"HTTP {status}",)
        status, body = _get(host, address, port, "/metrics", token)
        if status != 200:
            return WorkerAnswer(name, (*reasons, f"its metrics answer HTTP {status}"))
        return WorkerAnswer(name, reasons, read_exposition(body))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return WorkerAnswer(name, (f"it does not answer ({error})",))


def _get(host: str, address: str, port: int, path: str, token: str | None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, port, timeout=ANSWER_SECONDS)
    headers = {"Host": f"{host}:{port}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
