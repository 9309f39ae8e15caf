"""Fetching one record byte for byte, where the client library cannot show it.

confluent-kafka refuses header names that are not UTF-8 and cuts names off at a NUL. Such a record
is fetched again here, so that it can be kept whole.
"""

import time

from replicator.errors import NotFoundError, StoredFormatError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import leader_of, until_led
from replicator.wire.connection.protocol import FetchRequest
from replicator.wire.records.record_batch import (
    RawRecord,
    decode_batch,
    encode_batch,
    split_batches,
)
from replicator.wire.requests.fetched_part import fetched_part

_VERSION = 11  # the last one without topic ids in a session and without compact encoding
_MOST_BYTES = 128 * 1024 * 1024
_FIRST_BYTES = 1024 * 1024
_CLIENT = "replicator-raw"


def fetch_record(
    cluster: ClusterPlan, topic: str, partition: int, offset: int, *, timeout_seconds: float = 10.0
) -> RawRecord:
    """The record at exactly this offset, also one of an open or aborted transaction.

    Raises:
        NotFoundError: there is no such record: not written yet, a marker, or compacted away.
        SourceDataLostError: the offset is outside of what the partition has.
        StoredFormatError: its batch is damaged or of an old format.
        ReplicatorError: the cluster cannot be reached, or refuses us.
    """
    deadline = time.monotonic() + timeout_seconds
    data = until_led(lambda: _fetch(cluster, topic, partition, offset, deadline), deadline=deadline)
    for header, batch in split_batches(data):
        if header.base_offset <= offset <= header.last_offset:
            for record in decode_batch(batch):
                if record.offset == offset:
                    return record
    raise NotFoundError(
        f"cannot fetch {topic}/{partition} at {offset}: there is no record",
        subject=f"cluster:{cluster.alias}",
        remedy="It is a transaction marker, was compacted away, or is not written yet.",
    )


def fetch_record_bytes(
    cluster: ClusterPlan, topic: str, partition: int, offset: int, *, timeout_seconds: float = 10.0
) -> bytes:
    """The record as a record batch of its own, for keeping; ``record_from_bytes`` reads it.

    Raises:
        ReplicatorError: as ``fetch_record``.
    """
    record = fetch_record(cluster, topic, partition, offset, timeout_seconds=timeout_seconds)
    return encode_batch([record])


def record_from_bytes(data: bytes) -> RawRecord:
    """Reads what ``fetch_record_bytes`` gave.

    Raises:
        StoredFormatError: the bytes are not one record.
    """
    records = decode_batch(data)
    if len(records) != 1:
        raise StoredFormatError(f"a kept record holds {len(records)} records")
    return records[0]


def _fetch(cluster: ClusterPlan, topic: str, partition: int, offset: int, deadline: float) -> bytes:
    with leader_of(cluster, topic, partition, client_id=_CLIENT, deadline=deadline) as leader:
        answer = leader.call(_request(topic, partition, offset), newest=_VERSION, deadline=deadline)
    subject, doing = f"cluster:{cluster.alias}", f"fetch {topic}/{partition} at {offset}"
    part = fetched_part(answer, subject=subject, doing=doing)
    if part.error_code:
        raise code_error(part.error_code, subject=subject, doing=doing)
    return bytes(part.records or b"")


def _request(topic: str, partition: int, offset: int) -> FetchRequest:
    place = FetchRequest.FetchTopic.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        log_start_offset=-1,
        # A broker gives the first batch whole, however large: this only bounds what follows it.
        partition_max_bytes=_FIRST_BYTES,
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_MOST_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[place])],
        forgotten_topics_data=[],
        rack_id="",
    )
