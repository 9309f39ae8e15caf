"""Consumers and producers that take a changed password in place, without being made anew.

After each poll a client looks whether its cluster's login has changed, and after a refused login the
files are read at once. Where the password is another, the next connection uses it; connections that are
open stay. Giving it the same one again would only make it try at once, in a circle. Certificates need
a new client, and tokens come by themselves.

The library must not be called from inside its own callback (that ends the process), nor from another
thread while it is polled (that blocks): so it is done by the polling thread, after the poll.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from replicator.kafka.clients import codes
from replicator.kafka.clients.groupless import GrouplessConsumer
from replicator.kafka.clients.settings import LOGIN, Config
from replicator.logins.cluster_login import ClusterLogin


class _Credentials:
    """What a client logs in with, and whether that is another now or was refused."""

    def __init__(self, login: ClusterLogin) -> None:
        self._login = login
        self._version = login.version
        self._given = _read(login)
        self.refused = False

    @property
    def due(self) -> bool:
        """Whether there is reason to look."""
        return self.refused or self._version != self._login.version

    def renew(self, give: Callable[[str, str], Any]) -> None:
        """Gives the client what the secrets are now, if they are others."""
        self.refused = False
        now = _read(self._login)
        self._version = self._login.version
        if now != self._given:
            give(*now)
            self._given = now


class _RenewingConsumer(Consumer):
    """A consumer that looks after each poll whether its login was refused."""

    credentials: _Credentials

    def poll(self, *arguments: Any, **named: Any) -> Message | None:  # noqa: ANN401  as it is
        """As the library's."""
        message = super().poll(*arguments, **named)
        if self.credentials.due:
            self.credentials.renew(self.set_sasl_credentials)
        return message

    def consume(self, *arguments: Any, **named: Any) -> list[Message]:  # noqa: ANN401  as it is
        """As the library's."""
        messages = super().consume(*arguments, **named)
        if self.credentials.due:
            self.credentials.renew(self.set_sasl_credentials)
        return messages


class _RenewingProducer(Producer):
    """A producer that looks after each wait whether its login was refused."""

    credentials: _Credentials

    def poll(self, *arguments: Any, **named: Any) -> int:  # noqa: ANN401  as it is
        """As the library's."""
        count = super().poll(*arguments, **named)
        if self.credentials.due:
            self.credentials.renew(self.set_sasl_credentials)
        return count

    def flush(self, *arguments: Any, **named: Any) -> int:  # noqa: ANN401  as it is
        """As the library's."""
        count = super().flush(*arguments, **named)
        if self.credentials.due:
            self.credentials.renew(self.set_sasl_credentials)
        return count

    def commit_transaction(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401  as it is
        """As the library's."""
        try:
            super().commit_transaction(*arguments, **named)
        except KafkaException:
            if self.credentials.due:
                self.credentials.renew(self.set_sasl_credentials)
            raise


class _RenewingGroupless(_RenewingConsumer, GrouplessConsumer):
    """Both."""


_RENEWING: dict[type[Any], type[Any]] = {
    Consumer: _RenewingConsumer,
    GrouplessConsumer: _RenewingGroupless,
    Producer: _RenewingProducer,
}

Client = TypeVar("Client", Consumer, Producer)


def make_renewing(kind: type[Client], config: Config) -> Client:
    """Makes a client of the kind; with a password it takes changes of it in place."""
    settings = dict(config)
    login: ClusterLogin | None = settings.pop(LOGIN, None)
    if login is None or login.tokens is not None or login.cluster.security.mechanism is None:
        return kind(settings)
    told = settings.get("error_cb")
    credentials = _Credentials(login)

    def on_error(error: KafkaError) -> None:
        if error.code() == codes.AUTHENTICATION:
            credentials.refused = True
        if told is not None:
            told(error)

    settings["error_cb"] = on_error
    client: Client = _RENEWING[kind](settings)
    client.credentials = credentials  # type: ignore[attr-defined]  # of the renewing kind only
    return client


def _read(login: ClusterLogin) -> tuple[str, str]:
    security = login.security()
    return security.username or "", security.password or ""
