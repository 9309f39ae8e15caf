"""Writing one record byte for byte, with names and times the client library cannot carry."""

import time

from replicator.errors import UnknownOutcomeError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.errors import code_error
from replicator.wire.leader import leader_of
from replicator.wire.protocol import ProduceRequest
from replicator.wire.record_batch import RawRecord, encode_batch

_VERSION = 8
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
    subject, doing = f"cluster:{cluster.alias}", f"write to {topic}/{partition}"
    written = RawRecord(0, record.timestamp, "CreateTime", record.key, record.value, record.headers)
    data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=max(1, round(timeout_seconds * 1000)),
        topic_data=[
            data(
                name=topic,
                partition_data=[
                    data.PartitionProduceData(index=partition, records=encode_batch([written]))
                ],
            )
        ],
    )
    with leader_of(cluster, topic, partition, client_id=_CLIENT, deadline=deadline) as leader:
        try:
            answer = leader.call(request, newest=_VERSION, deadline=deadline)
        except UnreachableError as error:
            raise UnknownOutcomeError(
                f"no answer whether this took effect: {doing}",
                subject=subject,
                remedy="Look for the record before it is written again.",
            ) from error
    part = answer.responses[0].partition_responses[0]
    if part.error_code:
        raise code_error(
            part.error_code, subject=subject, doing=doing, detail=part.error_message or ""
        )
    return int(part.base_offset)
