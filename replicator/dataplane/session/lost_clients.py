"""Finds out that a client of the lane has lost all brokers of a cluster that answers others.

Such a client says nothing and reads or writes nothing, for good. That its cluster is away looks the same to it, so
another client is asked: an outage is waited out with the clients there are.
"""

from collections.abc import Callable
from typing import NoReturn

from replicator.errors import ReplicatorError, UnreachableError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import Producer
from replicator.kafka.clients.lost_brokers import Asked, LostBrokers
from replicator.topology.plan import ClusterPlan

_ASKED_ABOUT = "__consumer_offsets"
_OTHERS_SECONDS = 3.0


class LostClients:
    """Of one session; for the lane's thread. What it raises ends the session."""

    def __init__(
        self,
        source: ClusterPlan,
        target: ClusterPlan,
        consumer: Asked,
        producer: Producer,
        *,
        client_id: str,
    ) -> None:
        self._source = source
        self._target = target
        self._client_id = client_id
        self._consumer = consumer
        self._producer = producer
        self._lost_source = LostBrokers(_ASKED_ABOUT)
        self._lost_target = LostBrokers(_ASKED_ABOUT)
        self._read = 0

    def stepped(self, read: int) -> None:
        """After every step: ``read`` is how many records were read so far.

        A step that ended has not waited long for the target.

        Raises:
            UnreachableError: nothing was read for long, and nothing can be.
        """
        self._lost_target.heard()
        if read != self._read:
            self._read = read
            self._lost_source.heard()
        elif self._lost_source.found(self._consumer) and self._answers(self._source):
            self._end(self._source)

    def asked_in_waits(self, give_up: Callable[[], bool]) -> Callable[[], bool]:
        """What a step asks again and again while it waits for the target, with our question behind it.

        It raises UnreachableError where the step would wait for good.
        """

        def asked() -> bool:
            if give_up():
                return True
            if self._lost_target.found(self._producer) and self._answers(self._target):
                self._end(self._target)
            return False

        return asked

    def _answers(self, cluster: ClusterPlan) -> bool:
        try:
            with ClusterAdmin(
                cluster, client_id=self._client_id, timeout_seconds=_OTHERS_SECONDS
            ) as admin:
                return bool(admin.describe_cluster().brokers)
        except ReplicatorError:
            return False

    def _end(self, cluster: ClusterPlan) -> NoReturn:
        raise UnreachableError(
            f"the lane's client has lost all brokers of {cluster.alias}, which answers other clients",
            subject=f"cluster:{cluster.alias}",
            remedy="The lane goes on with another client by itself. A broker said that no broker lives: look for one "
            "that was fenced, or started, at this time.",
        )
