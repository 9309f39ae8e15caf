"""Measuring the line to a cluster: round trip, loss, and the rate that we can send at. Nothing is stored there."""

import time
import uuid
from dataclasses import dataclass

from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import ApiVersionsRequest, ProduceRequest
from replicator.wire.probes.line import line_facts

_CLIENT = "replicator-check"
_PRODUCE_VERSION, _VERSIONS_VERSION = 8, 3
_CONNECT_SECONDS = 15.0
_ANSWER_SECONDS = 60.0
_ROUND_TRIPS = 5
_FIRST_BYTES, _MOST_BYTES = 256 * 1024, 32 * 1024 * 1024
_LONG_ENOUGH_SECONDS = 1.5
_LOSS_REQUESTS, _LOSS_BYTES, _LOSS_SECONDS = 60, 64 * 1024, 8.0


@dataclass(frozen=True, slots=True)
class LineMeasured:
    """To one broker: its address, round trip in seconds, loss as a share of what we sent, bytes per second."""

    address: str
    round_trip_seconds: float
    loss: float
    bytes_per_second: float


def measure_line(cluster: ClusterPlan) -> LineMeasured:
    """Measures the line to the first bootstrap server that answers; takes up to 20 seconds.

    The rate is that of produce requests to a topic which does not exist: brokers read them whole and
    refuse them, so nothing is written and no right is needed.

    Raises:
        ReplicatorError: the cluster cannot be reached, or does not let us in.
    """
    deadline = time.monotonic() + _CONNECT_SECONDS
    with any_broker(cluster, client_id=_CLIENT, deadline=deadline) as connection:
        round_trip = min(_timed_question(connection) for _ in range(_ROUND_TRIPS))
        loss = _loss(connection)
        return LineMeasured(connection.where, round_trip, loss, _rate(connection, round_trip))


def _timed_question(connection: BrokerConnection) -> float:
    began = time.monotonic()
    request = ApiVersionsRequest(client_software_name="replicator", client_software_version="1")
    connection.call(request, newest=_VERSIONS_VERSION, deadline=began + _ANSWER_SECONDS)
    return time.monotonic() - began


def _loss(connection: BrokerConnection) -> float:
    """What is sent again of small requests, one at a time: a line that is filled loses packets by itself."""
    topic = f"replicator-check-{uuid.uuid4().hex}"
    ends = time.monotonic() + _LOSS_SECONDS
    for _ in range(_LOSS_REQUESTS):
        _refused(connection, topic, _LOSS_BYTES)
        if time.monotonic() >= ends:
            break
    facts = line_facts(connection.into_socket())
    return 0.0 if facts is None else facts.loss


def _rate(connection: BrokerConnection, round_trip: float) -> float:
    size = _FIRST_BYTES
    topic = f"replicator-check-{uuid.uuid4().hex}"
    while True:
        seconds = max(_refused(connection, topic, size) - round_trip, 1e-6)
        if seconds >= _LONG_ENOUGH_SECONDS or size >= _MOST_BYTES:
            return size / seconds
        size *= 2


def _refused(connection: BrokerConnection, topic: str, size: int) -> float:
    """Seconds until the broker has read so many bytes and said that there is no such topic."""
    data = ProduceRequest.TopicProduceData
    place = data.PartitionProduceData(index=0, records=bytes(size))
    began = time.monotonic()
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=round(_ANSWER_SECONDS * 1000),
        topic_data=[data(name=topic, partition_data=[place])],
    )
    connection.call(request, newest=_PRODUCE_VERSION, deadline=began + _ANSWER_SECONDS)
    return time.monotonic() - began
