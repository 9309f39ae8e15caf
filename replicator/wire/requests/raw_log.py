"""Reading one partition batch by batch, with the headers that no client shows: producer ids, bounds."""

import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

from replicator.errors import (
    HeldBackError,
    ReplicatorError,
    SourceDamagedError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import leader_connection
from replicator.wire.connection.newest_leaders import NewestLeaders
from replicator.wire.connection.protocol import FetchRequest
from replicator.wire.connection.topic_questions import (
    EARLIEST,
    LATEST,
    OFFSETS_VERSION,
    offsets_question,
)
from replicator.wire.records.record_batch import BatchHeader, split_batches
from replicator.wire.requests.fetched_part import fetched_part

_FETCH_VERSION = 11
_CORRUPT = 2
_BYTES = 1024 * 1024
_MOST_BYTES = 128 * 1024 * 1024
_PAUSE_SECONDS = 0.1
_HELD_SECONDS = 1.0

Answer = TypeVar("Answer")


class RawLog:
    """One partition of one cluster; keeps its connection. Reads what is not committed too. For one thread."""

    def __init__(
        self,
        cluster: ClusterPlan,
        topic: str,
        partition: int = 0,
        *,
        client_id: str,
        leaders: NewestLeaders | None = None,
    ) -> None:
        """With ``leaders`` it asks who leads it by those, over their connections, which stay open when it is closed."""
        self._leaders = leaders
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._client_id = client_id
        self._connection: BrokerConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up; another call connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def bounds(self, *, timeout_seconds: float = 10.0) -> tuple[int, int]:
        """The first offset there is, and the one behind everything that was acknowledged so far.

        Raises:
            NotFoundError: no such topic or partition.
            ReplicatorError: the cluster does not answer, or refuses us.
        """
        deadline = time.monotonic() + timeout_seconds
        return self._offset(EARLIEST, deadline), self._offset(LATEST, deadline)

    def end(self, *, timeout_seconds: float = 5.0) -> int:
        """The offset behind everything that was acknowledged so far; see ``bounds`` for errors."""
        return self._offset(LATEST, time.monotonic() + timeout_seconds)

    def batches(
        self, offset: int, *, most_bytes: int = _BYTES, timeout_seconds: float = 10.0
    ) -> list[tuple[BatchHeader, bytes]]:
        """The whole batches from an offset on, about as many as asked for; none at the end.

        Raises:
            SourceDataLostError: the offset is outside of what the partition has.
            StoredFormatError: something there is no batch of format 2.
            ReplicatorError: the cluster does not answer, or refuses us.
        """
        part = self._fetched(offset, 0, most_bytes, timeout_seconds)
        data = bytes(part.records or b"")
        return [each for each in split_batches(data) if each[0].last_offset >= offset]

    def committed(
        self, offset: int, *, most_bytes: int = _BYTES, timeout_seconds: float = 10.0
    ) -> tuple[bytes, list[tuple[int, int]], int]:
        """The bytes from an offset on up to the last stable offset, what is aborted in them, and that offset.

        What is aborted is told by producer ids and first offsets, as ``found_batches`` takes them.

        Raises:
            SourceDataLostError: the offset is outside of what the partition has.
            SourceDamagedError: the broker cannot read what it has there.
            ReplicatorError: the cluster does not answer, or refuses us.
        """
        part = self._fetched(offset, 1, most_bytes, timeout_seconds)
        aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or ()]
        return bytes(part.records or b""), aborted, int(part.last_stable_offset)

    def everything(
        self, offset: int, *, most_bytes: int = _BYTES, timeout_seconds: float = 10.0
    ) -> bytes:
        """The bytes from an offset on, open and aborted transactions too; none at the end.

        Raises:
            SourceDataLostError: the offset is outside of what the partition has.
            ReplicatorError: the cluster does not answer, or refuses us.
        """
        return bytes(self._fetched(offset, 0, most_bytes, timeout_seconds).records or b"")

    def _fetched(self, offset: int, isolation: int, most_bytes: int, seconds: float) -> Any:  # noqa: ANN401
        place = FetchRequest.FetchTopic.FetchPartition(
            partition=self._partition, current_leader_epoch=-1, fetch_offset=offset,
            log_start_offset=-1, partition_max_bytes=most_bytes,
        )  # fmt: skip
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=_MOST_BYTES,
            isolation_level=isolation, session_id=0, session_epoch=-1, forgotten_topics_data=[],
            rack_id="", topics=[FetchRequest.FetchTopic(topic=self._topic, partitions=[place])],
        )  # fmt: skip

        def fetch(leader: BrokerConnection, deadline: float) -> Any:  # noqa: ANN401
            answer = leader.call(request, newest=_FETCH_VERSION, deadline=deadline)
            doing = f"read {self._topic}/{self._partition} at {offset}"
            part = fetched_part(answer, subject=f"cluster:{self._cluster.alias}", doing=doing)
            code = part.error_code
            if code:
                raise self._damaged(doing) if code == _CORRUPT else self._error(code, doing)
            return part

        return self._asked(fetch, time.monotonic() + seconds)

    def _offset(self, at: int, deadline: float) -> int:
        request = offsets_question({self._topic: [self._partition]}, at=at)

        def ask(leader: BrokerConnection, deadline: float) -> int:
            answer = leader.call(request, newest=OFFSETS_VERSION, deadline=deadline)
            part = answer.topics[0].partitions[0]
            if part.error_code:
                raise self._error(part.error_code, f"ask where {self._topic} ends")
            return int(part.offset)

        return self._asked(ask, deadline)

    def _asked(self, ask: Callable[[BrokerConnection, float], Answer], deadline: float) -> Answer:
        """Asks the leader, and the next one once it has moved; a connection that was kept may be dead."""
        while True:
            try:
                return ask(self._connect(deadline), deadline)
            except (TransientBrokerError, UnreachableError) as error:
                self.close()
                if self._leaders is not None:
                    self._leaders.forget((self._topic, self._partition))
                held = isinstance(error, HeldBackError)
                pause = _HELD_SECONDS if held else _PAUSE_SECONDS
                if time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)  # leaders move, quotas are free again: nobody tells when they are

    def _connect(self, deadline: float) -> BrokerConnection:
        if self._leaders is not None:
            return self._leaders.connection((self._topic, self._partition), deadline=deadline)
        if self._connection is None:
            self._connection = leader_connection(
                self._cluster, self._topic, self._partition,
                client_id=self._client_id, deadline=deadline,
            )  # fmt: skip
        return self._connection

    def _damaged(self, doing: str) -> ReplicatorError:
        return SourceDamagedError(
            f"cannot {doing}: the broker says that what it has there is damaged",
            subject=f"cluster:{self._cluster.alias}",
            remedy="Move the partition to a replica whose log is whole, or repair the disk.",
        )

    def _error(self, code: int, doing: str) -> ReplicatorError:
        return code_error(code, subject=f"cluster:{self._cluster.alias}", doing=doing)
