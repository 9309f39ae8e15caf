"""The two clusters of a transition: which one is left, which one is promoted, which ones answer."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import InputError, NotFoundError, ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.offsets import OffsetPoint
from replicator.kafka.clients.settings import Isolation
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, PairPlan, Plan
from replicator.topology.roles import facing

CLIENT_ID = "replicator-failover"
CALL_SECONDS = 10.0
CONTROL_SECONDS = 30.0
"""Twice what the broker gives a transaction of ours whose owner died."""


@dataclass(slots=True)
class LinkClusters:
    """One link changing from ``old`` to ``new``; for one thread unless a method says otherwise.

    ``silent`` are clusters that did not answer: they are not asked again, so that no timeout is
    waited for twice.
    """

    plan: Plan
    link: LinkPlan
    old: ClusterPlan
    new: ClusterPlan
    silent: dict[str, ReplicatorError] = field(default_factory=dict)
    _admins: dict[str, ClusterAdmin] = field(default_factory=dict)

    def close(self) -> None:
        """Closes the connections."""
        for admin in self._admins.values():
            admin.close()
        self._admins.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def topology(self) -> str:
        """Name of the topology."""
        return self.plan.topology

    def other(self, cluster: ClusterPlan) -> ClusterPlan:
        """The other cluster."""
        return self.old if cluster == self.new else self.new

    def admin(self, cluster: ClusterPlan) -> ClusterAdmin:
        """The admin client of a cluster; thread-safe."""
        if cluster.alias not in self._admins:
            self._admins[cluster.alias] = ClusterAdmin(
                cluster, client_id=CLIENT_ID, timeout_seconds=CALL_SECONDS
            )
        return self._admins[cluster.alias]

    def flow(self, source: ClusterPlan) -> FlowPlan:
        """The link's flow out of a cluster to the other one.

        Raises:
            KeyError: it has none.
        """
        target = self.other(source).alias
        for flow in (*self.link.flows, *self.link.standby):
            if (flow.source, flow.target) == (source.alias, target):
                return flow
        raise KeyError(source.alias)

    def facing(self, source: ClusterPlan) -> Plan:
        """The plan as if the link ran out of that cluster."""
        return facing(self.plan, self.link.name, source.alias)

    def pair(self, source: ClusterPlan) -> PairPlan:
        """The ordered pair out of a cluster with this link's flow alone."""
        target = self.other(source)
        return PairPlan(source, target, (self.flow(source),), self.topology)

    def whole_pair(self, source: ClusterPlan) -> PairPlan:
        """The same with every link over it, this one's flow running."""
        wanted = self.pair(source).id
        return next(pair for pair in self.facing(source).pairs if pair.id == wanted)

    def control(
        self, cluster: ClusterPlan, *, known_to_exist: bool = False, reaches: int = 0
    ) -> ControlState:
        """The control topic of a cluster, read to its end; empty where it was never applied.

        Waits for transactions that are open there: a lock that was committed behind one would be
        hidden, and two operators would pass. So they would where a broker has not heard of a topic that is
        ``known_to_exist``, see ``read_compacted``. So they would where a broker shows the past, which ``reaches`` tells:
        what a writer of ours has shown to be the end.

        Raises:
            ClusterError: it does not answer.
        """
        try:
            return read_control(
                self.topology,
                cluster,
                client_id=CLIENT_ID,
                timeout_seconds=CONTROL_SECONDS,
                past_open_transactions=True,
                known_to_exist=known_to_exist,
                reaches=reaches,
            )
        except NotFoundError:
            return EMPTY

    def answers(self, cluster: ClusterPlan) -> bool:
        """Whether the cluster answered when it was probed."""
        return cluster.alias not in self.silent

    def look(self, seconds: float) -> None:
        """Probes both clusters at the same time; waits no longer than ``seconds``."""

        def ask(cluster: ClusterPlan) -> ReplicatorError | None:
            with ClusterAdmin(cluster, client_id=CLIENT_ID, timeout_seconds=seconds) as admin:
                try:
                    admin.cluster_id()
                except ReplicatorError as error:
                    return error
            return None

        with ThreadPoolExecutor(2, thread_name_prefix="look") as pool:
            answers = dict(
                zip((self.old, self.new), pool.map(ask, (self.old, self.new)), strict=True)
            )
        self.silent = {str(cluster.alias): error for cluster, error in answers.items() if error}

    def offsets(
        self,
        cluster: ClusterPlan,
        keys: Iterable[TopicPartition],
        at: OffsetPoint = "latest",
        *,
        isolation: Isolation = "read_committed",
    ) -> dict[TopicPartition, int]:
        """Offsets of partitions.

        Raises:
            ReplicatorError: one of them is not known.
        """
        return self.admin(cluster).every_offset(keys, at, isolation)


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, list[int]]:
    """Offsets as evidence: for each topic one per partition, -1 where there is none."""
    found: dict[str, list[int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        ends = found.setdefault(topic, [])
        ends.extend([-1] * (number - len(ends)))
        ends.append(offset)
    return found


def by_key(evidence: object) -> dict[TopicPartition, int]:
    """The inverse of ``by_topic``; anything else gives nothing."""
    if not isinstance(evidence, Mapping):
        return {}
    return {
        (str(topic), number): int(offset)
        for topic, offsets in evidence.items()
        for number, offset in enumerate(offsets)
        if offset >= 0
    }


def find_link(plan: Plan, name: str) -> LinkPlan:
    """The link of that name.

    Raises:
        InputError: there is none.
    """
    try:
        return plan.link(name)
    except KeyError:
        names = ", ".join(link.name for link in plan.links)
        raise InputError(
            f"the topology has no link '{name}'", remedy=f"Its links: {names}."
        ) from None
