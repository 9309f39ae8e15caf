"""The registry of producer ids on a cluster: registering, and asking whose copies an id wrote.

A registration is acknowledged before the first batch under its id is sent, so who meets an id and then
reads the registry to its end knows what the id is: what is not there was not written by a flow.

One id may change its mind: a lane that copied record by record, whose copies have headers, begins to copy whole batches.
It waits for SEEN_SECONDS between its registration and its first batch, and an id that a reader took for a stranger's is
believed to be one for no longer than BELIEVED_SECONDS after the last look. So a reader that meets the batch has looked since.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from replicator.errors import (
    NotFoundError,
    RegistryLostError,
    ReplicatorError,
    SourceDataLostError,
)
from replicator.formats.producer_registry import (
    RegisteredProducer,
    RegistryMemory,
    decode_producer,
)
from replicator.identifiers import control_topic
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import until_answered
from replicator.wire.connection.newest_leaders import NewestLeaders
from replicator.wire.records.record_batch import RawRecord, decode_batch
from replicator.wire.requests.produce_one import produce_record
from replicator.wire.requests.raw_log import RawLog

NO_PRODUCER = -1

_LOOK_SECONDS = 10.0

SEEN_SECONDS = 12.0
BELIEVED_SECONDS = 5.0

MOST_STRANGERS = 100_000
"""So many ids that no flow writes under are remembered. Applications that start a producer for each call have as many
in minutes; what was forgotten costs one look at the end of the registry when it comes again."""


def register(cluster: ClusterPlan, topology: str, producer: RegisteredProducer) -> None:
    """Writes a registration and waits until all replicas in sync have it; may be repeated.

    Raises:
        ReplicatorError: it may not be there; nothing may be sent under the id.
    """
    record = RawRecord(0, producer.at_ms, "CreateTime", producer.key, producer.value)
    produce_record(cluster, control_topic(topology), 0, record)


class ProducerRegistry:
    """What is registered on one cluster, as far as it was read. For one thread."""

    def __init__(
        self,
        cluster: ClusterPlan,
        topology: str,
        *,
        client_id: str,
        on_grown: Callable[[RegistryMemory], None] = lambda _: None,
        elsewhere: "Elsewhere | None" = None,
        leaders: NewestLeaders | None = None,
    ) -> None:
        """``on_grown`` is told what a later reader must find at least, whenever that is more.

        ``elsewhere`` is asked about ids that are not registered here. ``leaders`` are shared, and closed by
        who made them.
        """
        self._elsewhere = elsewhere
        self._not_here: set[int] = set()
        self._found_elsewhere: dict[int, str] = {}
        self._cluster = cluster
        self._topic = control_topic(topology)
        self._place = (self._topic, 0)
        self._own_leaders = leaders is None
        self._leaders = leaders or NewestLeaders(cluster, client_id=client_id)
        self._log = RawLog(cluster, self._topic, client_id=client_id, leaders=self._leaders)
        self._memory = RegistryMemory()
        self._on_grown = on_grown
        self._registered: dict[int, RegisteredProducer] = {}
        self._strangers: set[int] = set()
        self._topic_id = ""
        self._next = 0
        self._looked_at = self._leaders_at = float("-inf")

    @property
    def registered(self) -> Mapping[int, RegisteredProducer]:
        """By producer id, as of the last reading."""
        return self._registered

    def outdated(self, end: int | None) -> bool:
        """Whether its log ends elsewhere than was read, or is another one by what ``leaders`` saw last; None: not known."""
        if end != self._next:
            return True
        try:
            return self._leaders.leader(self._place).topic_id != self._topic_id
        except ReplicatorError:
            return True  # reading says why

    def expect(self, memory: RegistryMemory) -> None:
        """Less than this was seen of it before is an error from now on."""
        self._memory = memory

    def close(self) -> None:
        """Hangs up."""
        if self._own_leaders:
            self._leaders.close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def source_of(self, producer_id: int) -> str | None:
        """The alias whose copies an id writes; None where no flow writes under it.

        Raises:
            RegistryLostError: it lacks what it held before.
            ReplicatorError: it cannot be read now; nothing is known about the id.
        """
        if producer_id == NO_PRODUCER:
            return None
        if producer_id in self._strangers or producer_id in self._not_here:
            self.look_again()
        found = self._registered.get(producer_id)
        if found is None and producer_id in self._strangers:
            return None
        if found is None and producer_id not in self._not_here:
            self.read()
            found = self._registered.get(producer_id)
        if found is not None:
            return found.source
        # It was not registered here before what was met, so no whole batch of this topology was written under it so far.
        if self._elsewhere is None:
            _remember(self._strangers, producer_id)
            return None
        _remember(self._not_here, producer_id)
        return self._source_elsewhere(producer_id, self._elsewhere)

    def look_again(self) -> None:
        """Looks whether strangers are registered by now, unless that was done just now.

        Raises:
            RegistryLostError: it lacks what it held before.
            ReplicatorError: it cannot be read now; nothing is known about strangers.
        """
        now = time.monotonic()
        if now - self._looked_at < BELIEVED_SECONDS:
            return
        self.read_if_grown()
        if self._elsewhere is not None and self._elsewhere.grown():
            self._strangers.clear()
            self._not_here.clear()
        self._looked_at = now

    def _source_elsewhere(self, producer_id: int, elsewhere: "Elsewhere") -> str | None:
        known = self._found_elsewhere.get(producer_id)
        if known is not None:
            return known
        source, final = elsewhere.source_of(producer_id)
        if source is not None:
            self._found_elsewhere[producer_id] = source
        elif final:
            self._not_here.discard(producer_id)
            _remember(self._strangers, producer_id)
        return source

    def read_if_grown(self) -> bool:
        """Reads on where its log has another end than was read; whether it has.

        It is asked before each commit, so who leads the log is asked for every BELIEVED_SECONDS only.

        Raises:
            RegistryLostError: it lacks what it held before.
            ReplicatorError: it cannot be read now.
        """
        if time.monotonic() - self._leaders_at >= BELIEVED_SECONDS:
            self._look()
        try:
            end = self._log.end()
        except NotFoundError:
            end = 0
        if end == self._next:
            return False
        self.read_on()
        return True

    def read(self) -> None:
        """Asks who leads its log, and reads on to the end as it is now.

        Raises:
            RegistryLostError: it lacks what it held before.
            ReplicatorError: it cannot be read now.
        """
        self._look()
        self.read_on()

    def read_on(self) -> None:
        """As ``read``, of whom ``leaders`` have for the leader since they looked.

        Raises:
            RegistryLostError: it lacks what it held before.
            ReplicatorError: it cannot be read now.
        """
        try:
            topic_id = self._leaders.leader(self._place).topic_id
            start, end = self._log.bounds()
        except NotFoundError:
            topic_id, start, end = "", 0, 0
        if topic_id != self._topic_id or end < self._next:
            self._forget()
        self._next = max(self._next, start)
        while self._next < end:
            try:
                self._take()
            except SourceDataLostError:  # it was cut while it was read
                self._forget()
                start, end = self._log.bounds()
                self._next = start
        self._topic_id = topic_id
        missing = sorted(self._memory.ids - self._registered.keys())
        if missing:
            raise RegistryLostError(
                f"the registry of producer ids in {self._topic} lacks {len(missing)} that it held, "
                f"{missing[0]} among them",
                subject=f"cluster:{self._cluster.alias}",
                remedy="Records that came from here could go back there, so nothing is copied. Restore "
                "the topic, or follow the runbook on lost registries.",
            )
        if len(self._registered) > len(self._memory.ids):
            self._memory = RegistryMemory(frozenset(self._registered))
            self._on_grown(self._memory)

    def _look(self) -> None:
        # Of several brokers, each time: one that is cut off from the controllers, and led the log, would not show what was
        # registered since, and whole batches would go back.
        deadline = time.monotonic() + _LOOK_SECONDS

        def ask() -> None:
            self._leaders.look([self._place], deadline=deadline)
            with contextlib.suppress(NotFoundError):
                self._leaders.leader(self._place)

        until_answered(ask, deadline=deadline)
        self._leaders_at = time.monotonic()

    def _forget(self) -> None:
        self._registered = {}
        self._next = 0

    def _take(self) -> None:
        batches = self._log.batches(self._next)
        for header, batch in batches:
            # Registrations stand alone, outside of transactions, whatever transaction is open there.
            if not (header.is_control or header.is_transactional):
                for record in decode_batch(batch):
                    found = decode_producer(record.key, record.value)
                    if found is not None:
                        self._registered[found.producer_id] = found
            self._next = header.last_offset + 1
        if not batches:
            self._next += 1  # cannot be: the end is behind it; never stand still over it


def _remember(ids: set[int], producer_id: int) -> None:
    if len(ids) >= MOST_STRANGERS:
        ids.clear()
    ids.add(producer_id)


class Elsewhere(Protocol):
    """Registries besides the one of the reader's topology."""

    def source_of(self, producer_id: int) -> tuple[str | None, bool]:
        """The alias whose copies an id writes, and whether every topology was asked."""
        ...

    def grown(self) -> bool:
        """Whether those that were asked before register more ids than at the last call."""
        ...

    def close(self) -> None:
        """Hangs up."""
        ...


SourceOf = Callable[[int], str | None]
"""The alias whose copies a producer id writes, None where no flow does."""
