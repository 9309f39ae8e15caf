"""Consumed records as Arrow batches, with the columns of the stock Kafka source.

Every field is kept: null and empty keys and values differ, headers are an array in order with
duplicates and null values, and a record without headers has null there. ``leaderEpoch`` is ours.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from replicator.dataplane.copy.source_message import UNREADABLE, Headers, SourceMessage
from replicator.errors import RecordRefusedError
from replicator.kafka.clients.client import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE
from replicator.spark.source.scan import Scanned

HEADERS_DDL = "headers array<struct<key: string, value: binary>>, "
SCHEMA_DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    f"timestampType int, {HEADERS_DDL}leaderEpoch int"
)
CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP = 0, 1, -1
"""Values of ``timestampType``, as Kafka's own clients number them."""

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(_HEADER)),
        ("leaderEpoch", pa.int32()),
    ]
)
SCHEMA_WITHOUT_HEADERS = SCHEMA.remove(SCHEMA.get_field_index("headers"))
BATCH_BYTES = 16 * 1024 * 1024


def record_batches(
    scanned: Scanned, *, with_headers: bool = True, most_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """The records as batches of about ``most_bytes`` of keys and values at most.

    Without headers that column is left out.

    Raises:
        RecordRefusedError: a header name is not UTF-8, which no column can hold unchanged.
    """
    begin = held = 0
    for at, message in enumerate(scanned.messages):
        size = len(message.key() or b"") + len(message.value() or b"")
        if held and held + size > most_bytes:
            yield _batch(scanned, begin, at, with_headers)
            begin, held = at, 0
        held += size
    if begin < len(scanned.messages):
        yield _batch(scanned, begin, len(scanned.messages), with_headers)


def _batch(scanned: Scanned, begin: int, end: int, with_headers: bool) -> pa.RecordBatch:
    messages = scanned.messages[begin:end]
    count = len(messages)
    stamps = [message.timestamp() for message in messages]
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.repeat(pa.scalar(scanned.range.topic, pa.string()), count),
        pa.repeat(pa.scalar(scanned.range.partition, pa.int32()), count),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array(
            [None if kind == TIMESTAMP_NOT_AVAILABLE else at * 1000 for kind, at in stamps],
            pa.timestamp("us", tz="UTC"),
        ),
        pa.array([timestamp_type(kind) for kind, _ in stamps], pa.int32()),
    ]
    if with_headers:
        columns.append(_headers(scanned.headers[begin:end], messages))
    columns.append(pa.array([message.leader_epoch() for message in messages], pa.int32()))
    return pa.RecordBatch.from_arrays(
        columns, schema=SCHEMA if with_headers else SCHEMA_WITHOUT_HEADERS
    )


def timestamp_type(kind: int) -> int:
    """The library's kind of a timestamp as Kafka's own clients number it."""
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return NO_TIMESTAMP
    return LOG_APPEND_TIME if kind == TIMESTAMP_LOG_APPEND_TIME else CREATE_TIME


def _headers(headers: Sequence[Headers | None], messages: Sequence[SourceMessage]) -> pa.Array:
    found = [None if one is None else _pairs(one, at, messages) for at, one in enumerate(headers)]
    return pa.array(found, pa.list_(_HEADER))


def _pairs(
    headers: Headers, at: int, messages: Sequence[SourceMessage]
) -> list[dict[str, str | bytes | None]] | None:
    if headers is UNREADABLE:
        message = messages[at]
        raise RecordRefusedError(
            f"{message.topic()}/{message.partition()} at {message.offset()}: a header name is not "
            "valid UTF-8, and no column can hold it unchanged",
            remedy="Read around that offset with startingOffsets and endingOffsets.",
        )
    return header_rows(headers)


def header_rows(headers: Headers | None) -> list[dict[str, str | bytes | None]] | None:
    """Headers as rows of the ``headers`` column; None where there are none."""
    return [{"key": name, "value": value} for name, value in headers or ()] or None
