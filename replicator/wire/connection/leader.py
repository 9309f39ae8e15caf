"""Finding the leader of a partition and connecting to it, by our own means."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, wait_fixed

from replicator.errors import ReplicatorError, TransientBrokerError, UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import MetadataRequest

Answer = TypeVar("Answer")

_METADATA_VERSION = 9
_PAUSE_SECONDS = 0.1
_SHORT_SECONDS = 2.0
"""With so little time left an attempt without an answer says nothing of its broker."""
_UNKNOWN_TOPIC = 3
_ASKED_ELSEWHERE = 3

_TURNS = itertools.count()

_Address = tuple[str, int]


def any_broker(cluster: ClusterPlan, *, client_id: str, deadline: float) -> BrokerConnection:
    """A connection to a bootstrap server that answers; the caller closes it.

    Every call begins with another one: a broker that is cut off from the others answers too, and knows nothing.

    Raises:
        ReplicatorError: the last one's reason, when none does.
    """
    failure: ReplicatorError = UnreachableError(
        "no bootstrap server answers in time",
        subject=f"cluster:{cluster.alias}",
        remedy="Check that the brokers run and that bootstrapServers can be reached from here.",
    )
    servers = cluster.bootstrap_servers
    turn = next(_TURNS) % len(servers)
    servers = (*servers[turn:], *servers[:turn])
    for number, server in enumerate(servers):
        # A server that swallows everything must leave time for the others.
        share = (deadline - time.monotonic()) / (len(servers) - number)
        try:
            return BrokerConnection(
                cluster,
                split_address(server),
                client_id=client_id,
                deadline=time.monotonic() + share,
            )
        except ReplicatorError as error:
            failure = error
    raise failure


@contextmanager
def leader_of(
    cluster: ClusterPlan, topic: str, partition: int, *, client_id: str, deadline: float
) -> Iterator[BrokerConnection]:
    """A connection to the partition's leader; waits for a leader while there is none.

    Raises:
        NotFoundError: no such topic or partition.
        ReplicatorError: the cluster cannot be reached, or refuses us.
    """
    with leader_connection(
        cluster, topic, partition, client_id=client_id, deadline=deadline
    ) as leader:
        yield leader


def leader_connection(
    cluster: ClusterPlan, topic: str, partition: int, *, client_id: str, deadline: float
) -> BrokerConnection:
    """As ``leader_of``; the caller closes it."""

    def connect() -> BrokerConnection:
        with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
            address = find_leader(
                connection, cluster, (topic, partition), client_id=client_id, deadline=deadline
            )
        return BrokerConnection(cluster, address, client_id=client_id, deadline=deadline)

    return until_answered(connect, deadline=deadline)


def until_led(attempt: Callable[[], Answer], *, deadline: float) -> Answer:
    """Tries again while the cluster says that it is only moving leadership.

    Raises:
        ReplicatorError: any other error at once, and this one at the deadline.
    """
    return _retrying(TransientBrokerError, deadline=deadline)(attempt)


def until_answered(attempt: Callable[[], Answer], *, deadline: float) -> Answer:
    """As ``until_led``, and where nobody answers; for questions, which change nothing.

    What a broker said a moment ago says more than a last attempt that the deadline cut short.
    """
    heard: TransientBrokerError | None = None

    def asked() -> Answer:
        nonlocal heard
        began = time.monotonic()
        try:
            return attempt()
        except TransientBrokerError as error:
            heard = error
            raise
        except UnreachableError:
            if heard is not None and began > deadline - _SHORT_SECONDS:
                raise heard from None
            heard = None
            raise

    return _retrying(TransientBrokerError, UnreachableError, deadline=deadline)(asked)


def split_address(server: str) -> tuple[str, int]:
    """``host:port`` in two; IPv6 addresses without their brackets."""
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _retrying(*kinds: type[ReplicatorError], deadline: float) -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(kinds),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=lambda _: time.monotonic() + _PAUSE_SECONDS >= deadline,
        reraise=True,
    )


def find_leader(
    connection: BrokerConnection,
    cluster: ClusterPlan,
    place: tuple[str, int],
    *,
    client_id: str,
    deadline: float,
) -> _Address:
    """Where the leader of a topic and partition listens.

    A broker that has just started does not know every topic yet, and says that they do not exist. So others are
    asked before that is believed: to a reader of a registry it means that nothing was ever registered.

    Raises:
        NotFoundError: no such topic or partition.
        TransientBrokerError: it has no leader now.
        ReplicatorError: the broker does not answer, or refuses us.
    """
    answer = _described(connection, cluster, place[0], deadline)
    if answer.topics[0].error_code == _UNKNOWN_TOPIC:
        others = [
            address
            for broker in answer.brokers
            if (address := (broker.host, broker.port)) != connection.address
        ]
        for address in others[:_ASKED_ELSEWHERE]:
            try:
                with BrokerConnection(
                    cluster, address, client_id=client_id, deadline=deadline
                ) as other:
                    told = _described(other, cluster, place[0], deadline)
            except ReplicatorError:
                continue  # what the others said stands
            if told.topics[0].error_code != _UNKNOWN_TOPIC:
                answer = told
                break
    return _leader_in(answer, cluster, place)


def _described(  # the library has no types
    connection: BrokerConnection, cluster: ClusterPlan, topic: str, deadline: float
) -> Any:  # noqa: ANN401
    wanted = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    answer = connection.call(wanted, newest=_METADATA_VERSION, deadline=deadline)
    require_live_brokers(answer.brokers, cluster)
    return answer


def _leader_in(answer: Any, cluster: ClusterPlan, place: tuple[str, int]) -> _Address:  # noqa: ANN401
    topic, partition = place
    subject, doing = f"cluster:{cluster.alias}", f"find the leader of {topic}/{partition}"
    found = answer.topics[0]
    if found.error_code:
        raise code_error(found.error_code, subject=subject, doing=doing)
    brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    for each in found.partitions:
        if each.partition_index == partition:
            if each.leader_id not in brokers:
                raise code_error(each.error_code or 5, subject=subject, doing=doing)
            return brokers[each.leader_id]
    raise code_error(3, subject=subject, doing=doing, detail="there is no such partition")
