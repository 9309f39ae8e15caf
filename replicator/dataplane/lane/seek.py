"""Starting to read partitions, each where it is to go on."""

import time
from collections.abc import Iterable

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.kafka import codes
from replicator.kafka.client import ClientPartition, Consumer, KafkaError, KafkaException

_ASSIGNING_SECONDS = 2.0
"""The client takes partitions up on a thread of its own, and refuses to seek in them before."""

SUSPICIOUS = frozenset(
    {
        codes.AUTO_OFFSET_RESET,
        codes.UNKNOWN_PARTITION,
        codes.UNKNOWN_TOPIC,
        codes.LOG_TRUNCATION,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)
"""What the client says of a partition whose source log may not be the one that was read before."""


def read_from(consumer: Consumer, routes: Iterable[PartitionState]) -> None:
    """Reads on at each route's position.

    Where the epoch of the record before it is known, the source is asked whether its log still has
    that: a log that was cut below and written anew is long enough, and holds something else. Only a
    seek has the client ask (librdkafka 2.16); it reports what it finds as ``_LOG_TRUNCATION``.
    """
    routes = list(routes)
    consumer.incremental_assign(
        [ClientPartition(route.topic, route.partition, route.position) for route in routes]
    )
    deadline = time.monotonic() + _ASSIGNING_SECONDS
    for route in routes:
        if route.position_epoch >= 0:
            place = ClientPartition(
                route.topic, route.partition, route.position, leader_epoch=route.position_epoch
            )
            _seek(consumer, place, deadline)


def _seek(consumer: Consumer, place: ClientPartition, deadline: float) -> None:
    while True:
        try:
            consumer.seek(place)
        except KafkaException as error:
            if error.args[0].code() != codes.ERRONEOUS_STATE or time.monotonic() > deadline:
                raise
            # The client takes an assignment up in its own thread, and tells nobody.
            time.sleep(0.005)
        else:
            return
