"""What stands in a partition, batch by batch."""

import time

from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import leader_of
from replicator.wire.connection.protocol import FetchRequest
from replicator.wire.records.record_batch import BatchHeader, split_batches

_SECONDS = 20.0
_BYTES = 50_000_000


def batch_headers(cluster: ClusterPlan, topic: str) -> list[BatchHeader]:
    """The header of every batch of records in partition 0, as a fetch gives them."""
    deadline = time.monotonic() + _SECONDS
    with leader_of(cluster, topic, 0, client_id="lab", deadline=deadline) as leader:
        place = FetchRequest.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1,
            partition_max_bytes=_BYTES,
        )  # fmt: skip
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=_BYTES, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[place])],
        )  # fmt: skip
        answer = leader.call(request, newest=11, deadline=deadline)
    data = bytes(answer.responses[0].partitions[0].records or b"")
    return [header for header, _ in split_batches(data) if not header.is_control]
