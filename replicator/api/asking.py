"""Asks running workers over HTTP whether they do their work; the client side of the probes.

A name may stand for many workers: a headless Service answers with one address per pod, and all of
them are asked.
"""

import http.client
import json
import socket
import ssl
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replicator.clock import Clock
from replicator.errors import InputError
from replicator.observability.metrics import read_exposition
from replicator.observability.release_health import ReleaseHealth, WorkerAnswer, release_health

POLL_SECONDS = 1.0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where workers answer; ``tls`` is how they are known there, None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None


def watch_release(
    urls: Sequence[str],
    *,
    token: str | None,
    authorities: Path | None = None,
    timeout_seconds: float,
    clock: Clock,
    on_waiting: Callable[[tuple[str, ...]], None],
) -> ReleaseHealth:
    """Asks until everything is proven, a canary is lost, or the time is over.

    Args:
        urls: ``http://host:port`` or ``https://host:port`` of workers; a host with several addresses is several workers.
        token: bearer token, where the workers want one for their metrics.
        authorities: PEM file with who signed the workers' certificates; None for the system's.
        timeout_seconds: how long to wait in all.
        clock: the time.
        on_waiting: called with what is missing whenever that changes.

    Raises:
        InputError: a URL cannot be used.
    """
    parsed = [_parsed(url, authorities) for url in urls]
    deadline = clock.monotonic() + timeout_seconds
    first: dict[str, WorkerAnswer] = {}
    reported: tuple[str, ...] = ()
    while True:
        latest = [_ask(place, address, token) for place, address in _workers(parsed)]
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


def _parsed(url: str, authorities: Path | None) -> Place:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in {"http", "https"}:
        raise InputError(
            f"'{url}' is not the address of a worker",
            subject="--url",
            remedy="Write http://HOST:PORT or https://HOST:PORT.",
        )
    if parts.scheme == "http":
        return Place(host, port or 80, None)
    try:
        return Place(host, port or 443, ssl.create_default_context(cafile=authorities))
    except OSError as error:
        raise InputError(
            f"the authorities cannot be read ({error.strerror or error})",
            subject=f"--http-ca-file {authorities}",
            remedy="Give a file with certificates in PEM.",
        ) from error


def _workers(places: Sequence[Place]) -> list[tuple[Place, str]]:
    """Every address behind the names, with the place it is one of."""
    found: dict[tuple[str, int], Place] = {}
    for each in places:
        try:
            answers = socket.getaddrinfo(each.host, each.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            continue  # the name has no address yet, or can have none: no pod runs
        # A worker of both families has two addresses: one of them is enough, and `localhost` is known
        # by both where a worker listens on one.
        family = min((answer[0] for answer in answers), key=lambda kind: kind != socket.AF_INET)
        for kind, *_, place in answers:
            if kind == family:
                found.setdefault((str(place[0]), each.port), each)
    return [
        (place, address) for (address, _), place in sorted(found.items(), key=lambda one: one[0])
    ]


def _ask(place: Place, address: str, token: str | None) -> WorkerAnswer:
    name = f"{address}:{place.port}"
    try:
        status, body = _get(place, address, "/readyz", None)
        answer = json.loads(body)
        reasons = () if status == 200 else tuple(answer.get("reasons", ())) or (f"HTTP {status}",)
        status, body = _get(place, address, "/metrics", token)
        if status != 200:
            return WorkerAnswer(name, (*reasons, f"its metrics answer HTTP {status}"))
        return WorkerAnswer(name, reasons, read_exposition(body))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return WorkerAnswer(name, (f"it does not answer ({error})",))


def _get(place: Place, address: str, path: str, token: str | None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, place.port, timeout=ANSWER_SECONDS)
    headers = {"Host": f"{place.host}:{place.port}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.connect()
        if (
            place.tls is not None
        ):  # each address shows the certificate of the name that was asked for
            connection.sock = place.tls.wrap_socket(connection.sock, server_hostname=place.host)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
