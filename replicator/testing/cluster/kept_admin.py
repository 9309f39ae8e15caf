"""The admin client of a test cluster, kept as long as it is good."""

import time

from confluent_kafka.admin import AdminClient

from replicator.kafka.clients.lost_brokers import has_broker

_ASK_AGAIN_SECONDS = 5.0
_ANY_TOPIC = "__consumer_offsets"


class KeptAdmin:
    """One client, until it has lost all brokers though some run: see ``lost_brokers.py``."""

    def __init__(self) -> None:
        self._client: AdminClient | None = None
        self._ask_at = 0.0

    def client(self, settings: dict[str, str], *, up: bool) -> AdminClient:
        """The client, quiet about brokers that are down; ``up``: whether a broker runs that it could find."""
        now = time.monotonic()
        if self._client is not None and up and now >= self._ask_at:
            self._ask_at = now + _ASK_AGAIN_SECONDS
            if not has_broker(self._client, _ANY_TOPIC):
                self._client = None
        if self._client is None:
            self._client = AdminClient({**settings, "log_level": 2})
        return self._client

    def close(self) -> None:
        """Gives the connections back."""
        self._client = None
