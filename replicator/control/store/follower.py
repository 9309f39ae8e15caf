"""The thread that follows the control topic of one cluster; used through ``followers``."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from replicator.clock import SystemClock
from replicator.control.store.read import READ_SECONDS, read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import NotFoundError, ReplicatorError, StoredFormatError, UnreachableError
from replicator.identifiers import control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_log import Entry, LogTail
from replicator.observability.health import Liveness
from replicator.topology.plan import ClusterPlan

log = structlog.get_logger("control")

LOAD_SECONDS = 30.0
SILENT_SECONDS = 120.0
"""A follower that did not go round for so long hangs: a load and a wait for its connections are less."""

TAIL_SECONDS = 1.0
AGAIN_SECONDS, UNREADABLE_SECONDS = 1.0, 10.0
"""When a topic that could not be read is read again: from its start where a record was refused."""

FETCH_WAIT_SECONDS, PATIENT_WAIT_SECONDS = 0.5, 2.0
"""A broker answers at once when something is written. The marker behind a transaction is passed after
one such wait, and ``read`` waits for that; where nobody reads, the wait is longer and costs less."""


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
        # Spark tasks write there too: nothing committed may be missed for one that is open.
        return read_control(
            self._topology, self._cluster, client_id=self._client_id, past_open_transactions=True
        )


class FollowerUser(Protocol):
    """Hears from a follower in its thread, and must not block it."""

    @property
    def reads(self) -> bool:
        """Whether it asks for what is not older than the question."""
        ...

    @property
    def on_news(self) -> Callable[[], None]:
        """Called when something was read."""
        ...

    @property
    def on_trouble(self) -> Callable[[ReplicatorError | None], None]:
        """Called with the error of each attempt that failed, and with None once it goes on."""
        ...


class ControlFollower(threading.Thread):
    """Reads one topic to its end and goes on; an attempt that fails is made again until it is stopped."""

    def __init__(
        self,
        topology: str,
        cluster: ClusterPlan,
        *,
        client_id: str,
        liveness: Liveness | None = None,
    ) -> None:
        super().__init__(name=f"control-{cluster.alias}", daemon=True)
        self._liveness = liveness or Liveness(clock=SystemClock())
        self.cluster = cluster
        self.client_id = client_id
        self.topic = control_topic(topology)
        self.users: tuple[FollowerUser, ...] = ()
        self.state = EMPTY
        self.failure: ReplicatorError | None = None
        self.looked = threading.Event()
        self._topology = topology
        self._subject = f"cluster:{cluster.alias}"
        self._moved = threading.Condition()
        self._position = 0
        self._loaded = False
        self._attempts = 0
        self._again = threading.Event()
        self._reload = False
        self._stopping = threading.Event()
        self._logged = ""

    @property
    def ready(self) -> bool:
        """Whether the topic is followed now, without trouble."""
        return self._loaded and self.failure is None

    def begin(self) -> None:
        """See ``ControlSubscription.begin``."""
        with self._moved:
            # The attempt under way may have begun before the topic was there.
            enough = self._attempts + 2
            self._again.set()
            self._moved.wait_for(
                lambda: self.ready or self._attempts >= enough or self._stopping.is_set(),
                LOAD_SECONDS,
            )
            if not self.ready:
                raise self.failure or self._late(LOAD_SECONDS)

    def wait_for(self, end: int) -> bool:
        """Returns once everything before an offset is known; False when it is of another topic.

        Raises:
            UnreachableError: the offset was not reached in time.
        """
        with self._moved:
            if end < self._position:
                return False
            self._moved.wait_for(
                lambda: (
                    self._position >= end
                    or isinstance(self.failure, StoredFormatError)
                    or self._stopping.is_set()
                ),
                READ_SECONDS,
            )
            if self._position < end and not isinstance(self.failure, StoredFormatError):
                raise self._late(READ_SECONDS)
            return True

    def read_whole(self) -> ControlState:
        """The topic read from its start; the state that is followed where it says the same.

        Where it says something else, it is not the topic that was followed: that begins anew.
        """
        position, held = self._position, self.state
        whole = read_control(
            self._topology, self.cluster, client_id=self.client_id, past_open_transactions=True
        )
        if held.records() == whole.records():
            return held
        if position == self._position:
            self._reload = True
        return whole

    def stop(self) -> None:
        """Ends the thread soon; it gives its connections back itself."""
        self._stopping.set()
        self._again.set()
        with self._moved:
            self._moved.notify_all()

    def run(self) -> None:
        """Follows until stopped."""
        self._liveness.start(self.name, limit_seconds=SILENT_SECONDS)
        try:
            self._follow()
        finally:
            self._liveness.stop(self.name)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            self._liveness.beat(self.name)
            self._again.clear()
            try:
                with LogTail(
                    self.cluster, self.topic, client_id=self.client_id,
                    fetch_wait_seconds=self._wait_seconds(),
                ) as tail:  # fmt: skip
                    self._load(tail)
                    while not (self._reload or self._stopping.is_set()):
                        self._liveness.beat(self.name)
                        self._go_on(tail)
                self._reload = False
            except ReplicatorError as error:
                self._failed(error)
                unreadable = isinstance(error, StoredFormatError)
                self._again.wait(UNREADABLE_SECONDS if unreadable else AGAIN_SECONDS)
            except Exception as error:  # workers without the controller have nobody else to tell
                unforeseen = ReplicatorError(f"unexpected: {error!r}", subject=self._subject)
                if self._logged != unforeseen.code:
                    log.exception(
                        "the control topic cannot be followed", cluster=self.cluster.alias
                    )
                self._failed(unforeseen)
                self._again.wait(AGAIN_SECONDS)

    def _load(self, tail: LogTail) -> None:
        entries = list(tail.load(timeout_seconds=LOAD_SECONDS)[0].items())
        self._take(EMPTY, entries, tail.position)

    def _go_on(self, tail: LogTail) -> None:
        tail.fetch_wait_seconds = self._wait_seconds()
        try:
            entries = tail.poll(TAIL_SECONDS)
        except ReplicatorError as error:
            self._failed(error)
            self._stopping.wait(TAIL_SECONDS)
            return
        before = self.state
        self._take(before, entries, tail.position)
        if not before.same_orders(self.state) and self._wait_seconds() == PATIENT_WAIT_SECONDS:
            tail.awaken()  # a link changes its direction: a controller may soon ask

    def _take(self, before: ControlState, entries: Sequence[Entry], position: int) -> None:
        try:
            state = before.fold(entries)
        except StoredFormatError as error:
            self.failure = error  # first: nobody may act on the rest as if it were all
            self.state = _without_unreadable(before, entries)
            self._tell_news()
            raise
        if before is EMPTY and state.records() == self.state.records():
            state = self.state  # read anew, and it says the same
        recovered = self.failure is not None
        with self._moved:
            self.state, self._position = state, position
            self._loaded, self.failure = True, None
            self._attempts += 1
            self._moved.notify_all()
        self.looked.set()
        self._logged = ""
        if recovered:
            for user in self.users:
                user.on_trouble(None)
        if entries:
            self._tell_news()

    def _failed(self, error: ReplicatorError) -> None:
        with self._moved:
            self.failure = error
            self._attempts += 1
            self._moved.notify_all()
        self.looked.set()
        if error.code != self._logged and not isinstance(error, NotFoundError):
            log.info("control topic is not followed for now", cluster=self.cluster.alias,
                     error=error.message)  # fmt: skip
        self._logged = error.code
        for user in self.users:
            user.on_trouble(error)

    def _tell_news(self) -> None:
        for user in self.users:
            user.on_news()

    def _wait_seconds(self) -> float:
        reads = any(user.reads for user in self.users)
        return FETCH_WAIT_SECONDS if reads else PATIENT_WAIT_SECONDS

    def _late(self, seconds: float) -> UnreachableError:
        return UnreachableError(
            f"cannot read {self.topic} to its end within {seconds:g} seconds",
            subject=self._subject,
            remedy="Check that its partition has a leader; it is retried automatically.",
        )


def _without_unreadable(state: ControlState, entries: Sequence[Entry]) -> ControlState:
    """The state with those entries that this release can read."""
    for entry in entries:
        with contextlib.suppress(StoredFormatError):
            state = state.fold([entry])
    return state
