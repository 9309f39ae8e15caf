"""Records that could not be copied: kept whole, with their origin, in the quarantine topic.

The quarantine record has the original value and headers, a key that names the origin, and one
header of ours, ``replicator-quarantine``, with everything needed to put the record back.
"""

import base64
import hashlib
from dataclasses import dataclass

import orjson

from replicator.dataplane.copy.engine_protocol import Refusal

QUARANTINE_HEADER = "replicator-quarantine"


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """What is produced to the quarantine topic."""

    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes | str | None]]


def quarantine_id(flow: str, topic: str, partition: int, offset: int) -> str:
    """A stable short id: the same record quarantined twice has the same id."""
    text = f"{flow} {topic}/{partition}/{offset}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def quarantine_record(
    refusal: Refusal,
    *,
    flow: str,
    link: str,
    at_ms: int,
    raw: bytes | None,
    keep_value: bool = True,
) -> QuarantineRecord:
    """Builds the record; ``raw`` is the source record's own bytes where headers cannot be read."""
    message, state = refusal.message, refusal.state
    offset = message.offset()
    kind, timestamp = message.timestamp()
    key, value = message.key(), message.value()
    headers: list[tuple[str, bytes | str | None]] = []
    if raw is None:
        headers.extend(message.headers() or ())
    about = {
        "v": 1,
        "id": quarantine_id(flow, state.topic, state.partition, offset),
        "flow": flow,
        "link": link,
        "topic": state.topic,
        "partition": state.partition,
        "offset": offset,
        "targetTopic": state.target_topic,
        "timestamp": timestamp,
        "timestampType": {1: "CreateTime", 2: "LogAppendTime"}.get(kind, "NoTimestampType"),
        "keyBase64": None if key is None else base64.b64encode(key).decode(),
        "valueNull": value is None,
        "valueOmitted": not keep_value,
        "error": refusal.error,
        "code": refusal.code,
        "at": at_ms,
        "rawBase64": None if raw is None else base64.b64encode(raw).decode(),
    }
    headers.append((QUARANTINE_HEADER, orjson.dumps(about)))
    key_of_record = orjson.dumps(
        {"flow": flow, "offset": offset, "partition": state.partition, "topic": state.topic, "v": 1}
    )
    return QuarantineRecord(key_of_record, value if keep_value else None, headers)
