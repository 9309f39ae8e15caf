"""The clients of a lane's next session, opened and connected while the present one copies on."""

import threading
from collections.abc import Callable

from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.errors import ReplicatorError
from replicator.kafka.clients.client import KafkaException


class ClientsAhead:
    """One attempt, in a thread of its own that ends by itself; used by the lane's thread.

    Connections, TLS and logins take most of the time that a lane needs to go on with other clients.
    Until ``take`` nothing is done that another owner, or the lane itself, could notice.
    """

    def __init__(self, open_clients: Callable[[], SessionClients], *, name: str) -> None:
        """Begins at once."""
        self._open = open_clients
        self._lock = threading.Lock()
        self._given_up = False
        self._clients: SessionClients | None = None
        self.over = False
        self.failure: ReplicatorError | KafkaException | None = None
        """Why there are none; set before ``over``."""
        threading.Thread(target=self._run, name=f"{name}-ahead", daemon=True).start()

    def take(self) -> SessionClients | None:
        """The clients, which are the caller's from now on; None where they could not be had."""
        with self._lock:
            found, self._clients = self._clients, None
            self._given_up = True
        return found

    def give_up(self) -> None:
        """Nobody will take them: they are closed, also when they are only ready later."""
        clients = self.take()
        if clients is not None:
            clients.close()

    def _run(self) -> None:
        clients: SessionClients | None = None
        try:
            clients = self._open()
            clients.connect_ahead()
        except (ReplicatorError, KafkaException) as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001  the lane must hear of it, and goes on as it is
            self.failure = ReplicatorError(f"unexpected: {error!r}")
        with self._lock:
            wanted = self.failure is None and not self._given_up
            if wanted:
                self._clients = clients
        if clients is not None and not wanted:
            clients.close()
        self.over = True
