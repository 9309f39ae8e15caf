"""Connections to the leaders of many small logs of one cluster, a single one for each broker."""

from replicator.errors import UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.leader import any_broker, find_leader, until_answered


class KeptLeaders:
    """For one thread. A log of its own would connect twice: to ask who leads it, and to its leader."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._connections: dict[tuple[str, int], BrokerConnection] = {}

    def connection(self, topic: str, partition: int, *, deadline: float) -> BrokerConnection:
        """To the partition's leader; others use it too, so who finds it dead gives it back by ``drop``.

        Raises:
            NotFoundError: no such topic or partition.
            ReplicatorError: the cluster cannot be reached, or refuses us.
        """

        def connect() -> BrokerConnection:
            asked = self._asked(deadline)
            try:
                address = find_leader(
                    asked, self._cluster, (topic, partition),
                    client_id=self._client_id, deadline=deadline,
                )  # fmt: skip
            except UnreachableError:
                self.drop(asked)
                raise
            return self._to(address, deadline)

        return until_answered(connect, deadline=deadline)

    def drop(self, connection: BrokerConnection) -> None:
        """Hangs up; the next call connects again."""
        connection.close()
        if self._connections.get(connection.address) is connection:
            del self._connections[connection.address]

    def close(self) -> None:
        """Hangs up on all brokers; another call connects again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _asked(self, deadline: float) -> BrokerConnection:
        for connection in self._connections.values():
            return connection
        found = any_broker(self._cluster, client_id=self._client_id, deadline=deadline)
        self._connections[found.address] = found
        return found

    def _to(self, address: tuple[str, int], deadline: float) -> BrokerConnection:
        held = self._connections.get(address)
        if held is None:
            held = self._connections[address] = BrokerConnection(
                self._cluster, address, client_id=self._client_id, deadline=deadline
            )
        return held
