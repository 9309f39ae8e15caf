import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from replicator.api.routes.provider import PauseTarget
from replicator.api.server.address import HttpAddress, bind
from replicator.api.server.start import http_in_thread
from replicator.errors import InputError, NotFoundError
from replicator.observability.health import HealthVerdict

STATUS: dict[str, Any] = {
    "topology": "retail",
    "planHash": "9f2c41d07b",
    "at": "2026-01-01T00:00:00Z",
    "links": [],
    "flows": [],
}

YES = HealthVerdict(ok=True)


@dataclass
class FakeWorker:
    """A worker with nothing behind it: knows one flow with one topic of two partitions."""

    live_verdict: HealthVerdict = YES
    ready_verdict: HealthVerdict = YES
    failure: Exception | None = None
    changes: list[tuple[Any, ...]] = field(default_factory=list)

    def live(self) -> HealthVerdict:
        return self.live_verdict

    def ready(self) -> HealthVerdict:
        return self.ready_verdict

    async def status(self) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        return copy.deepcopy(STATUS)

    async def topology(self) -> dict[str, Any]:
        return {"topology": "retail", "clusters": [], "links": [], "password": "leaked"}

    async def history(self) -> dict[str, Any]:
        return {"entries": []}

    async def groups(self) -> dict[str, Any]:
        return {"groups": [], "problems": []}

    async def metrics(self) -> bytes:
        return b"# TYPE replicator_plan_info gauge\n"

    async def pause(self, target: PauseTarget) -> dict[str, Any]:
        self._check(target)
        self.changes.append(("pause", target))
        return {"paused": target.flow}

    async def resume(self, target: PauseTarget, *, accept_gap: bool) -> dict[str, Any]:
        self._check(target)
        if accept_gap and target.partition is None:
            raise InputError("a gap is accepted for one partition", subject=target.flow)
        self.changes.append(("resume", target, accept_gap))
        return {"resumed": target.flow}

    def _check(self, target: PauseTarget) -> None:
        if target.flow != "east->west" or target.topic not in {None, "orders"}:
            raise NotFoundError("no such flow or topic", subject=target.flow, remedy="See status.")


TOKEN = "correct-horse-battery"


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def reader_url(worker):
    """A server on loopback without a token."""
    bound = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=bound, token=None) as url:
        yield url


@pytest.fixture
def operator_url(worker):
    """A server on loopback with a token."""
    bound = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=bound, token=TOKEN) as url:
        yield url


@pytest.fixture
def operator_headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def clusterwide_url(worker):
    """A server bound to all addresses with a token, as the chart runs it."""
    bound = bind(HttpAddress(host="0.0.0.0", port=0, asked=True))  # noqa: S104
    with http_in_thread(worker, bound=bound, token=TOKEN) as url:
        yield url
