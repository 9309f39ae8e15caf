"""Asks where logs of the source end, by the newest leader that several brokers name, while the lane copies on."""

import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from replicator.errors import NotFoundError, ReplicatorError, TransientBrokerError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.wire.connection.newest_leaders import NewestLeaders

_ANSWER_SECONDS = 10.0
_READ_COMMITTED = 1


class NewestEnds:
    """For the lane's thread; one question at a time, each in a short-lived thread, over connections that are kept."""

    def __init__(self, source: ClusterPlan, *, client_id: str) -> None:
        """Nothing is asked yet."""
        self._source = source
        self._client_id = client_id
        self._leaders: NewestLeaders | None = None
        self._lock = threading.Lock()
        self._asking = self._closed = False
        self._found: dict[TopicPartition, int] = {}
        self._failure: ReplicatorError | None = None

    def ask(self, places: Collection[TopicPartition]) -> None:
        """Begins to ask; only where ``over``."""
        self._asking = True
        threading.Thread(
            target=self._run, args=(list(places),), name="source-ends", daemon=True
        ).start()

    @property
    def over(self) -> bool:
        """Whether nothing is on its way."""
        return not self._asking

    def take(self) -> dict[TopicPartition, int]:
        """What the last question found: up to where committed records can be read; what is not known is absent.

        Raises:
            ReplicatorError: why it found nothing.
        """
        failure, self._failure = self._failure, None
        found, self._found = self._found, {}
        if failure is not None:
            raise failure
        return found

    def close(self) -> None:
        """Hangs up, as soon as nothing is on its way."""
        with self._lock:
            self._closed = True
            if self._asking:
                return
        self._hang_up()

    def _run(self, places: list[TopicPartition]) -> None:
        try:
            self._found = self._ask(places)
        except ReplicatorError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001  no lane may end for what only looks after it
            self._failure = ReplicatorError(f"unexpected: {error!r}")
        with self._lock:
            self._asking = False
            if not self._closed:
                return
        self._hang_up()

    def _ask(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        # Here, because the protocol's codec takes half a second to import.
        from replicator.wire.connection.leader import until_answered
        from replicator.wire.connection.newest_leaders import NewestLeaders

        leaders = self._leaders = self._leaders or NewestLeaders(
            self._source, client_id=self._client_id
        )
        deadline = time.monotonic() + _ANSWER_SECONDS

        def ends() -> dict[TopicPartition, int]:
            leaders.look(places, deadline=deadline)
            agreed = [place for place in places if _is_one_topic(leaders, place)]
            return leaders.ends(agreed, deadline=deadline, isolation_level=_READ_COMMITTED)

        # Connections that were kept may have been closed since: brokers do that after some minutes.
        return until_answered(ends, deadline=deadline)

    def _hang_up(self) -> None:
        if self._leaders is not None:
            self._leaders.close()


def _is_one_topic(leaders: "NewestLeaders", place: TopicPartition) -> bool:
    """Whether brokers agree which topic it is: of two with that name nobody knows the newer."""
    try:
        leaders.leader(place)
    except (NotFoundError, TransientBrokerError):
        return False
    return True
