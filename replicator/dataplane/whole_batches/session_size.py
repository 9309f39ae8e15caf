"""How much a session of whole batches fetches and holds, from its round trips and the lane's share of memory."""

from dataclasses import dataclass, replace

from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.dataplane.whole_batches.batch_session import (
    FETCH_BYTES,
    OUTSTANDING_BYTES,
    PARTITION_BYTES,
)
from replicator.policy.capacity.line_settings import LineSettings, line_settings
from replicator.policy.capacity.memory_shares import LaneMemory, batches_memory
from replicator.wire.probes.broker_count import broker_count
from replicator.wire.probes.line import round_trip_seconds


@dataclass(frozen=True, slots=True)
class SessionSize:
    """``line`` has no larger answers than ``memory`` allows; ``target_seconds`` is the round trip to the target."""

    line: LineSettings
    memory: LaneMemory
    target_seconds: float


def session_size(spec: LaneSpec) -> SessionSize:
    """Asks both clusters how far they are, and the source for its brokers; see ``round_trip_seconds``."""
    target_seconds = round_trip_seconds(spec.target)
    line = line_settings(
        source_seconds=round_trip_seconds(spec.source),
        target_seconds=target_seconds,
        fetch_bytes=FETCH_BYTES,
        partition_bytes=PARTITION_BYTES,
        commit_interval_seconds=spec.settings.commit_interval_seconds,
    )
    memory = batches_memory(
        spec.memory,
        brokers=broker_count(spec.source, client_id=lane_client_id(spec)),
        connections=line.connections,
        fetch_bytes=line.fetch_bytes,
        outstanding_bytes=OUTSTANDING_BYTES,
    )
    bounded = replace(
        line,
        fetch_bytes=memory.answer_bytes,
        partition_bytes=min(line.partition_bytes, memory.answer_bytes),
    )
    return SessionSize(bounded, memory, target_seconds)
