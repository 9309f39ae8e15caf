"""What the HTTP face needs from the worker behind it. ``wiring`` joins the two."""

from dataclasses import dataclass
from typing import Any, Protocol

from replicator.observability.health import HealthVerdict

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """What is to be paused or resumed: a flow, one of its topics, or one partition of that."""

    flow: str
    topic: str | None = None
    partition: int | None = None


class StatusProvider(Protocol):
    """Answers for one worker.

    All methods are called on the server's event loop: what blocks belongs in a thread. Errors of
    the one tree (``replicator.errors``) become an answer with code, subject and remedy.
    """

    def live(self) -> HealthVerdict:
        """Whether the worker's own loops ran recently. Must not wait for anything."""
        ...

    def ready(self) -> HealthVerdict:
        """Whether the worker does what it is there for. Must not wait for anything."""
        ...

    async def status(self) -> JsonObject:
        """The object of ``replicator status -o json``."""
        ...

    async def topology(self) -> JsonObject:
        """Clusters, links and policies; never a secret. See ``topology_view``."""
        ...

    async def history(self) -> JsonObject:
        """The object of ``replicator history -o json``."""
        ...

    async def groups(self) -> JsonObject:
        """The object of ``replicator groups -o json``; a few seconds old at most."""
        ...

    async def metrics(self) -> bytes:
        """One scrape in the Prometheus text format."""
        ...

    async def pause(self, target: PauseTarget) -> JsonObject:
        """Pauses durably; returns what is paused now."""
        ...

    async def resume(self, target: PauseTarget, *, accept_gap: bool) -> JsonObject:
        """Resumes; with ``accept_gap`` a partition that stopped on lost data goes on."""
        ...
