"""Who owns which lane: a consumer group on the target, subscribed to the checkpoints topic.

Owning partition *n* of that topic is owning lane *n*. Membership, failure detection and rebalancing
are Kafka's own group protocol (classic, cooperative); nothing is read through this consumer. An
assignment is permission to take a lane over; what makes a take-over safe is the fencing of the
lane's transactional id, so a late or repeated assignment can never copy anything twice.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import cast

from replicator.errors import ReplicatorError, UnreachableError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    ClientPartition,
    Consumer,
    KafkaError,
    KafkaException,
    open_consumer,
)
from replicator.kafka.clients.errors import map_kafka_error
from replicator.kafka.clients.lost_brokers import LostBrokers
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import client_config, consumer_config
from replicator.topology.plan import ClusterPlan

SESSION_SECONDS = 6.0
"""The shortest session brokers allow by default: a dead worker is noticed after this long."""

HEARTBEAT_SECONDS = 1.0
POLL_SECONDS = 0.2
VERIFY_SECONDS = 5.0
HANGS_SECONDS = 60.0
"""A member whose loop did not go round for so long hangs: to give lanes up takes a few seconds."""
FAILED_SECONDS = 10.0
"""For how long a connection that failed is a reason to log in anew."""
_ANSWER_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 2.0

_OFFSET_END = -1
_NO_MEMBER = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)
"""Answers that this member's generation is over, or ends now."""

_LOST_FOR_GOOD = frozenset({codes.FATAL, KafkaError.FENCED_INSTANCE_ID})

Lanes = frozenset[int]
_Answer = queue.SimpleQueue[frozenset[int] | ReplicatorError]


class Membership(threading.Thread):
    """One worker's place in the group of one pair; owns its consumer alone.

    ``on_assigned`` and ``on_revoked`` get what was added or taken. ``on_revoked`` is called before
    the lanes are given up and should return when they are drained (it has a rebalance waiting);
    with ``lost`` true they are another's already. The thread ends by itself where its place is lost for
    good, as that of a named worker is whose name another has taken; the owner then joins anew.

    A member that opens another client may lose its place for a moment, so it keeps the one that works:
    only after a connection failed does it open one with the login of now. Its lanes run on meanwhile;
    an owner that takes one over fences it.
    """

    def __init__(
        self,
        *,
        cluster: ClusterPlan,
        group: str,
        topic: str,
        client_id: str,
        instance_id: str | None,
        on_assigned: Callable[[Lanes], None],
        on_revoked: Callable[[Lanes, bool], None],
        on_problem: Callable[[KafkaError | None], None],
    ) -> None:
        super().__init__(name=f"membership-{group}", daemon=True)
        self._topic = topic
        self._group = group
        self._answer: _Answer | None = None
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_problem = on_problem
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._cluster = cluster
        self._failed_at = float("-inf")
        self._doubted: KafkaError | None = None
        self._refused = False
        self._ask_at = 0.0
        self._leaving = False
        self._kept: Lanes = frozenset()
        self._opened_with = OpenedWith(cluster)
        self._lost_brokers = LostBrokers(topic)
        config = {
            **consumer_config(cluster, client_id=client_id, group_id=group),
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(SESSION_SECONDS * 1000),
            "heartbeat.interval.ms": int(HEARTBEAT_SECONDS * 1000),
            "max.poll.interval.ms": 300_000,
            "topic.metadata.refresh.interval.ms": 5_000,  # a grown topic is new lanes to share
            "error_cb": self._doubt,
        }
        if instance_id is not None:
            config["group.instance.id"] = instance_id
        self._lost_for_good = False
        self._config = config
        self._consumer: Consumer = open_consumer(config)
        self.active_at = time.monotonic()
        """When its loop last went round."""

    def run(self) -> None:
        """Serves the group until stopped, then leaves it."""
        self._subscribe()
        while not self._stopping.is_set():
            self.active_at = time.monotonic()
            error = self._polled()
            if error is not None:
                self._note(error)
                self._refused = True
                self._on_problem(error)
                self._stopping.wait(POLL_SECONDS)
            if self._lost_for_good:
                break
            self._serve()
            self._decide_doubt()
            failed = time.monotonic() - self._failed_at < FAILED_SECONDS
            outdated = failed and self._opened_with.outdated()
            if outdated or self._lost_brokers.found(self._consumer):
                self._join_anew()
        self._consumer.close()
        self._serve()

    def _note(self, error: KafkaError) -> None:
        self._failed_at = time.monotonic()
        self._lost_for_good = self._lost_for_good or error.fatal() or error.code() in _LOST_FOR_GOOD

    def _doubt(self, error: KafkaError) -> None:
        """What the client says of its connections, inside ``poll``."""
        self._note(error)
        self._doubted = error
        if self._lost_for_good:
            self._on_problem(error)

    def _decide_doubt(self) -> None:
        """A connection that failed is a problem while the group's coordinator does not answer.

        One broker that is away may be any other; and after a cluster was away for less than a session nothing is
        assigned anew, which would end the problem.
        """
        error, now = self._doubted, time.monotonic()
        if error is None or now < self._ask_at:
            return
        try:
            (answer,) = self._consumer.committed(
                [ClientPartition(self._topic, 0)], timeout=_ANSWER_SECONDS
            )
        except KafkaException:
            answered = False
        else:
            answered = answer.error is None
        if not answered:
            self._on_problem(error)
            self._ask_at = time.monotonic() + _ASK_AGAIN_SECONDS
            return
        self._doubted = None
        if not self._refused:  # which an assignment ends
            self._on_problem(None)

    def _polled(self) -> KafkaError | None:
        try:
            message = self._consumer.poll(POLL_SECONDS)
        except KafkaException as error:
            return cast("KafkaError", error.args[0])
        return None if message is None else message.error()

    def require_alive(self) -> None:
        """Asked by the owner now and then.

        Raises:
            ReplicatorError: this member serves its group no more, or hangs: another has to join.
        """
        if not self.is_alive():
            raise ReplicatorError(
                "this worker lost its place in the worker group",
                subject="flow",
                remedy="It joins again by itself. If that repeats, two workers have the same "
                "--worker-id: give each its own.",
            )
        silent_seconds = time.monotonic() - self.active_at
        if silent_seconds > HANGS_SECONDS:
            raise ReplicatorError(
                f"the worker group was not served for {silent_seconds:.0f} s",
                subject="flow",
                remedy="This worker joins again by itself.",
            )

    def stop(self, timeout_seconds: float) -> None:
        """Leaves the group, so that others take the lanes over at once."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout_seconds)

    def confirmed(self, lanes: Lanes) -> Lanes:
        """Those of ``lanes`` of which the coordinator says now that they are this member's; by one thread.

        A member that slept through its session is no member any more, and has none. Called before lanes are
        started again after they were fenced.

        Raises:
            ReplicatorError: the coordinator does not say it: it is silent, or refuses our user.
        """
        late = self._answer
        answer: _Answer = late or queue.SimpleQueue()
        if late is None:
            self._commands.put(lambda: answer.put(self._ask(lanes)))
        try:
            found = answer.get(timeout=VERIFY_SECONDS)
        except queue.Empty:
            self._answer = answer  # the question stands, and no other is put beside it
            raise UnreachableError(
                f"its coordinator did not answer within {VERIFY_SECONDS:g} seconds",
                subject=f"cluster:{self._cluster.alias}",
                remedy="Check that all brokers of the target run, and that the partitions of __consumer_offsets "
                "have leaders. It is asked again by itself.",
            ) from None
        self._answer = None
        if late is not None:
            return self.confirmed(lanes)  # what was answered late may hold no more
        if isinstance(found, ReplicatorError):
            raise found
        return found

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            [self._topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def _join_anew(self) -> None:
        """Goes on with another client; lanes run on until the group says whose they are."""
        self._kept = frozenset(item.partition for item in self._consumer.assignment())
        self._leaving = True
        self._consumer.close()
        self._leaving = False
        self._opened_with = OpenedWith(self._cluster)
        login = client_config(self._cluster, client_id=self._config["client.id"])
        self._config = {**self._config, **login}
        self._consumer = open_consumer(self._config)
        self._failed_at = float("-inf")
        self._lost_brokers.heard()
        self._subscribe()

    def _ask(self, lanes: Lanes) -> Lanes | ReplicatorError:
        assigned = lanes & {item.partition for item in self._consumer.assignment()}
        if not assigned:
            return assigned
        offsets = [ClientPartition(self._topic, lane, 0) for lane in sorted(assigned)]
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False) or []
        except KafkaException as error:
            refused: KafkaError | None = cast("KafkaError", error.args[0])
        else:
            refused = next((one.error for one in answers if one.error is not None), None)
        if refused is None:
            return assigned
        if refused.code() in _NO_MEMBER:
            return frozenset()
        return map_kafka_error(
            refused,
            subject=f"cluster:{self._cluster.alias}",
            doing=f"ask the worker group {self._group} whose lanes these are",
        )

    def _serve(self) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return
            command()

    def _assigned(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        # Nothing is ever read here: positions at the end, and paused.
        parked = [ClientPartition(item.topic, item.partition, _OFFSET_END) for item in partitions]
        consumer.incremental_assign(parked)
        if parked:
            consumer.pause(parked)
        self._refused, self._doubted = False, None
        self._on_problem(None)
        lanes = frozenset(item.partition for item in partitions)
        gone, self._kept = self._kept - lanes, frozenset()
        if gone:
            self._on_revoked(gone, True)
        self._on_assigned(lanes)

    def _revoked(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        self._give_up(partitions, lost=False)
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        self._give_up(partitions, lost=True)
        consumer.incremental_unassign(partitions)

    def _give_up(self, partitions: list[ClientPartition], *, lost: bool) -> None:
        if not self._leaving:
            self._on_revoked(frozenset(item.partition for item in partitions), lost)
