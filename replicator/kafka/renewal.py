"""Consumers and producers that take a changed password in place, without being made anew.

A client learns of the change by a refused login. It then reads the secrets again, and where they are
others, its next attempt uses them; connections that are open stay. Giving it the same ones again
would only make it try at once, in a circle. Certificates need a new client.

The library must not be called from inside its own callback (that ends the process), nor from another
thread while it is polled (that blocks): so it is done by the polling thread, after the poll.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from replicator.errors import SecretUnavailableError
from replicator.kafka import codes
from replicator.kafka.settings import CLUSTER, Config
from replicator.topology.plan import ClusterPlan
from replicator.topology.secrets import resolve_security


class _Credentials:
    """What a client logs in with, and whether that was refused since anybody looked."""

    def __init__(self, cluster: ClusterPlan) -> None:
        self._cluster = cluster
        self._given = _read(cluster)
        self.refused = False

    def renew(self, give: Callable[[str, str], Any]) -> None:
        """Gives the client what the secrets are now, if they are others."""
        self.refused = False
        try:
            now = _read(self._cluster)
        except SecretUnavailableError:
            return  # it keeps what it has
        if now != self._given:
            give(*now)
            self._given = now


class _RenewingConsumer(Consumer):
    """A consumer that looks after each poll whether its login was refused."""

    credentials: _Credentials

    def poll(self, *arguments: Any, **named: Any) -> Message | None:  # noqa: ANN401  as it is
        """As the library's."""
        message = super().poll(*arguments, **named)
        if self.credentials.refused:
            self.credentials.renew(self.set_sasl_credentials)
        return message

    def consume(self, *arguments: Any, **named: Any) -> list[Message]:  # noqa: ANN401  as it is
        """As the library's."""
        messages = super().consume(*arguments, **named)
        if self.credentials.refused:
            self.credentials.renew(self.set_sasl_credentials)
        return messages


class _RenewingProducer(Producer):
    """A producer that looks after each wait whether its login was refused."""

    credentials: _Credentials

    def poll(self, *arguments: Any, **named: Any) -> int:  # noqa: ANN401  as it is
        """As the library's."""
        count = super().poll(*arguments, **named)
        if self.credentials.refused:
            self.credentials.renew(self.set_sasl_credentials)
        return count

    def flush(self, *arguments: Any, **named: Any) -> int:  # noqa: ANN401  as it is
        """As the library's."""
        count = super().flush(*arguments, **named)
        if self.credentials.refused:
            self.credentials.renew(self.set_sasl_credentials)
        return count

    def commit_transaction(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401  as it is
        """As the library's."""
        try:
            super().commit_transaction(*arguments, **named)
        except KafkaException:
            if self.credentials.refused:
                self.credentials.renew(self.set_sasl_credentials)
            raise


_RENEWING: dict[type[Any], type[Any]] = {Consumer: _RenewingConsumer, Producer: _RenewingProducer}

Client = TypeVar("Client", Consumer, Producer)


def make_renewing(kind: type[Client], config: Config) -> Client:
    """Makes a client of the kind; with a password it takes changes of it in place."""
    settings = dict(config)
    cluster = settings.pop(CLUSTER, None)
    if cluster is None or cluster.security.mechanism in {None, "OAUTHBEARER"}:
        return kind(settings)
    told = settings.get("error_cb")
    credentials = _Credentials(cluster)

    def on_error(error: KafkaError) -> None:
        if error.code() == codes.AUTHENTICATION:
            credentials.refused = True
        if told is not None:
            told(error)

    settings["error_cb"] = on_error
    client: Client = _RENEWING[kind](settings)
    client.credentials = credentials  # type: ignore[attr-defined]  # of the renewing kind only
    return client


def _read(cluster: ClusterPlan) -> tuple[str, str]:
    security = resolve_security(cluster)
    return security.username or "", security.password or ""
