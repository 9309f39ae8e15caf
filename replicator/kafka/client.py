"""The client library's types for the hot path, and the making of clients.

The data plane works with these types directly: wrapping them costs more than the work itself
(figures in docs/benchmarks.md). So this file is its door to the library, and the only one.
"""

import contextlib
import threading
import weakref
from typing import TypeVar, cast

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

from replicator.errors import SecretUnavailableError
from replicator.kafka import codes
from replicator.kafka.errors import setting_refused
from replicator.kafka.settings import CLUSTER, Config
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


Client = TypeVar("Client", Consumer, Producer, AdminClient)


def open_consumer(config: Config, *, subject: str = "") -> Consumer:
    """Makes a consumer; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return _renewing(Consumer, config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_producer(config: Config, *, subject: str = "") -> Producer:
    """Makes a producer; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return _renewing(Producer, config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


def open_admin(config: Config, *, subject: str = "") -> AdminClient:
    """Makes an admin client; nothing is sent yet.

    Raises:
        InputError: the library does not accept a setting.
    """
    try:
        return _renewing(AdminClient, config)
    except (KafkaException, ValueError, TypeError) as error:
        raise setting_refused(error, subject=subject) from error


class _WeaklyHeldConsumer(Consumer):
    """The library's own type cannot be referred to weakly.

    A strong reference from its own callback would keep a client and its threads alive.
    """


class _WeaklyHeldProducer(Producer):
    """See ``_WeaklyHeldConsumer``."""


_WEAKLY_HELD = {
    Consumer: _WeaklyHeldConsumer,
    Producer: _WeaklyHeldProducer,
    AdminClient: AdminClient,
}


def _renewing(kind: type[Client], config: Config) -> Client:
    """Makes a client that reads its user's name and password again when a login was refused.

    So a password can be changed in place: a client is told of the change by the refusal, and its
    next attempt, a second later at most, has what stands in the file by then.
    """
    settings = dict(config)
    cluster = settings.pop(CLUSTER, None)
    if cluster is None or cluster.security.mechanism in {None, "OAUTHBEARER"}:
        return kind(settings)
    told = settings.get("error_cb")
    made: list[weakref.ref[Client]] = []

    def renew() -> None:
        client = made[0]() if made else None
        if client is not None:
            # It keeps what it has where a secret is missing, and may be closed meanwhile.
            with contextlib.suppress(SecretUnavailableError, KafkaException, RuntimeError):
                renew_credentials(client, cluster)

    def on_error(error: KafkaError) -> None:
        if error.code() == codes.AUTHENTICATION:
            # Not from inside the library's callback: a second call into it ends the process.
            threading.Thread(target=renew, name="renew-credentials", daemon=True).start()
        if told is not None:
            told(error)

    settings["error_cb"] = on_error
    client = cast("type[Client]", _WEAKLY_HELD[kind])(settings)
    made.append(weakref.ref(client))
    return client


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
