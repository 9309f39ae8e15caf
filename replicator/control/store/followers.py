"""Who uses the control topic of a cluster: one follower for everything in a process that asks about it.

Who can act on what was known a moment ago takes ``state``. Who writes because of what it read asks for
``read``: that is never older than the question.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from replicator.control.store.follower import ControlFollower
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError, StoredFormatError
from replicator.identifiers import worker_client_id
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.observability.health import Liveness
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.wire.requests.log_ends import LogEnds

FIRST_READS = 2
"""So many reads ask by the admin client, which is open then: a start must not wait for an import."""

WHOLE_READS = 12
"""Every so many reads the whole topic is read: a topic that somebody deleted and made anew looks
like one that only grew."""

CLOSE_SECONDS = 2.0


class ControlFollowers:
    """One follower per cluster: opened for its first user, closed with its last. Thread-safe."""

    def __init__(self, worker_id: str, *, liveness: Liveness | None = None) -> None:
        """``liveness`` judges whether the followers go round."""
        self._worker_id = worker_id
        self._liveness = liveness
        self._lock = threading.Lock()
        self._followers: dict[tuple[str, ClusterPlan], ControlFollower] = {}
        self._ending: list[ControlFollower] = []

    def subscribe(
        self,
        topology: str,
        cluster: ClusterPlan,
        *,
        on_news: Callable[[], None],
        on_trouble: Callable[[ReplicatorError | None], None] = lambda _: None,
        reads: bool = True,
    ) -> "ControlSubscription":
        """A user's part in the follower of a cluster; the caller closes it.

        Args:
            topology: name of the topology that the control topic belongs to.
            cluster: whose control topic.
            on_news: called in the follower's thread when something was read; must not block.
            on_trouble: called in the follower's thread with the error of each attempt that failed,
                and with None once it goes on; must not block.
            reads: whether ``read`` will be asked.
        """
        key = (topology, cluster)
        with self._lock:
            follower = self._followers.get(key)
            if follower is None:
                client_id = worker_client_id(topology, self._worker_id)
                follower = self._followers[key] = ControlFollower(
                    topology, cluster, client_id=client_id, liveness=self._liveness
                )
            subscription = ControlSubscription(
                follower, lambda: self._leave(key, subscription), on_news, on_trouble, reads=reads
            )
            follower.users = (*follower.users, subscription)
            if not follower.ident:
                follower.start()
        return subscription

    def states(self, topology: str) -> dict[str, ControlState]:
        """What is known of each cluster that is followed without trouble, by alias."""
        with self._lock:
            followers = list(self._followers.items())
        return {
            str(cluster.alias): follower.state
            for (name, cluster), follower in followers
            if name == topology and follower.ready
        }

    def close(self) -> None:
        """Ends all threads and gives the connections back."""
        with self._lock:
            followers, self._followers = list(self._followers.values()), {}
        for follower in followers:
            follower.stop()
        deadline = time.monotonic() + CLOSE_SECONDS
        for follower in (*followers, *self._ending):
            follower.join(max(0.0, deadline - time.monotonic()))

    def _leave(self, key: tuple[str, ClusterPlan], user: "ControlSubscription") -> None:
        with self._lock:
            follower = self._followers.get(key)
            if follower is None:
                return
            follower.users = tuple(one for one in follower.users if one is not user)
            if not follower.users:
                del self._followers[key]
                follower.stop()
                self._ending = [one for one in (*self._ending, follower) if one.is_alive()]


class ControlSubscription:
    """A ``ControlLog`` that reads on where its follower is. Thread-safe but for ``read``: one at a time."""

    def __init__(
        self,
        follower: ControlFollower,
        leave: Callable[[], None],
        on_news: Callable[[], None],
        on_trouble: Callable[[ReplicatorError | None], None],
        *,
        reads: bool,
    ) -> None:
        """Made by ``ControlFollowers``."""
        self.on_news = on_news
        self.on_trouble = on_trouble
        self.reads = reads
        self._follower = follower
        self._leave = leave
        self._ends: LogEnds | None = None
        self._reads = 0

    @property
    def state(self) -> ControlState:
        """What held a moment ago; empty before ``begin``.

        Raises:
            StoredFormatError: the topic holds a decision that must not be guessed at.
        """
        failure = self._follower.failure
        if isinstance(failure, StoredFormatError):
            raise failure
        return self._follower.state

    @property
    def readable(self) -> ControlState:
        """What held a moment ago, without records that this release cannot read."""
        return self._follower.state

    def wait_until_looked(self, seconds: float) -> None:
        """Returns when the topic was read to its end, or could not be, or after the time."""
        self._follower.looked.wait(seconds)

    def begin(self) -> None:
        """Returns once the topic was read to its end.

        Raises:
            UnreachableError: the end was not reached in time.
            ReplicatorError: the topic cannot be read, see its class.
        """
        self._follower.begin()

    def read(self, admin: ClusterAdmin) -> ControlState:
        """See ``ControlLog``."""
        self._reads += 1
        if self._reads % WHOLE_READS == 0:
            return self._follower.read_whole()
        end = self._end(admin)
        if not self._follower.wait_for(end):
            return self._follower.read_whole()
        return self.state

    def close(self) -> None:
        """Gives the part up; closing twice is closing once."""
        self._leave()
        if self._ends is not None:
            self._ends.close()

    def _end(self, admin: ClusterAdmin) -> int:
        """Past open transactions too: what was committed behind one must not be missed."""
        follower = self._follower
        key = (follower.topic, 0)
        if self._reads <= FIRST_READS:
            return self._asked(admin)
        if self._ends is None:
            from replicator.wire.requests.log_ends import LogEnds  # slow to import

            self._ends = LogEnds(follower.cluster, client_id=follower.client_id)
        try:
            found = self._ends.read([key])
        except ReplicatorError:
            found = {}
        # The client looks for the leader, and tells what is wrong.
        return found[key] if key in found else self._asked(admin)

    def _asked(self, admin: ClusterAdmin) -> int:
        key = (self._follower.topic, 0)
        end = admin.offsets([key], "latest", "read_uncommitted")[key]
        if isinstance(end, ReplicatorError):
            raise end
        return end
