"""Offsets of many partitions at once: the ends, and where a time begins."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import OffsetSpec

from replicator.errors import ReplicatorError, TransientBrokerError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.session import AdminSession
from replicator.kafka.clients.settings import Isolation

_NONE_LATER = -1
"""The answer for a time behind the last record."""

OffsetPoint = Literal["earliest", "latest"] | int


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a log ends, and the epoch of the leader that says so."""

    offset: int
    leader_epoch: int


def log_ends(
    session: AdminSession,
    partitions: Iterable[TopicPartition],
    *,
    isolation: Isolation = "read_uncommitted",
) -> dict[TopicPartition, LogEnd | ReplicatorError]:
    """The end of each log with its leader's epoch, or why it is not known; open transactions are included by default."""
    return {
        key: answer
        if isinstance(answer, ReplicatorError)
        else LogEnd(answer.offset, -1 if answer.leader_epoch is None else answer.leader_epoch)
        for key, answer in _ask(session, partitions, "latest", isolation).items()
    }


def list_offsets(
    session: AdminSession,
    partitions: Iterable[TopicPartition],
    at: OffsetPoint,
    *,
    isolation: Isolation = "read_committed",
) -> dict[TopicPartition, int | ReplicatorError]:
    """The offset at one point of each partition, or why it is not known.

    No partitions ask nothing. ``earliest`` is the oldest record that still exists; ``latest`` the next one to be read
    (``read_committed``: before the oldest open transaction). A number is a timestamp in
    milliseconds: the first record at or after it, -1 where there is none.
    """
    return {
        key: answer if isinstance(answer, ReplicatorError) else answer.offset
        for key, answer in _ask(session, partitions, at, isolation).items()
    }


def _ask(
    session: AdminSession,
    partitions: Iterable[TopicPartition],
    at: OffsetPoint,
    isolation: Isolation,
) -> dict[TopicPartition, Any]:
    def send(chunk: list[TopicPartition]) -> dict[ClientPartition, "Future[Any]"]:
        return session.client.list_offsets(
            {ClientPartition(topic, number): _spec(at) for topic, number in chunk},
            isolation_level=(
                IsolationLevel.READ_COMMITTED
                if isolation == "read_committed"
                else IsolationLevel.READ_UNCOMMITTED
            ),
            request_timeout=session.timeout_seconds,
        )

    def ask(wanted: Sequence[TopicPartition]) -> dict[TopicPartition, Any]:
        answers = session.each(
            wanted,
            send,
            doing=lambda part: f"read offsets of {part.topic}/{part.partition}",
            asks_again=True,
        )
        return {
            (part.topic, part.partition): known(
                answer, f"{part.topic}/{part.partition}", at, subject=session.subject
            )
            for part, answer in answers.items()
        }

    found = ask(sorted(set(partitions)))
    moved = sorted(key for key, answer in found.items() if isinstance(answer, TransientBrokerError))
    if moved:
        # The client asks with the leaders and epochs it remembers, and learns new ones only here.
        session.direct(lambda client, timeout: client.list_topics(timeout=timeout), "find leaders")
        found.update(ask(moved))
    return found


def known(answer: Any, place: str, at: OffsetPoint, *, subject: str) -> Any:  # noqa: ANN401  whatever the library's future holds
    """The answer, or an error for one that names no offset: beside a broker that dies the library says -1001."""
    if isinstance(answer, ReplicatorError):
        return answer
    nothing_later = isinstance(at, int) and answer.offset == _NONE_LATER
    if answer.offset >= 0 or nothing_later:
        return answer
    return TransientBrokerError(
        f"no broker says where {place} has its offsets",
        subject=subject,
        remedy="Its leader went away with the question; it is asked again by itself.",
    )


def _spec(at: OffsetPoint) -> OffsetSpec:
    # The library's constructors carry no types.
    spec: OffsetSpec
    if isinstance(at, int):
        spec = OffsetSpec.for_timestamp(at)
    else:
        make: Any = OffsetSpec.earliest if at == "earliest" else OffsetSpec.latest
        spec = make()
    return spec
