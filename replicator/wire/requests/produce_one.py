"""Writing one record byte for byte, with names and times the client library cannot carry."""

import time

from replicator.errors import UnknownOutcomeError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import leader_of, until_led
from replicator.wire.connection.protocol import ProduceRequest
from replicator.wire.records.record_batch import RawRecord, encode_batch

_VERSION = 8
_UNDECIDED = frozenset({7, 20})  # timed out; written, but by too few replicas
_CLIENT = "replicator-raw"


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
