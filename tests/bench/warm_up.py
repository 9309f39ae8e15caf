"""Has brokers make what every broker in use has: their transaction and group topics, warm code.

Without it the first start that is measured would be that of the brokers.
"""

from confluent_kafka import Consumer, Producer
from load import count, fill

from replicator.testing import LocalCluster, wait_until

_TOPIC = "bench-warm-up"
_TOPIC_FULL = "bench-warm-up-full"
_RECORDS = 1_000_000
_ROUNDS = 200
_TIMEOUT_SECONDS = 60.0


def warm_up(cluster: LocalCluster) -> None:
    """Writes transactions and commits a group's positions."""
    cluster.create_topic(_TOPIC)
    producer = Producer({**cluster.client_settings(), "transactional.id": _TOPIC})
    producer.init_transactions(_TIMEOUT_SECONDS)
    for number in range(_ROUNDS):
        producer.begin_transaction()
        producer.produce(_TOPIC, str(number))
        producer.commit_transaction(_TIMEOUT_SECONDS)
    consumer = Consumer(
        {**cluster.client_settings(), "group.id": _TOPIC, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([_TOPIC])
    wait_until(
        lambda: consumer.poll(1.0) is not None,
        timeout_seconds=_TIMEOUT_SECONDS,
        describe="the warm-up group reads",
    )
    consumer.close()
    cluster.delete_topic(_TOPIC)
    # Compiled code for full batches: else the first copy of a run would warm it up for the others.
    fill(cluster, topic=_TOPIC_FULL, records=_RECORDS, size_bytes=100)
    count(cluster, topic=_TOPIC_FULL)
    cluster.delete_topic(_TOPIC_FULL)
