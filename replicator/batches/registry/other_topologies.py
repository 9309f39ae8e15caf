"""Registries of other topologies whose flows come to a cluster from where ours lead to.

Two files, one for each direction, are as much a cycle as one file with both. Copies with a header are told by the
aliases in it, whichever topology wrote them; so are producer ids here.
"""

import time
from collections.abc import Callable, Iterable

from replicator.batches.registry.producer_registry import ProducerRegistry
from replicator.formats.producer_registry import RegistryMemory
from replicator.identifiers import TopicPartition, control_topic, topologies_from
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker, until_answered
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.newest_leaders import NewestLeaders
from replicator.wire.connection.protocol import MetadataRequest

FOUND_SECONDS = 2.0
"""For so long the topologies that were found stand for all: producers without a name come by the hundred."""

_METADATA_VERSION = 9
_ANSWER_SECONDS = 10.0


class OtherTopologies:
    """What they have registered on one cluster. For one thread.

    There may be many of them, and strangers' ids come often: where their logs end is asked for all together, and only
    those that have grown are read.
    """

    def __init__(
        self, cluster: ClusterPlan, topology: str, *, blocked: Iterable[str], client_id: str
    ) -> None:
        """Those that copy from one of the ``blocked`` aliases, but for ``topology`` itself."""
        self._cluster = cluster
        self._topology = topology
        self._blocked = tuple(blocked)
        self._client_id = client_id
        self._leaders = NewestLeaders(cluster, client_id=client_id)
        self._registries: dict[str, ProducerRegistry] = {}
        self._found_at = float("-inf")
        self._counted = 0

    def source_of(self, producer_id: int) -> tuple[str | None, bool]:
        """The alias whose copies an id writes, None where nobody registered it; and whether every topology was asked.

        A topology that was first seen less than ``FOUND_SECONDS`` ago may be missed until then. One whose topics this
        user may not describe is as if it were not there.

        Raises:
            ReplicatorError: the cluster or a registry cannot be read now; nothing is known about the id.
        """
        listed_now = time.monotonic() - self._found_at >= FOUND_SECONDS
        if listed_now:
            self._find()
        self._read_grown()
        for registry in self._registries.values():
            found = registry.registered.get(producer_id)
            if found is not None:
                return found.source, True
        return None, listed_now

    def grown(self) -> bool:
        """Whether those that were asked before register more ids than at the last call. Others are not looked for.

        Raises:
            ReplicatorError: a registry cannot be read now; nothing is known about its ids.
        """
        self._read_grown()
        before = (
            self._counted
        )  # not as of just now: a question about another id may have read on in between
        self._counted = sum(len(each.registered) for each in self._registries.values())
        return self._counted != before

    def close(self) -> None:
        """Hangs up."""
        for registry in self._registries.values():
            registry.close()
        self._leaders.close()

    def _find(self) -> None:
        deadline = time.monotonic() + _ANSWER_SECONDS
        with any_broker(self._cluster, client_id=self._client_id, deadline=deadline) as broker:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            answer = broker.call(request, newest=_METADATA_VERSION, deadline=deadline)
        require_live_brokers(answer.brokers, self._cluster)
        found = topologies_from(self._blocked, (each.name or "" for each in answer.topics))
        # Those that were seen stay: a broker that does not list one may be of the past.
        for name in sorted(found - {self._topology} - self._registries.keys()):
            self._registries[name] = ProducerRegistry(
                self._cluster, name, client_id=self._client_id, leaders=self._leaders
            )
        self._found_at = time.monotonic()

    def _read_grown(self) -> None:
        """Reads on where a log is another one, or has another end, than was read."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        places = {name: (control_topic(name), 0) for name in self._registries}

        def ask() -> dict[TopicPartition, int]:
            self._leaders.look(places.values(), deadline=deadline)
            return self._leaders.ends(places.values(), deadline=deadline)

        if not places:
            return
        ends = until_answered(ask, deadline=deadline)
        for name, registry in self._registries.items():
            if registry.outdated(ends.get(places[name])):
                registry.read_on()


def registry_of_source(
    cluster: ClusterPlan,
    topology: str,
    *,
    blocked: Iterable[str],
    client_id: str,
    on_grown: Callable[[RegistryMemory], None] = lambda _: None,
) -> ProducerRegistry:
    """A topology's registry that asks those of others about ids that it does not know."""
    others = OtherTopologies(cluster, topology, blocked=blocked, client_id=client_id)
    return ProducerRegistry(
        cluster, topology, client_id=client_id, on_grown=on_grown, elsewhere=others
    )
