"""Has brokers make what every broker in use has: their transaction and group topics, warm code.

Without it the first start that is measured would be that of the brokers.
"""

from confluent_kafka import Consumer, Producer

from replicator.testing import LocalCluster, wait_until

_TOPIC = "bench-warm-up"
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
