"""Writing one record byte for byte, with names and times the client library cannot carry."""

import time

from replicator.errors import TransientBrokerError, UnknownOutcomeError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import leader_of, until_led
from replicator.wire.connection.protocol import ProduceRequest
from replicator.wire.records.record_batch import RawRecord, encode_batch

_VERSION = 8
_UNDECIDED = frozenset({7, 20})  # timed out; written, but by too few replicas
_CLIENT = "replicator-raw"
_ATTEMPT_SECONDS = 2.5
"""How long a write waits for its replicas: with a broker that is cut off from the others, for ever."""


def produce_record(
    cluster: ClusterPlan,
    topic: str,
    partition: int,
    record: RawRecord,
    *,
    timeout_seconds: float = 10.0,
) -> int:
    """Writes the record and waits until all replicas in sync have it; returns its offset there.

    The record's own offset plays no part. It is written as CreateTime, without deduplication:
    after an UnknownOutcomeError it may be there.

    Raises:
        RecordRefusedError: the topic does not take it.
        UnknownOutcomeError: no answer after it was sent.
        ReplicatorError: it was not written: the cluster cannot be reached, or refuses us.
    """
    deadline = time.monotonic() + timeout_seconds
    written = RawRecord(0, record.timestamp, "CreateTime", record.key, record.value, record.headers)
    batch = encode_batch([written])
    subject = f"cluster:{cluster.alias}"

    def write() -> int:
        with leader_of(cluster, topic, partition, client_id=_CLIENT, deadline=deadline) as leader:
            return _send(leader, topic, partition, batch, subject=subject, deadline=deadline)

    return until_led(write, deadline=deadline)


def end_by_a_write(
    cluster: ClusterPlan, topic: str, partition: int, *, key: bytes, timeout_seconds: float
) -> int:
    """Where a log of a compacted topic ends, by a record without a value that is written to it: behind that.

    Only the present leader can have it acknowledged by the replicas in sync; one that is cut off from the controllers
    cannot, and would tell an end of the past. What has no answer is written again.

    Raises:
        ReplicatorError: nobody acknowledged it in time, or the cluster refuses us.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = deadline - time.monotonic()
        record = RawRecord(0, round(time.time() * 1000), "CreateTime", key, None, ())
        try:
            written = produce_record(
                cluster, topic, partition, record, timeout_seconds=min(left, _ATTEMPT_SECONDS)
            )
        except (UnknownOutcomeError, UnreachableError, TransientBrokerError) as error:
            if time.monotonic() + _ATTEMPT_SECONDS >= deadline:
                raise UnreachableError(
                    f"no broker of {cluster.alias} acknowledges a write to {topic}/{partition}: {error.message}",
                    subject=f"cluster:{cluster.alias}",
                    remedy="Check that it has a leader and enough replicas in sync; it is tried again.",
                ) from error
        else:
            return written + 1


def _send(
    leader: BrokerConnection,
    topic: str,
    partition: int,
    batch: bytes,
    *,
    subject: str,
    deadline: float,
) -> int:
    doing = f"write to {topic}/{partition}"
    data = ProduceRequest.TopicProduceData
    place = data.PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=max(1, round((deadline - time.monotonic()) * 1000)),
        topic_data=[data(name=topic, partition_data=[place])],
    )
    unknown = UnknownOutcomeError(
        f"no answer whether this took effect: {doing}",
        subject=subject,
        remedy="Look for the record before it is written again.",
    )
    try:
        answer = leader.call(request, newest=_VERSION, deadline=deadline)
    except UnreachableError as error:
        raise unknown from error
    part = answer.responses[0].partition_responses[0]
    if part.error_code in _UNDECIDED:
        raise unknown
    if part.error_code:
        detail = part.error_message or ""
        raise code_error(part.error_code, subject=subject, doing=doing, detail=detail)
    return int(part.base_offset)
