"""Records of a test, written by an ordinary producer."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, Producer

from replicator.testing import Endpoint

FLUSH_SECONDS = 60


def produce(
    cluster: Endpoint,
    topic: str,
    records: Iterable[bytes | Mapping[str, Any]],
    *,
    partition: int = -1,
    settings: Mapping[str, Any] | None = None,
    as_admin: bool = False,
) -> None:
    """Writes records in order, and returns once the cluster has acknowledged every one of them.

    Args:
        cluster: asked directly, whatever stands between it and the program under test.
        topic: must exist.
        records: each a value, or the arguments of the client's ``produce``.
        partition: of those that name none; the client chooses where it is -1.
        settings: of the producer, beside the cluster's own or in their place.
        as_admin: on the cluster's own listener, where nothing is refused.
    """
    own = cluster.admin_settings() if as_admin else cluster.client_settings()
    producer = Producer({**own, **(settings or {})})
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    # While the client does not know the topic, records wait elsewhere; a flush sends them as they are moved, one by one.
    producer.list_topics(topic, timeout=FLUSH_SECONDS)
    for record in records:
        arguments = {"value": record} if isinstance(record, bytes) else record
        producer.produce(topic, on_delivery=delivered, **{"partition": partition, **arguments})
        producer.poll(0)
    assert producer.flush(FLUSH_SECONDS) == 0
    assert not failed, failed[0]
