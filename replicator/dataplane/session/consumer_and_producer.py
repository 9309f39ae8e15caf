"""Opening the consumer and the producer of a lane: what they may hold, how long they wait, whom they tell."""

from collections.abc import Callable
from functools import partial

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.dataplane.session.closing_beside import unless_closing
from replicator.dataplane.session.paced_consumer import PACED_FETCH_BYTES, PACED_FETCH_SECONDS
from replicator.dataplane.session.session_clients import batch_bytes
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.identifiers import progress_group
from replicator.kafka.admin.topic_ids import watch_topic_ids
from replicator.kafka.clients.client import Consumer, Producer, open_consumer, open_producer
from replicator.kafka.clients.settings import consumer_config, producer_config
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.policy.capacity.memory_shares import LaneMemory

COMMITTED_LINGER = 0.02
"""Seconds a batch may wait to fill inside a transaction: the commit sends it off anyway, and larger
batches save a quarter of the CPU on both sides."""

DIRECT_LINGER = 0.001
"""Without transactions nothing else sends a batch off, so this is latency."""

QUEUE_RECORDS = 100_000
FETCH_AHEAD_RECORDS = 20_000
FETCH_BYTES = 2 * 1024 * 1024
"""What a lane may hold on each side: as fast as larger queues, at half the memory (measured). How many
bytes its queues may hold follows from its part of the worker's memory, ``policy/capacity/memory_shares.py``."""

ONE_BY_ONE_BYTES = 1_000_000_000
"""Room for any record: of those that are copied one by one, few are under way."""

FETCHES_BYTES = 8 * 1024 * 1024
"""What it may ask of one partition at once on a long line."""

FETCH_WAIT_SECONDS = 0.25
"""How long a broker holds a fetch that finds nothing; records end the wait at once. Longer costs less
while idle, and delays a partition that is added to an idle lane by as much. So it does to partitions with a backlog that
the client leaves out of a fetch: docs/decisions/fetches-in-a-backlog.md."""

BOUNDED_FETCH_WAIT_SECONDS = 0.02
"""The same for a bounded copy: where its range ends in markers, only an empty fetch shows the end."""

LARGEST_RECORD_BYTES = 1_000_000_000


def open_lane_consumer(
    spec: LaneSpec,
    context: LaneContext,
    *,
    on_topic_id: Callable[[str, str], None],
    bounded: bool,
    partition_fetch_bytes: int,
    memory: LaneMemory,
    paced: bool = False,
) -> Consumer:
    """Calls ``on_topic_id`` with a topic and its id, as the client learns them.

    ``bounded`` is for a copy that ends by itself, ``paced`` for one that asks its source in paces. Nothing is sent to a broker yet.
    """
    wait_seconds = BOUNDED_FETCH_WAIT_SECONDS if bounded else FETCH_WAIT_SECONDS
    settings = {
        # The cluster's own settings go before it.
        **({"fetch.min.bytes": PACED_FETCH_BYTES} if paced else {}),
        **consumer_config(
            spec.source,
            follower_reads=True,
            client_id=lane_client_id(spec),
            # The library looks up its coordinator, though nothing is committed here; our user may use this one.
            group_id=progress_group(spec.topology, spec.target.alias),
            fetch_bytes=memory.answer_bytes,
            partition_fetch_bytes=min(partition_fetch_bytes, memory.answer_bytes),
            queue_bytes=memory.queue_bytes,
            fetch_wait_seconds=PACED_FETCH_SECONDS if paced else wait_seconds,
        ),
        "queued.min.messages": FETCH_AHEAD_RECORDS,
        "error_cb": unless_closing(partial(context.problems.note, "source")),
        "throttle_cb": unless_closing(context.on_source_throttle),
    }
    return open_consumer(watch_topic_ids(settings, unless_closing(on_topic_id)))


def open_lane_producer(
    spec: LaneSpec,
    context: LaneContext,
    *,
    deliveries: DeliveryErrors,
    coordinator: CoordinatorWatch,
    transactional_id: str | None,
    record_by_record: bool,
    memory: LaneMemory,
    codec: str,
) -> Producer:
    """``deliveries`` is told of failures where the flow has no transactions, ``coordinator`` where it has.

    ``transactional_id`` is None where it has none; a ``codec`` that the cluster's own settings name goes before ours. Nothing is sent to a broker yet.
    """
    transactional = transactional_id is not None
    return open_producer(
        {
            **producer_config(
                spec.target,
                client_id=lane_client_id(spec),
                transactional_id=transactional_id,
                linger_seconds=COMMITTED_LINGER if transactional else DIRECT_LINGER,
                compression=codec,
                queue_bytes=ONE_BY_ONE_BYTES if record_by_record else memory.unsent_bytes,
                requests_in_flight=5,
            ),
            "queue.buffering.max.messages": QUEUE_RECORDS,
            # The broker decides what is too large, not the client: only then is it a fact.
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "batch.size": batch_bytes(spec),
            **({"batch.num.messages": 1} if record_by_record else {}),
            # Nothing behind a refused batch may be written before the lane has seen the refusal;
            # inside a transaction nothing is.
            **({} if record_by_record or transactional else {"enable.gapless.guarantee": True}),
            # In a transaction the commit fails with any record, and a report per record costs; the
            # few that are asked for must report success too.
            **(
                {"delivery.report.only.error": False}
                if transactional
                else {"on_delivery": deliveries.report, "delivery.report.only.error": True}
            ),
            **(coordinator.settings() if transactional else {}),
            "error_cb": lambda error: context.problems.note("target", error),
            "throttle_cb": context.on_target_throttle,
        }
    )
