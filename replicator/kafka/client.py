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
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from replicator.kafka.errors import setting_refused
from replicator.kafka.settings import Config
from replicator.topology.plan import ClusterPlan
from replicator.topology.secrets import resolve_security

__all__ = [
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AdminClient",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "Producer",
    "TopicPartition",
    "open_admin",
    "open_consumer",
    "open_producer",
    "renew_credentials",
]


def open_consumer(config: Config, *, subject: str = "") -> Consumer:
    """Makes a consumer; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return Consumer(config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_producer(config: Config, *, subject: str = "") -> Producer:
    """Makes a producer; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return Producer(config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_admin(config: Config, *, subject: str = "") -> AdminClient:
    """Makes an admin client; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return AdminClient(config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def renew_credentials(client: Consumer | Producer | AdminClient, cluster: ClusterPlan) -> bool:
    """Reads user name and password again and gives them to a running client.

    They are used for the next connection; open ones stay. Returns whether there is anything to
    renew: certificates need a new client.

    Raises:
        SecretUnavailableError: a referenced secret is missing; the client keeps what it has.
    """
    if cluster.security.mechanism in {None, "OAUTHBEARER"}:
        return False
    security = resolve_security(cluster)
    client.set_sasl_credentials(security.username or "", security.password or "")
    return True
