"""The client library's types for the hot path, and the making of clients.

The data plane works with these types directly: wrapping them costs more than the work itself
(figures in docs/benchmarks.md). So this file is its door to the library, and the only one.
"""

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ThrottleEvent,
)
from confluent_kafka import (
    TopicPartition as ClientPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata

from replicator.kafka.clients.errors import setting_refused
from replicator.kafka.clients.groupless import NO_GROUP, GrouplessConsumer
from replicator.kafka.clients.renewal import make_renewing
from replicator.kafka.clients.settings import LOGIN, Config

__all__ = [
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AdminClient",
    "ClientPartition",
    "ClusterMetadata",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "Producer",
    "ThrottleEvent",
    "open_admin",
    "open_consumer",
    "open_producer",
]


def open_consumer(config: Config, *, subject: str = "") -> Consumer:
    """Makes a consumer; nothing is sent yet. One without a group is never told of rights on groups.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        groupless = config.get("group.id") == NO_GROUP
        return make_renewing(GrouplessConsumer if groupless else Consumer, config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_producer(config: Config, *, subject: str = "") -> Producer:
    """Makes a producer; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return make_renewing(Producer, config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_admin(config: Config, *, subject: str = "") -> AdminClient:
    """Makes an admin client; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return AdminClient({name: value for name, value in config.items() if name != LOGIN})
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error
