"""Heartbeats of one pair of clusters: emitted where MirrorMaker 2 emits them, and carried over.

MirrorMaker 2's connector of a flow writes ``{source, target}`` into ``heartbeats`` of its *target*.
What goes over a flow is what stands in ``heartbeats`` of its *source*, written there by the way
back, which runs for that alone when the way back copies nothing. Here one pair does both: it beats
on its source for the way back, on its target for itself, and copies every heartbeats topic of the
source, from whose names on the target Java clients read hops and upstream clusters.
"""

from collections.abc import Collection
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.errors import ReplicatorError, StoredFormatError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_log import Entry, LogTail
from replicator.kafka.logs.log_writer import LogWriter
from replicator.mm2.topics.formats import Heartbeat, decode_heartbeat
from replicator.mm2.topics.names import HEARTBEATS, onward_heartbeats
from replicator.mm2.topics.topics import ensure_mm2_topic
from replicator.topology.plan import ClusterPlan

LOOK_SECONDS = 10.0
"""How soon a heartbeats topic is found that came to the source from further away."""

_CONNECT_SECONDS = 4.0
_ARRIVAL_SECONDS = 0.1
_BATCHES = 10  # of up to 2000 records, so that a busy topic does not hold up the beats
_FETCH_WAIT_SECONDS = 1.0


@dataclass(slots=True)
class _Copy:
    """One heartbeats topic of the source, followed into its copy."""

    tail: LogTail
    writer: LogWriter
    wait_seconds: float = _CONNECT_SECONDS

    def poll(self) -> list[Entry]:
        """What has come; the first time there is a connection to be made."""
        entries = self.tail.poll(self.wait_seconds)
        self.wait_seconds = _ARRIVAL_SECONDS
        return entries

    def close(self) -> None:
        self.tail.close()
        self.writer.close()


class Heartbeats:
    """Blocking; for one thread at a time."""

    def __init__(
        self,
        source: ClusterPlan,
        target: ClusterPlan,
        *,
        aliases: Collection[str],
        direct: Collection[str],
        beats_on_target: bool,
        client_id: str,
        clock: Clock,
    ) -> None:
        """``beats_on_target`` is false where the pair of the way back beats there already.

        ``aliases`` and ``direct`` are those of ``onward_heartbeats``.
        """
        self._source = source
        self._target = target
        self._aliases, self._direct = frozenset(aliases), frozenset(direct)
        self._clock = clock
        self._client_id = client_id
        self._admins: dict[str, ClusterAdmin] = {
            cluster.alias: ClusterAdmin(cluster, client_id=client_id)
            for cluster in (source, target)
        }
        beats = [(source, target.alias, source.alias)]
        if beats_on_target:
            beats.append((target, source.alias, target.alias))
        self._beats = [
            (LogWriter(cluster, HEARTBEATS, client_id=client_id), upstream, downstream)
            for cluster, upstream, downstream in beats
        ]
        self._made: set[str] = set()
        self._copies: dict[str, _Copy] = {}
        self._looked_at = float("-inf")

    def turn(self) -> None:
        """Beats once, and carries over what has come since the last turn.

        Raises:
            ReplicatorError: a cluster does not answer or refuses; the next turn goes on.
        """
        for writer, upstream, downstream in self._beats:
            self._beat(writer, upstream, downstream)
        now = self._clock.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._look()
            self._looked_at = now
        for topic in tuple(self._copies):
            self._carry(topic)

    def close(self) -> None:
        """Gives connections back."""
        for writer, _, _ in self._beats:
            writer.close()
        for topic in tuple(self._copies):
            self._copies.pop(topic).close()
        for admin in self._admins.values():
            admin.close()

    def _beat(self, writer: LogWriter, upstream: str, downstream: str) -> None:
        """One heartbeat into ``heartbeats`` of the cluster that is downstream."""
        if downstream not in self._made:
            ensure_mm2_topic(self._admins[downstream], HEARTBEATS)
            self._made.add(downstream)
        beat = Heartbeat(upstream, downstream, round(self._clock.now() * 1000))
        try:
            writer.write([(beat.key(), beat.value())])
        except ReplicatorError:
            self._made.discard(downstream)  # it may have been deleted
            raise

    def _look(self) -> None:
        """Begins to follow heartbeats topics that are new on the source, drops those that are gone."""
        admin = self._admins[self._source.alias]
        copies = {
            topic: name
            for topic in admin.topic_partitions()
            if (
                name := onward_heartbeats(
                    topic,
                    source=self._source.alias,
                    target=self._target.alias,
                    aliases=self._aliases,
                    direct=self._direct,
                )
            )
        }
        for gone in self._copies.keys() - copies.keys():
            self._copies.pop(gone).close()
        for topic in copies.keys() - self._copies.keys():
            ensure_mm2_topic(self._admins[self._target.alias], copies[topic])
            tail = LogTail(
                self._source,
                topic,
                client_id=self._client_id,
                fetch_wait_seconds=_FETCH_WAIT_SECONDS,
            )
            writer = LogWriter(self._target, copies[topic], client_id=self._client_id)
            self._copies[topic] = _Copy(tail, writer)

    def _carry(self, topic: str) -> None:
        copy = self._copies[topic]
        try:
            for _ in range(_BATCHES):
                entries = copy.poll()
                if not entries:
                    break
                copy.writer.write(_latest(entries))
        except ReplicatorError:
            # What was polled and not written is outdated by the next beat.
            self._copies.pop(topic).close()
            self._looked_at = float("-inf")
            raise


def _latest(entries: Collection[Entry]) -> list[Entry]:
    """The last heartbeat of every key; whatever else is in the topic stays there."""
    last: dict[bytes, bytes] = {}
    for key, value in entries:
        if value is None:
            continue
        try:
            decode_heartbeat(key, value)
        except StoredFormatError:
            continue
        last[key] = value
    return list(last.items())
