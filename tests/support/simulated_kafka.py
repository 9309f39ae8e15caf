"""A target and a source that misbehave on virtual time: a coordinator of both versions, and its network.

On top of the clients in memory (``fake_kafka.py``) come what only faults show: epochs of transactional
ids, ends that arrive late, answers that get lost, first writes that a new leader drops. What happens when
is decided by a ``Weather``, so one seed is one schedule.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from electing_cluster import ElectingCluster
from fake_kafka import Entry, FakeProducer, Transaction

from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException, Message
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.testing import ManualClock

Fate = Literal["done", "resent", "unanswered", "lost"]
"""Of a request that ends a transaction: done; answered on its repetition, with the first one still under
way; done without an answer; never arrived. The last two look the same to the client."""

LOST_LINE = "TxnCoordinator: west:9092: Disconnected (after 7ms in state UP)"
RESENT_SECONDS = 0.1


class Weather(Protocol):
    """What happens to clients."""

    def moment(self, what: str) -> None:
        """A client is about to do something, or has done it: others act now, or the client dies."""
        ...

    def fate(self) -> Fate:
        """Of the next request that ends a transaction."""
        ...

    def drops_first_write(self) -> bool:
        """Whether a leader loses a producer's first write and takes the one behind it."""
        ...

    def wait(self, seconds: float) -> None:
        """Time passes for a client."""
        ...

    def took_over(self, lane: int) -> None:
        """A lane has fenced all others."""
        ...

    def was_fenced(self, lane: int) -> None:
        """A lane was told that another has taken over."""
        ...


class Calm:
    """Nothing happens."""

    clock = ManualClock()

    def moment(self, what: str) -> None:
        pass

    def fate(self) -> Fate:
        return "done"

    def drops_first_write(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        pass

    def took_over(self, lane: int) -> None:
        pass

    def was_fenced(self, lane: int) -> None:
        pass


@dataclass(slots=True)
class Coordinator:
    """Of one transactional id; ``last`` is how its last transaction ended."""

    epoch: int = -1
    open: Transaction | None = None
    last: str = "committed"


@dataclass(frozen=True, slots=True)
class LateEnd:
    """A request that ends a transaction and is still under way."""

    transactional_id: str
    epoch: int
    state: str


@dataclass(slots=True)
class Network:
    """What was sent to the coordinators and has not arrived."""

    late: list[LateEnd] = field(default_factory=list)


class SimulatedCluster(ElectingCluster):
    """``version`` is that of the transaction protocol: in 2 each end raises the epoch."""

    def __init__(self, *, version: int = 1) -> None:
        super().__init__()
        self.version = version
        self.coordinators: dict[str, Coordinator] = {}
        self.network = Network()
        self.ended = 0

    def end(self, name: str, epoch: int, state: str) -> str:
        """A request to end arrives; returns what the coordinator answers: ok, fenced or invalid."""
        coordinator = self.coordinators[name]
        if epoch != coordinator.epoch:
            return "fenced"
        if coordinator.open is None:
            return "ok" if coordinator.last == state else "invalid"
        self.close(name, coordinator, state)
        if self.version == 2:
            coordinator.epoch += 1
        return "ok"

    def close(self, name: str, coordinator: Coordinator, state: str) -> None:
        transaction, coordinator.open = coordinator.open, None
        coordinator.last = state
        if transaction is not None:
            transaction.state = state
            self.ended += 1
            for topic, partition in sorted(transaction.partitions):
                self.mark(topic, partition, transaction, (name, coordinator.epoch))

    def in_sequence(self, topic: str, partition: int, writer: tuple[str, int, int]) -> bool:
        """Whether a leader takes a record: what it knows of a producer, it knows from its log.

        Of one that it does not know it takes any (KAFKA-15591).
        """
        name, epoch, sequence = writer
        known = [
            each.writer
            for each in self.logs[topic, partition]
            if each.writer is not None and each.writer[0] == name
        ]
        if not known:
            return True
        last = -1 if known[-1][1] != epoch else max(each[2] for each in known if each[1] == epoch)
        return sequence == last + 1

    def deliver_late(self) -> None:
        """What is under way arrives now, in its order."""
        late, self.network.late = self.network.late, []
        for each in late:
            self.end(each.transactional_id, each.epoch, each.state)


class SimulatedProducer(FakeProducer):
    """A lane's producer; what it asks the coordinator may get lost, and may come twice."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        weather: Weather,
        *,
        watch: CoordinatorWatch,
        lane: int = 0,
        **options,
    ) -> None:
        super().__init__(cluster, **options)
        self._weather = weather
        self._watch = watch
        self._lane = lane
        self._added: set[tuple[str, int]] = set()
        self._known: set[tuple[str, int]] = set()
        self._sequences: dict[tuple[str, int], int] = {}
        self._begun = False
        self._ending = ""
        self._fatal: KafkaError | None = None
        self._epoch = -1
        self._logged_at = -1e9
        self._metadata: dict[tuple[str, int], tuple[int, str]] = {}

    def purge(self, **which: bool) -> None:
        self._queue.clear()

    def poll(self, _timeout: float = 0) -> int:
        if self._fatal is not None and self._fatal.code() == KafkaError._FENCED:
            raise KafkaException(self._fatal)
        return super().poll()

    def flush(self, _timeout: float = 0) -> int:
        self._weather.moment("flush")
        return super().flush()

    def list_topics(self, *_names, timeout: float = 0):
        del timeout

    def init_transactions(self, _timeout: float = 0) -> None:
        self._weather.moment("init")
        coordinator = self._cluster.coordinators.setdefault(self._id, Coordinator())
        self._cluster.close(self._id, coordinator, "aborted")
        coordinator.epoch += 1
        self._epoch = coordinator.epoch
        self._weather.took_over(self._lane)
        self._weather.moment("fenced")

    def begin_transaction(self) -> None:
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        if self._begun:
            raise _refused(codes.ERRONEOUS_STATE, abort=self._failure is not None)
        self._begun, self._added = True, set()
        self._transaction = Transaction()  # only says that one is open; the coordinator has its own

    def commit_transaction(self, _timeout: float = 0) -> None:
        self._weather.moment("commit")
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        if not self._ending:
            self._write()
        if self._failure is not None:
            raise _refused(self._failure.code(), abort=True)
        self._end_with("committed")
        self._weather.moment("committed")

    def abort_transaction(self, _timeout: float = 0) -> None:
        self._weather.moment("abort")
        if self._fatal is not None:
            raise KafkaException(self._fatal)
        for _, _, _, callback in self._drain():
            self._report(callback, KafkaError(codes.PURGE_QUEUE), None)
        self._failure = None
        self._end_with("aborted")

    def _end_with(self, state: str) -> None:
        if self._added:
            self._send_end(state)
        self._begun, self._ending, self._transaction = False, "", None

    def _send_end(self, state: str) -> None:
        fate = self._weather.fate()
        if fate in ("unanswered", "lost"):
            self._ending = state
            if fate == "unanswered":
                self._check(self._cluster.end(self._id, self._epoch, state))
            self._weather.wait(2.0)
            raise KafkaException(KafkaError(codes.TIMED_OUT, "no answer", False, True))
        if fate == "resent":
            late = LateEnd(self._id, self._epoch, state)
            self._cluster.network.late.append(late)
            self._log_loss()
            self._weather.wait(RESENT_SECONDS)
        self._check(self._cluster.end(self._id, self._epoch, state))
        if self._cluster.version == 2:
            self._epoch += 1
            self._sequences.clear()

    def _log_loss(self) -> None:
        # The library leaves out a text that it has logged less than 30 s ago.
        now = self._weather.clock.monotonic()
        if now - self._logged_at >= 30:
            self._logged_at = now
            self._watch.log(20, "%s [%s] %s", "FAIL", "lane", LOST_LINE)

    def _check(self, answer: str) -> None:
        if answer != "ok":
            code = KafkaError._FENCED if answer == "fenced" else KafkaError.INVALID_TXN_STATE
            self._fatal = KafkaError(code, answer, True)
            if answer == "fenced":
                self._weather.was_fenced(self._lane)
            raise KafkaException(self._fatal)

    def _write(self) -> int:
        if self._id is None:
            return super()._write()
        coordinator = self._cluster.coordinators.setdefault(self._id, Coordinator())
        written = 0
        for topic, partition, record, callback in self._drain():
            written += 1
            place = (topic, partition)
            if self._fatal is not None or self._failure is not None:
                self._report(callback, KafkaError(codes.PURGE_QUEUE), None)
                continue
            if self._epoch != coordinator.epoch:
                self._fatal = KafkaError(KafkaError._FENCED, "fenced", True)
                self._report(callback, self._fatal, None)
                continue
            if place not in self._added:
                self._added.add(place)
                if coordinator.open is None:
                    coordinator.open = Transaction()
                coordinator.open.partitions.add(place)
            if coordinator.open is None or place not in coordinator.open.partitions:
                self._failure = KafkaError(KafkaError.INVALID_TXN_STATE, "not in a transaction")
                self._report(callback, self._failure, None)
                continue
            if len(record["value"] or b"") > self._cluster.limits[topic]:
                self._failure = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
                self._report(callback, self._failure, None)
                continue
            first = place not in self._known
            self._known.add(place)
            if first and self._weather.drops_first_write():
                self._report(callback, None, Message(topic=topic, partition=partition))
                continue
            self._append(place, record, coordinator.open, callback)
        return written

    def _append(self, place: tuple[str, int], record, transaction: Transaction, callback) -> None:
        self._learn_leader(place)
        writer = (self._id, self._epoch, self._sequences.get(place, 0))
        if not self._cluster.in_sequence(*place, writer):
            self._failure = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "sequence")
            self._report(callback, self._failure, None)
            return
        self._sequences[place] = writer[2] + 1
        offset = self._cluster.append(*place, Entry(record, transaction, writer=writer))
        self._report(callback, None, Message(topic=place[0], partition=place[1], offset=offset))

    def _learn_leader(self, place: tuple[str, int]) -> None:
        """The library asks who leads before it writes under another leader."""
        topic, partition = place
        now = (self._cluster.epoch_of(*place), self._cluster.topic_ids.get(topic, ""))
        if self._metadata.get(place) != now:
            self._metadata[place] = now
            lines = (
                f"Topic {topic} changed id from AA to {now[1]}",
                f"Topic {topic} [{partition}] Leader 1 Epoch {now[0]}",
            )
            for line in lines:
                self._watch.log(10, "%s [%s] %s", "METADATA", "lane", line)


def _refused(code: int, *, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "refused", False, False, abort))
