"""Writing batches to one cluster: in order per partition, five requests in flight per broker.

Order rests on sequence numbers. A batch that was not taken makes its partition send everything
unacknowledged again, the same bytes with the same numbers, one after the other, once nothing of it is
on its way. The first batch a producer epoch writes to a partition goes alone: brokers up to 4.3 take
whatever number comes first (KAFKA-15591).
"""

from collections.abc import Iterable

from replicator.batches.codec.produce_codec import (
    ADDS_PARTITIONS,
    API_KEY,
    NEWEST,
    Produced,
    encode_produce,
)
from replicator.batches.copy.barrier import Barrier
from replicator.batches.copy.marker_wait import MarkerWait
from replicator.batches.copy.outgoing import (
    Key,
    Outgoing,
    PartitionOut,
)
from replicator.batches.copy.produce_errors import (
    DUPLICATE,
    OUT_OF_ORDER,
    RETRIED,
    produce_error,
)
from replicator.batches.copy.transaction_members import TransactionMembers
from replicator.batches.copy.transactions import ProducerIdentity
from replicator.batches.copy.unanswered import Request, Unanswered
from replicator.batches.network.channel import Channel, Frame
from replicator.batches.network.io_loop import IoLoop
from replicator.errors import (
    ReplicatorError,
)
from replicator.policy.capacity.broker_quota import BrokerQuota
from replicator.topology.plan import ClusterPlan

REQUEST_BYTES = 4 * 1024 * 1024
KNOWN_SECONDS = 600.0
"""How long after an acknowledgement a broker is trusted to remember the producer; its default is a day."""

_TIMEOUT_MS = 20_000
_REPORTED_SECONDS = 5.0


class TargetWriter:
    """For one thread.

    Attributes:
        outstanding_bytes: bytes of batches that are queued or not acknowledged.
        problem: what a partition is refused for just now, if it lasts.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        loop: IoLoop,
        *,
        client_id: str,
        transactional_id: str | None,
        members: TransactionMembers,
        quota: BrokerQuota,
    ) -> None:
        """``members`` are asked where there is a ``transactional_id``."""
        self.quota = quota
        self.brokers = loop.brokers(
            cluster, client_id=client_id, on_frame=self.on_frame, on_lost=self.on_lost
        )
        self.outstanding_bytes = 0
        self.problem: ReplicatorError | None = None
        self._client_id = client_id
        self._transactional_id = transactional_id
        self._members = members
        self._identity = ProducerIdentity(-1, -1)
        self._newest = NEWEST
        self._partitions: dict[Key, PartitionOut] = {}
        self._active: dict[Key, PartitionOut] = {}
        self._unanswered = Unanswered(quota)
        self._cut_off = False
        self._correlation = 0
        self._now = 0.0
        self._markers = MarkerWait()

    def begin(self, identity: ProducerIdentity, *, joins_by_itself: bool) -> None:
        """Writes as this producer from now on; nothing may be on its way."""
        if identity != self._identity:
            self._partitions.clear()
        self._identity = identity
        self._newest = NEWEST if joins_by_itself else ADDS_PARTITIONS - 1
        self._members.begin(joins_by_itself=joins_by_itself)

    def hold(self, now: float) -> None:
        """A transaction has just ended: nothing is sent until its markers are likely to be written."""
        self._markers.ended(now)

    def seconds_held(self, now: float) -> float:
        """Until what waits may be sent; infinite where nothing is kept back."""
        until = self._markers.until
        marked = until - now if until > now else float("inf")
        return min(marked, self.quota.seconds_held(now)) if self._active else marked

    @property
    def idle(self) -> bool:
        """Whether everything is acknowledged."""
        return not self._active

    def write(self, key: Key, batch: Outgoing) -> None:
        """Queues a batch; its buffer is held until the batch is acknowledged."""
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = PartitionOut(key)
        partition.pending.append(batch)
        self._active[key] = partition
        self.outstanding_bytes += len(batch.data)

    def barrier(self) -> Barrier:
        """Passed once everything that is queued or on its way now is acknowledged."""
        return Barrier(
            batch
            for partition in self._active.values()
            for batch in (*partition.unacknowledged, *partition.pending)
        )

    def pump(self, now: float) -> None:
        """Sends what may be sent.

        Raises:
            ReplicatorError: the transaction cannot go on.
        """
        self._now = now
        if now < self._markers.until:
            return
        self._cut_off = False
        by_node: dict[int, list[PartitionOut]] = {}
        for key, partition in self._active.items():
            if partition.next(now) is None:
                continue
            leader = self.brokers.leaders.of(*key)
            if leader is None:
                self._cut_off = True
            else:
                by_node.setdefault(leader[0], []).append(partition)
        channels = self._open_to(by_node, now)
        if (
            self._transactional_id is not None
            and channels
            and not self._members.may_write(
                (each.key for node in channels for each in by_node[node]),
                # One that was written to is kept there, so these are all that lead something of the lane.
                brokers=len({*self._unanswered.nodes, *channels}),
                now=now,
                markers=self._markers,
            )
        ):
            return
        for node, channel in channels.items():
            self._send_to(node, channel, by_node[node], now)

    def _open_to(self, nodes: Iterable[int], now: float) -> dict[int, Channel]:
        """The connections to those of the brokers that may be written to now."""
        found = {}
        for node in nodes:
            if now < self.quota.until(node):
                continue
            channel = self.brokers.channel(node, now)
            if channel is None:
                self._cut_off = True
            else:
                found[node] = channel
        return found

    def _send_to(
        self, node: int, channel: Channel, partitions: list[PartitionOut], now: float
    ) -> None:
        while (room := self._unanswered.room(node)) > 0:
            chosen = self._chosen(partitions, now, min(REQUEST_BYTES, room))
            if not chosen:
                break
            self._send(node, channel, chosen, now)
            if node not in self._unanswered.nodes:
                break  # the connection failed at once

    def look(self, now: float) -> None:
        """Gives up on brokers that owe an answer for too long."""
        self._now = now
        self._markers.look(now)
        for node, error in self._unanswered.given_up(now).items():
            self.brokers.lose(node, error)

    def on_frame(self, node: int, frame: Frame) -> None:
        """A broker has answered the oldest request.

        Raises:
            ReplicatorError: what it says ends the transaction.
        """
        request, produced = self._unanswered.answered(node, frame, self._now)
        for part in produced:
            found = request.batches.pop((part.topic, part.partition), None)
            if found is not None:
                found[0].in_flight -= 1
                self._answered(*found, part, request.since)
        self._not_answered(request)

    def on_lost(self, node: int) -> None:
        """The connection is gone: whether what was on its way was written shows when it is sent again."""
        for request in self._unanswered.lost(node):
            self._not_answered(request)

    def stuck_since(self) -> float | None:
        """Monotonic seconds since when a partition's batches are not taken; None when none is."""
        return min(
            (each.failed_since for each in self._active.values() if each.failed), default=None
        )

    def flows(self, now: float) -> bool:
        """Whether the target takes what is on its way, however slowly: nothing is refused, and no broker is quiet."""
        return (
            not self._cut_off and self.stuck_since() is None and not self._unanswered.any_quiet(now)
        )

    def release_all(self) -> None:
        """Forgets everything that was not acknowledged."""
        for partition in self._active.values():
            for batch in (*partition.pending, *partition.unacknowledged):
                if batch.buffer is not None:
                    batch.buffer.release()
        self._active.clear()
        self._partitions.clear()
        self.outstanding_bytes = 0

    def _chosen(
        self, partitions: Iterable[PartitionOut], now: float, most_bytes: int
    ) -> list[tuple[PartitionOut, Outgoing]]:
        """One batch per partition, as many as fit into a request of so many bytes; one at least."""
        chosen: list[tuple[PartitionOut, Outgoing]] = []
        size = 0
        for partition in partitions:
            batch = partition.next(now)
            if batch is None:
                continue
            if batch.joins and len(partition.pending) > 1 and batch.sequence < 0:
                self.outstanding_bytes += partition.join_first()
                batch = partition.pending[0]
            size += len(batch.data)
            if chosen and size > most_bytes:
                break
            chosen.append((partition, batch))
        return chosen

    def _send(
        self,
        node: int,
        channel: Channel,
        chosen: list[tuple[PartitionOut, Outgoing]],
        now: float,
    ) -> None:
        self._markers.sent(now)
        transactional = self._transactional_id is not None
        batches: dict[str, dict[int, memoryview]] = {}
        for partition, batch in chosen:
            partition.sent(batch, self._identity, transactional=transactional)
            batches.setdefault(partition.key[0], {})[partition.key[1]] = batch.data
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        known = self.brokers.versions[node].get(API_KEY, (0, self._newest))[1]
        pieces = encode_produce(
            version=min(self._newest, known),
            correlation=self._correlation,
            client_id=self._client_id,
            transactional_id=self._transactional_id,
            timeout_ms=_TIMEOUT_MS,
            batches=batches,
        )
        size = sum(len(batch.data) for _, batch in chosen)
        waiting = {each.key: (each, batch) for each, batch in chosen}
        self._unanswered.sent(node, Request(self._correlation, size, now, waiting))
        self.brokers.send(node, channel, pieces)

    @staticmethod
    def _not_answered(request: Request) -> None:
        for partition, _ in request.batches.values():
            partition.in_flight -= 1
            partition.not_taken(request.since)

    def _answered(
        self, partition: PartitionOut, batch: Outgoing, part: Produced, now: float
    ) -> None:
        error = part.error
        if not error or error == DUPLICATE:
            partition.known_until = now + KNOWN_SECONDS
            self._written(partition, batch, -1 if error else part.base_offset)
            return
        # What stands behind a batch that was not taken comes too early for the broker.
        behind = bool(partition.unacknowledged) and partition.unacknowledged[0] is not batch
        if error in RETRIED or (error == OUT_OF_ORDER and behind):
            partition.not_taken(now)
            if not behind:
                self.brokers.leaders.refresh()
                if now - partition.failed_since > _REPORTED_SECONDS:
                    self.problem = produce_error(self.brokers.cluster.alias, partition.key, part)
            return
        raise produce_error(self.brokers.cluster.alias, partition.key, part)

    def _written(self, partition: PartitionOut, batch: Outgoing, base_offset: int) -> None:
        self._markers.answered()
        partition.unacknowledged.remove(batch)
        self.problem = None
        self.outstanding_bytes -= len(batch.data)
        if partition.failed and not partition.unacknowledged:
            partition.failed = False
        if not partition.unacknowledged and not partition.pending:
            self._active.pop(partition.key, None)
        if batch.buffer is not None:
            batch.buffer.release()
        if batch.on_written is not None:
            batch.on_written(base_offset)
