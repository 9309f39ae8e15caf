"""What a role change asks of clusters on virtual time: an admin client, transactions, looks into logs.

Each call of it is a moment in which others act, or its process is killed.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Protocol, Self

from simulated_sides import Entry, Side, Written

from replicator.errors import FencedError, NotFoundError, TransientBrokerError, UnreachableError
from replicator.failover.clusters.groups_move import GroupsSeen
from replicator.failover.clusters.tail import Export, TailRecord
from replicator.identifiers import TopicPartition, control_topic
from replicator.kafka.admin.topics import TopicDescription
from replicator.offsets.groups.group_report import SyncReport


class Asked(Protocol):
    """The world, as clients see it."""

    topology: str
    changing: list[bool]

    def side(self, cluster: Any) -> Side:
        """The model of a cluster."""
        ...

    def moment(self) -> None:
        """Others act, or the process ends."""
        ...


class Admin:
    """Stands for ``ClusterAdmin``."""

    def __init__(self, world: Asked, cluster: Any) -> None:
        self._world = world
        self._side = world.side(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def cluster_id(self) -> str:
        if not self._side.up:
            raise UnreachableError(f"{self._side.alias} does not answer")
        return self._side.alias

    def _asked(self) -> Side:
        self._world.moment()
        self._side.check()
        return self._side

    def topic_partitions(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for topic, number in self._asked().logs:
            sizes[topic] = max(sizes.get(topic, 0), number + 1)
        return sizes

    def offsets(
        self, places: Iterable[TopicPartition], at: Any, isolation: str = "read_committed"
    ) -> dict[TopicPartition, Any]:
        side = self._asked()

        def one(place: TopicPartition) -> int:
            if at == "earliest":
                return 0
            if at == "latest":
                return (
                    side.stable_end(place)
                    if isolation == "read_committed"
                    else len(side.logs[place])
                )
            later = (n for n, each in enumerate(side.logs[place]) if each.at_ms >= at)
            return next(later, -1)

        return {place: one(place) for place in places}

    known_offsets = every_offset = offsets

    def describe_each_topic(self, names: Iterable[str]) -> dict[str, Any]:
        there = {topic for topic, _ in self._asked().logs}
        return {
            name: _described(name) if name in there else NotFoundError(f"no {name}")
            for name in names
        }

    describe_topics = describe_each_topic

    def describe_cluster(self) -> Any:
        self._asked()
        return SimpleNamespace(authorized_operations=frozenset({"ALTER", "DESCRIBE"}))

    def describe_group(self, _name: str) -> Any:
        self._asked()
        return SimpleNamespace(members=("worker",))

    def create_acls(self, bindings: Iterable[Any]) -> dict[Any, None]:
        wanted = list(bindings)
        self._asked().rules.update(wanted)
        self._world.changing[-1] = True
        self._world.moment()
        return dict.fromkeys(wanted)

    def delete_acls(self, bindings: Iterable[Any]) -> dict[Any, None]:
        wanted = list(bindings)
        self._asked().rules.difference_update(wanted)
        self._world.changing[-1] = True
        self._world.moment()
        return dict.fromkeys(wanted)


def _described(name: str) -> TopicDescription:
    rights = frozenset({"READ", "WRITE"})
    return TopicDescription(name, f"id-{name}", 1, 1, leaderless=(), authorized_operations=rights)


class Transactions:
    """Stands for ``TransactionWriter``: what the writers of the journal, the controller and tails use."""

    def __init__(self, world: Asked, cluster: Any, id_: str) -> None:
        self._world = world
        self._side = world.side(cluster)
        self._id = id_
        self._owned: Written | None = None
        self._fenced = False
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self._owned is not None

    def open(self) -> None:
        if self._fenced:
            raise FencedError("another owner has taken over", subject=self._id)
        if self._owned is None:
            self._world.moment()
            self._side.check()
            self._owned = self._side.initialise(self._id)

    def begin(self, _doing: str) -> None:
        if self._owned is None:
            raise TransientBrokerError("an earlier write failed", subject=self._id)
        self._begun = True

    def add(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int = 0,
        headers: Any = (),
    ) -> None:
        if topic == control_topic(self._world.topology):
            self._owned.control.append((key, value))
        elif (topic, partition) in self._side.logs:
            entry = Entry(int(value or b"0"), tuple(headers), at_ms=timestamp_ms)
            self._owned.records.append(((topic, partition), entry))
        else:
            self._owned.checkpoints.append((partition, key, value))

    def commit(self) -> None:
        if not self._begun:
            return
        self._world.moment()
        owned, self._owned, self._begun = self._owned, None, False
        try:
            self._side.check()
            self._side.commit(owned)
        except FencedError:
            self._fenced = True
            raise
        self._owned = Written(owned.id, owned.epoch)
        if self._world.changing:
            self._world.changing[-1] = False
        self._world.moment()

    def close(self) -> None:
        self._owned, self._begun = None, False


class Probe:
    """Stands for ``PartitionProbe``."""

    def __init__(self, world: Asked, cluster: Any) -> None:
        self._world = world
        self._side = world.side(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def record(self, topic: str, partition: int, offset: int, *, or_next: bool = False) -> Any:
        """The committed record there, or the next one."""
        self._world.moment()
        self._side.check()
        log, end = self._side.logs[topic, partition], self._side.stable_end((topic, partition))
        found = (n for n in range(offset, end) if log[n].number and log[n].state == "committed")
        at = next(found, None)
        if at is None or (at != offset and not or_next):
            return None
        return SimpleNamespace(offset=lambda: at, timestamp=lambda: (1, log[at].at_ms))


class Groups:
    """Stands for ``GroupMove``; groups have a simulation of their own (``simulated_groups.py``)."""

    def __init__(self, world: Asked) -> None:
        self._world = world

    def round(self, *, commit: bool, whole: bool = True) -> GroupsSeen:
        del whole
        self._world.moment()
        return GroupsSeen(SyncReport("", "", 0, ()), {}, commit)

    def close(self) -> None:
        pass


def read_tail(world: Asked, cluster: Any, ranges: Any, *, seen_by: str, arrivals: Any):
    """Stands for ``tail.read_tail``."""
    side = world.side(cluster)
    for place, (start, end) in sorted(ranges.items()):
        world.moment()
        side.check()
        if side.stable_end(place) < end:
            raise UnreachableError(f"{place} was not read in time")
        for offset in range(start, end):
            one = side.logs[place][offset]
            if not one.number or one.state != "committed":
                continue
            if seen_by not in arrivals.passed(one.headers, *place):
                yield TailRecord(
                    *place, offset, one.at_ms, None, b"%d" % one.number, tuple(one.headers)
                )


def export_tail(records: Iterable[TailRecord], file: Any, *, to_parquet: Any) -> Export:
    """Stands for ``tail.export_tail``: counts, and writes no file."""
    del to_parquet
    counts: dict[TopicPartition, int] = {}
    for one in records:
        counts[one.topic, one.partition] = counts.get((one.topic, one.partition), 0) + 1
    return Export(counts, file, None, "", -1, -1)
