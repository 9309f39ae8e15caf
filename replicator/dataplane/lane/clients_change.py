"""How a lane comes from one session's clients to the next ones, with as little silence as it takes.

With a changed login the next clients are opened and connected beside the lane while it copies on, and
the last ones are closed beside it once the next session reads.
"""

import contextlib
import gc
import threading
from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.lane.turn import Turn
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.bounded_copy import BoundedCopy
from replicator.dataplane.session.clients_ahead import ClientsAhead
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.dataplane.session.session_factory import open_clients
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.kafka.clients.client import KafkaException

AHEAD_AGAIN_SECONDS = 2.0
"""When clients are opened ahead again after that failed."""


class ClientsChange:
    """The next clients of one lane, and those it has just left; used by the lane's thread alone."""

    def __init__(
        self,
        open_clients: Callable[[LaneSpec], SessionClients],
        *,
        name: str,
        turn: Turn,
        clock: Clock,
        on_failure: Callable[[ReplicatorError | KafkaException], None],
    ) -> None:
        """Lanes that share ``turn`` open clients ahead one after the other; ``name`` is the lane's thread."""
        self._open = open_clients
        self._name = name
        self._turn = turn
        self._clock = clock
        self._on_failure = on_failure
        self._ahead: ClientsAhead | None = None
        self._ahead_at = 0.0
        self._retired: SessionClients | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether the next clients are being opened, or are there."""
        return self._ahead is not None

    def ready(self, spec: LaneSpec) -> bool:
        """Whether the next clients are connected; opens them when it is this lane's turn.

        The lane copies on with those it has until they are, and where they cannot be had.
        """
        now = self._clock.monotonic()
        ahead = self._ahead
        if ahead is None:
            if now >= self._ahead_at and self._turn.take(self):
                self._ahead = ClientsAhead(lambda: self._open(spec), name=self._name)
            return False
        if not ahead.over:
            return False
        if ahead.failure is None:
            return True
        self._ahead, self._ahead_at = None, now + AHEAD_AGAIN_SECONDS
        self._turn.give_back(self)
        self._on_failure(ahead.failure)
        return False

    def take_turn(self) -> bool:
        """Whether this lane may close its clients and open others now, without any ahead."""
        return self._turn.take(self)

    def next_clients(self, spec: LaneSpec, *, only_new: bool) -> SessionClients:
        """Those that were opened ahead, where they still suit the work; ``only_new`` never takes them."""
        ahead, self._ahead = self._ahead, None
        found = None if ahead is None else ahead.take()
        if found is None:
            return self._open(spec)
        if found.serves(spec) and not only_new and not found.opened_with.outdated():
            return found
        found.close()
        return self._open(spec)

    def left(
        self, clients: SessionClients, states: Iterable[PartitionState], *, ends: bool
    ) -> SessionClients | None:
        """A session has committed and is over; returns the clients that the lane has to close now.

        None where the next ones are ahead: then these read nothing more, and are kept until the next session
        reads. ``ends``: no session follows.
        """
        if ends:
            clients.show_end()
        if not self.is_ahead:
            return clients
        with contextlib.suppress(KafkaException, ReplicatorError):
            clients.stop_reading([state for state in states if state.is_read])
        self._retired = clients
        return None

    def session_reads(self) -> None:
        """The next session is at work: another lane's turn, and the last clients are closed."""
        self._turn.give_back(self)
        self._close_retired()

    def give_up(self) -> None:
        """Leaves the clients that were opened ahead, and closes the last ones beside the lane."""
        if self._ahead is not None:
            self._ahead.give_up()
            self._ahead = None
        self._close_retired()

    def end(self) -> None:
        """The lane ends: nothing of it may hold up others."""
        self._turn.give_back(self)
        self.give_up()

    def _close_retired(self) -> None:
        retired, self._retired = self._retired, None
        if retired is not None:
            threading.Thread(
                target=close_clients, args=(retired,), name=f"{self._name}-closing", daemon=True
            ).start()


def clients_for(
    spec: LaneSpec, context: LaneContext, bounded: BoundedCopy | None, *, record_by_record: bool
) -> SessionClients:
    """Those of whole batches where the flow has them, unless records have to be looked at one by one."""
    whole = bounded is None or bounded.takes_batches
    if spec.settings.engine == "batches" and whole and not record_by_record:
        # Here, because the protocol's codec takes half a second to import.
        from replicator.dataplane.whole_batches.batch_clients import BatchClients

        return BatchClients(spec, context, bounded)
    return open_clients(spec, context, record_by_record=record_by_record, bounded_copy=bounded)


def close_clients(clients: SessionClients) -> None:
    """Closes them, and ends their threads."""
    clients.close()
    del clients
    # Callbacks tie the clients into cycles: without this their threads would live on.
    gc.collect()
