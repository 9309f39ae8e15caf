"""Starting to read partitions, each where it is to go on."""

import time
from collections.abc import Iterable
from typing import Protocol

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import ClientPartition, KafkaError, KafkaException
from replicator.kafka.clients.errors import map_kafka_error

_ASSIGNING_SECONDS = 2.0
"""The client takes an assignment up in a thread of its own, and refuses to seek before it has."""

NEEDS_CHECK = frozenset(
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

_STEP_SECONDS = 0.005


class Reader(Protocol):
    """A consumer that partitions can be given to."""

    def incremental_assign(self, partitions: list[ClientPartition], /) -> None:
        """Reads them too."""
        ...

    def seek(self, partition: ClientPartition, /) -> None:
        """Goes on elsewhere."""
        ...


def read_from(consumer: Reader, states: Iterable[PartitionState]) -> None:
    """Reads on at each partition's position.

    Where the epoch of the last record before it is known, the source is asked whether its log still
    holds that record: a log that was cut below it and written anew may be long enough all the same. Only
    a seek makes the client ask (librdkafka 2.16); it reports a cut as ``_LOG_TRUNCATION``. Reading goes
    on right behind that record: between it and the position were only markers and aborted records, and
    a record that is found there shows as well that the log is another one.

    Raises:
        KafkaException, ReplicatorError: the client takes no assignment, or does not begin to read.
    """
    states = list(states)
    consumer.incremental_assign(
        [ClientPartition(state.topic, state.partition, _first(state)) for state in states]
    )
    deadline = time.monotonic() + _ASSIGNING_SECONDS
    for state in states:
        if state.position_epoch >= 0:
            place = ClientPartition(
                state.topic, state.partition, _first(state), leader_epoch=state.position_epoch
            )
            _seek(consumer, place, deadline)


def _first(state: PartitionState) -> int:
    known = state.position_epoch >= 0 and state.record_end >= 0
    return min(state.record_end, state.position) if known else state.position


def _seek(consumer: Reader, place: ClientPartition, deadline: float) -> None:
    while True:
        try:
            consumer.seek(place)
        except KafkaException as error:
            if error.args[0].code() != codes.ERRONEOUS_STATE or time.monotonic() > deadline:
                name = f"{place.topic}/{place.partition}"
                raise map_kafka_error(error.args[0], subject=name, doing=f"read {name}") from error
            time.sleep(_STEP_SECONDS)  # the client assigns in its own thread, without an event
        else:
            return
