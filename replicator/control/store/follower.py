"""The control topic of one cluster, followed by one thread for all that a worker does in a pair.

Whoever can act on what was known a moment ago takes ``state``. Whoever writes because of what it
read, asks for ``read``: that is never older than the question.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from replicator.control.store.read import READ_SECONDS, read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import ReplicatorError, StoredFormatError, UnreachableError
from replicator.identifiers import control_topic
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.compacted_log import LogTail
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.wire.log_ends import LogEnds

LOAD_SECONDS = 30.0
TAIL_SECONDS = 1.0
FETCH_WAIT_SECONDS = 0.5
"""A broker answers at once when something is written. The marker behind a transaction is passed after
one such wait, and ``read`` waits for that."""

FIRST_READS = 2
"""So many reads ask by the admin client, which is open then: a start must not wait for an import."""

WHOLE_READS = 12
"""Every so many reads the whole topic is read: a topic that somebody deleted and made anew looks
like one that only grew."""


class ControlLog(Protocol):
    """Where a controller reads what holds now."""

    def read(self, admin: ClusterAdmin) -> ControlState:
        """All that was committed before the call; ``admin`` is of the same cluster.

        Raises:
            ClusterError: the cluster does not answer, or has no control topic.
            StoredFormatError: the topic holds a decision that must not be guessed at.
        """
        ...


class WholeControl:
    """A ``ControlLog`` for a single look: reads the topic from its start each time."""

    def __init__(self, topology: str, cluster: ClusterPlan, *, client_id: str) -> None:
        self._topology = topology
        self._cluster = cluster
        self._client_id = client_id

    def read(self, admin: ClusterAdmin) -> ControlState:  # noqa: ARG002 # a part of the protocol
        """See ``ControlLog``."""
        # Seeding tasks write there too: nothing committed may be missed for one that is open.
        return read_control(
            self._topology, self._cluster, client_id=self._client_id, past_open_transactions=True
        )


class ControlFollower(threading.Thread):
    """A ``ControlLog`` that reads on where it was. Every public method is thread-safe."""

    def __init__(
        self,
        topology: str,
        cluster: ClusterPlan,
        *,
        client_id: str,
        on_news: Callable[[], None],
        on_trouble: Callable[[ReplicatorError | None], None],
    ) -> None:
        """``on_trouble`` hears each failed look, and None once it goes on; both in the thread."""
        super().__init__(name=f"control-{cluster.alias}", daemon=True)
        self._whole = WholeControl(topology, cluster, client_id=client_id)
        self._topic = control_topic(topology)
        self._subject = f"cluster:{cluster.alias}"
        self._on_news = on_news
        self._on_trouble = on_trouble
        self._tail = LogTail(
            cluster, self._topic, client_id=client_id, fetch_wait_seconds=FETCH_WAIT_SECONDS
        )
        self._cluster = cluster
        self._client_id = client_id
        self._ends: LogEnds | None = None
        self._moved = threading.Condition()
        self._state = EMPTY
        self._position = 0
        self._reads = 0
        self._failure: StoredFormatError | None = None
        self._closing = threading.Event()

    @property
    def state(self) -> ControlState:
        """What held a moment ago; empty before ``begin``.

        Raises:
            StoredFormatError: the topic holds a decision that must not be guessed at.
        """
        if self._failure is not None:
            raise self._failure
        return self._state

    def begin(self) -> None:
        """Reads the topic to its end, then follows it.

        Raises:
            UnreachableError: the end was not reached in time.
            ReplicatorError: the topic cannot be read, see its class.
        """
        held = self._tail.load(timeout_seconds=LOAD_SECONDS)
        self._state = EMPTY.fold(list(held[0].items()))
        self._position = self._tail.position
        self.start()

    def read(self, admin: ClusterAdmin) -> ControlState:
        """See ``ControlLog``."""
        self._reads += 1
        if self._reads % WHOLE_READS == 0:
            whole, held = self._whole.read(admin), self.state
            return held if held.records() == whole.records() else whole
        end = self._end(admin)
        if end < self._position:  # not the topic that was followed
            return self._whole.read(admin)
        with self._moved:
            self._moved.wait_for(lambda: self._position >= end or self._ended, READ_SECONDS)
            if self._position < end and self._failure is None:
                raise UnreachableError(
                    f"cannot read {self._topic} to its end within {READ_SECONDS:g} seconds",
                    subject=self._subject,
                    remedy="Check that its partition has a leader; it is tried again by itself.",
                )
        return self.state

    def _end(self, admin: ClusterAdmin) -> int:
        """Past open transactions too: what was committed behind one must not be missed."""
        key = (self._topic, 0)
        if self._reads <= FIRST_READS:
            return self._asked(admin)
        if self._ends is None:
            from replicator.wire.log_ends import LogEnds  # slow to import

            self._ends = LogEnds(self._cluster, client_id=self._client_id)
        try:
            found = self._ends.read([key])
        except ReplicatorError:
            found = {}
        # The client looks for the leader, and tells what is wrong.
        return found[key] if key in found else self._asked(admin)

    def _asked(self, admin: ClusterAdmin) -> int:
        key = (self._topic, 0)
        end = admin.offsets([key], "latest", "read_uncommitted")[key]
        if isinstance(end, ReplicatorError):
            raise end
        return end

    def run(self) -> None:
        """Follows until closed, or until it reads what it must not guess at."""
        troubled = False
        while not self._ended:
            try:
                entries = self._tail.poll(TAIL_SECONDS)
            except ReplicatorError as error:
                troubled = True
                self._on_trouble(error)
                self._closing.wait(TAIL_SECONDS)
                continue
            if troubled:
                troubled = False
                self._on_trouble(None)
            self._take(entries)

    def close(self) -> None:
        """Ends the thread and gives the connections back."""
        self._closing.set()
        with self._moved:
            self._moved.notify_all()
        if self.is_alive():
            self.join()
        self._tail.close()
        if self._ends is not None:
            self._ends.close()

    @property
    def _ended(self) -> bool:
        return self._failure is not None or self._closing.is_set()

    def _take(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        with self._moved:
            try:
                self._state = self._state.fold(entries)
                self._position = self._tail.position
            except StoredFormatError as error:
                self._failure = error
            self._moved.notify_all()
        if entries:
            self._on_news()
