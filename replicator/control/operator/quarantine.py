"""Reading the quarantine topics: every kept record with its story and what became of it."""

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from replicator.clock import json_time
from replicator.control.store.read import require_control
from replicator.control.store.state import ControlState
from replicator.dataplane.copy.quarantine_record import QUARANTINE_HEADER
from replicator.errors import InputError, StoredFormatError, UnreachableError
from replicator.identifiers import JsonObject, quarantine_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import (
    ClientPartition,
    Consumer,
    KafkaError,
    Message,
    open_consumer,
)
from replicator.kafka.clients.errors import map_kafka_error
from replicator.kafka.clients.settings import consumer_config
from replicator.topology.plan import PairPlan, Plan

CLIENT_ID = "replicator-quarantine"
READ_SECONDS = 30.0
VERSION = 1


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One kept record: its story as it was written down, its bytes, and what became of it.

    ``value`` is None for a tombstone, and also where the value was left out or only the raw record
    was kept; ``value_kept`` says which.
    """

    id: str
    flow: str
    link: str
    topic: str
    partition: int
    offset: int
    target_topic: str
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    value_kept: bool
    headers: tuple[tuple[str, bytes | None], ...]
    raw: bytes | None
    error: str
    code: str
    at_ms: int
    outcome: str | None

    def as_json(self) -> JsonObject:
        """One line of ``quarantine list``."""
        return {
            "id": self.id,
            "flow": self.flow,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "error": self.error,
            "at": json_time(self.at_ms),
            "outcome": self.outcome,
        }

    def detail_json(self) -> JsonObject:
        """Everything, as ``quarantine show`` prints it; bytes in base64."""
        return {
            **self.as_json(),
            "link": self.link,
            "code": self.code,
            "targetTopic": self.target_topic,
            "timestamp": self.timestamp_ms,
            "key": _base64(self.key),
            "value": _base64(self.value),
            "valueKept": self.value_kept,
            "sizeBytes": len(self.key or b"") + len(self.value or b""),
            "headers": [{"name": name, "value": _base64(value)} for name, value in self.headers],
        }


def read_quarantine(plan: Plan, pair: PairPlan) -> tuple[Quarantined, ...]:
    """Every kept record of a pair, oldest first; one entry per source record.

    Raises:
        InputError: the pair was never applied.
        StoredFormatError: something else wrote into the topic.
        ClusterError: the target does not answer.
    """
    control = require_control(plan, pair, client_id=CLIENT_ID)
    topic = quarantine_topic(plan.topology, pair.source.alias)
    found: dict[str, Quarantined] = {}
    for message in _read_all(pair, topic):
        entry = decode_quarantined(
            key=message.key(), value=message.value(), headers=_headers(message), control=control
        )
        found[entry.id] = entry
    return tuple(sorted(found.values(), key=lambda entry: (entry.at_ms, entry.topic, entry.offset)))


def find_quarantined(entries: Iterable[Quarantined], ids: Iterable[str]) -> list[Quarantined]:
    """The entries of these ids, in the order asked for.

    Raises:
        InputError: an id is not known.
    """
    known = {entry.id: entry for entry in entries}
    wanted = list(dict.fromkeys(ids))
    for one in wanted:
        if one not in known:
            raise InputError(
                f"no quarantined record has the id '{one}'",
                remedy="Look at 'replicator quarantine list'.",
            )
    return [known[one] for one in wanted]


def decode_quarantined(
    *,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] | None,
    control: ControlState,
) -> Quarantined:
    """Reads one record of the quarantine topic. Pure.

    Raises:
        StoredFormatError: an unknown version, or not ours.
    """
    kept = list(headers or ())
    stories = [content for name, content in kept if name == QUARANTINE_HEADER]
    try:
        about: Mapping[str, Any] = orjson.loads(stories[-1] or b"")
        if about["v"] != VERSION:
            raise StoredFormatError(
                f"a quarantined record has version {about['v']}, this release reads {VERSION}",
                remedy="Run the release that wrote it, or a newer one.",
            )
        outcome = control.quarantine_outcome(about["id"])
        raw = about["rawBase64"]
        # Ours is the last header of that name; the record itself may have had one before.
        last = max(at for at, (name, _) in enumerate(kept) if name == QUARANTINE_HEADER)
        return Quarantined(
            id=about["id"],
            flow=about["flow"],
            link=about["link"],
            topic=about["topic"],
            partition=about["partition"],
            offset=about["offset"],
            target_topic=about["targetTopic"],
            timestamp_ms=about["timestamp"],
            key=None if about["keyBase64"] is None else base64.b64decode(about["keyBase64"]),
            value=None if about["valueNull"] else value,
            value_kept=not about.get("valueOmitted", False),
            headers=tuple(header for at, header in enumerate(kept) if at != last),
            raw=None if raw is None else base64.b64decode(raw),
            error=about["error"],
            code=about["code"],
            at_ms=about["at"],
            outcome=None if outcome is None else outcome.outcome,
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"a record of the quarantine topic cannot be read ({error!r}); its key is {key!r}",
            remedy="Something else wrote into that topic; nothing was guessed.",
        ) from error


def _read_all(pair: PairPlan, topic: str) -> list[Message]:
    with ClusterAdmin(pair.target, client_id=CLIENT_ID) as admin:
        described = admin.describe_topics([topic]).get(topic)
        if described is None:
            return []
        keys = [(topic, number) for number in range(described.partitions)]
        starts = admin.known_offsets(keys, "earliest")
    consumer = open_consumer(
        consumer_config(pair.target, client_id=CLIENT_ID, fetch_wait_seconds=0.05)
    )
    try:
        places = [ClientPartition(*key, start) for key, start in starts.items()]
        consumer.assign(places)
        return _to_the_end(consumer, len(places), subject=f"cluster:{pair.target.alias}")
    finally:
        consumer.close()


def _to_the_end(consumer: Consumer, partitions: int, *, subject: str) -> list[Message]:
    deadline = time.monotonic() + READ_SECONDS
    messages: list[Message] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            raise UnreachableError(
                f"the quarantine topic could not be read within {READ_SECONDS:g} seconds",
                subject=subject,
                remedy="Check that its partitions have leaders, then try again.",
            )
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            messages.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public constant
            ended.add(message.partition() or 0)
        else:
            raise map_kafka_error(error, subject=subject, doing="read the quarantine topic")
    return messages


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name, item.encode() if isinstance(item, str) else item) for name, item in pairs]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
