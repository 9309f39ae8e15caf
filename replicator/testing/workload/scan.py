"""Reads topics from start to end, for the history: what a cluster really holds."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from replicator.identifiers import HOPS_HEADER
from replicator.testing.checker.history import FINAL, Scanned, Seen, digest, digest_headers
from replicator.testing.checker.routes import parse_hops
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.kit.waiting import NotInTimeError
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import record_id

_BATCH = 5_000
_WAIT_SECONDS = 0.1
_METADATA_TIMEOUT_SECONDS = 20.0
_UNREADABLE = "unreadable"


def scan(
    cluster: Endpoint,
    topics: Iterable[str],
    *,
    history: Recorder | None = None,
    view: str = FINAL,
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    timeout_seconds: float = 60.0,
    starts: Mapping[tuple[str, int], int] | None = None,
) -> list[Seen]:
    """Reads every partition of the topics to its end and returns the records it found.

    A topic that does not exist counts as empty: a copy that should be there is then missed.

    Args:
        cluster: which; a local one is read through its INTERNAL listener, behind any fault.
        topics: names on this cluster.
        history: recorded there too, if given.
        view: ``final``, or a name of a look at the running system.
        isolation: of the reader.
        timeout_seconds: for everything.
        starts: where to begin in partitions that are not read from their start.

    Raises:
        NotInTimeError: the ends were not reached.
    """
    wanted = list(topics)
    consumer = Consumer(
        {
            **cluster.admin_settings(),
            "group.id": "replicator-history-scan",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.queue.backoff.ms": 20,
            "fetch.wait.max.ms": 20,  # the end of a log is told by an empty answer
            "log_level": 0,
        }
    )
    try:
        places = _places(consumer, wanted)
        found = _read(
            consumer, places, cluster.name, view,
            deadline=time.monotonic() + timeout_seconds, starts=starts or {},
        )  # fmt: skip
    finally:
        consumer.close()
    if history is not None:
        absent = [(topic, -1) for topic in wanted if topic not in {name for name, _ in places}]
        history.record(*_scanned(cluster.name, view, [*places, *absent], found), *found)
    return found


def _places(consumer: Consumer, topics: Sequence[str]) -> list[tuple[str, int]]:
    known = consumer.list_topics(timeout=_METADATA_TIMEOUT_SECONDS).topics
    return [
        (topic, partition)
        for topic in topics
        if topic in known
        for partition in sorted(known[topic].partitions)
    ]


def _read(
    consumer: Consumer,
    places: list[tuple[str, int]],
    cluster: str,
    view: str,
    *,
    deadline: float,
    starts: Mapping[tuple[str, int], int],
) -> list[Seen]:
    found: list[Seen] = []
    unfinished = set(places)
    if places:
        consumer.assign(
            [TopicPartition(*place, starts.get(place, OFFSET_BEGINNING)) for place in places]
        )
    while unfinished:
        if time.monotonic() > deadline:
            raise NotInTimeError(f"ends not reached: {sorted(unfinished)}", subject=cluster)
        for message in consumer.consume(_BATCH, _WAIT_SECONDS):
            error = message.error()
            place = (message.topic() or "", message.partition() or 0)
            if error is None:
                if place in unfinished:  # later ones belong to the next scan
                    found.append(_seen(message, cluster, view))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # its public spelling
                unfinished.discard(place)
            elif not error.retriable():
                raise KafkaException(error)
    return found


def _seen(message: Message, cluster: str, view: str) -> Seen:
    value = message.value()
    headers: list[tuple[str, bytes | None]] = []
    try:
        raw = message.headers() or []
        for name, text in raw.items() if isinstance(raw, dict) else raw:
            headers.append((name, text.encode() if isinstance(text, str) else text))
        fingerprint = digest_headers(headers)
    except SystemError:  # a header name that is not UTF-8
        fingerprint = _UNREADABLE
    own = [text.decode(errors="replace") for name, text in headers if name == HOPS_HEADER and text]
    hops = next((text for text in reversed(own) if parse_hops(text)), "")
    return Seen(
        view=view,
        cluster=cluster,
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        id=record_id(value, headers),
        key=digest(message.key()),
        value=digest(value),
        headers=fingerprint,
        timestamp_ms=message.timestamp()[1],
        hops=hops,
    )


def _scanned(
    cluster: str, view: str, places: Iterable[tuple[str, int]], found: Iterable[Seen]
) -> list[Scanned]:
    offsets: dict[tuple[str, int], list[int]] = {}
    for seen in found:
        offsets.setdefault((seen.topic, seen.partition), []).append(seen.offset)
    scanned = []
    for topic, partition in places:
        own = offsets.get((topic, partition))
        start, end = (own[0], own[-1] + 1) if own else (0, 0)
        scanned.append(Scanned(view, cluster, topic, partition, start, end))
    return scanned
