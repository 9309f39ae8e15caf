"""Telling whether the consumer groups of a cluster have changed, without an admin client.

Each broker names the groups it coordinates. Their answers are compared byte by byte with the last ones;
connections stay open. An admin client that is kept for this costs threads that wake up all the time.
"""

import time

from replicator.errors import ReplicatorError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import ListGroupsRequest, MetadataRequest

_NEWEST = 3
"""Newer versions tell states too, which change with every member that comes and goes."""

_METADATA_VERSION = 9
BROKERS_SECONDS = 60.0
"""How often brokers are looked up: one that is new may coordinate groups."""


class GroupChanges:
    """Compares the names of groups with the last look; for one thread at a time."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._brokers: list[tuple[BrokerConnection, bytes]] = []
        self._found_at = float("-inf")
        self._last: list[bytes] | None = None

    def any(self, *, timeout_seconds: float = 10.0) -> bool:
        """Whether this look differs from the last one; the first always does.

        Raises:
            ReplicatorError: a broker cannot be reached, or refuses us; the next look differs.
        """
        now = time.monotonic()
        deadline = now + timeout_seconds
        try:
            if now - self._found_at >= BROKERS_SECONDS:
                self._find(deadline)
                self._found_at = now
            answers = [
                connection.exchange(question, deadline=deadline)
                for connection, question in self._brokers
            ]
        except ReplicatorError:
            self.close()
            raise
        before, self._last = self._last, answers
        return answers != before

    def close(self) -> None:
        """Hangs up, and forgets what it saw."""
        self._hang_up()
        self._last = None

    def _find(self, deadline: float) -> None:
        """Connects to every broker, in order of their ids."""
        self._hang_up()
        with any_broker(self._cluster, client_id=self._client_id, deadline=deadline) as connection:
            request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
            answer = connection.call(request, newest=_METADATA_VERSION, deadline=deadline)
        require_live_brokers(answer.brokers, self._cluster)
        for broker in sorted(answer.brokers, key=lambda one: one.node_id):
            connection = BrokerConnection(
                self._cluster,
                (broker.host, broker.port),
                client_id=self._client_id,
                deadline=deadline,
            )
            try:
                _, question = connection.encode(ListGroupsRequest(), newest=_NEWEST)
            except ReplicatorError:
                connection.close()
                raise
            self._brokers.append((connection, question))

    def _hang_up(self) -> None:
        for connection, _ in self._brokers:
            connection.close()
        self._brokers = []
        self._found_at = float("-inf")
