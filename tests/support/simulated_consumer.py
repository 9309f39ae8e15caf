"""What a lane reads a source with that elects leaders, and what a take-over asks it."""

from electing_cluster import ElectingCluster
from fake_kafka import INVALID, FakeConsumer
from simulated_kafka import Weather

from replicator.kafka.admin.offsets import LogEnd
from replicator.kafka.admin.topics import TopicDescription
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import ClientPartition, KafkaError, Message


class SimulatedConsumer(FakeConsumer):
    """A lane's consumer; everybody else acts whenever it asks for records.

    When a leader was elected, it asks whether the log still reaches where it reads; so does a seek that
    names an epoch (librdkafka 2.16). Of a log that was cut it reads nothing more.
    """

    def __init__(self, cluster: ElectingCluster, weather: Weather) -> None:
        super().__init__(cluster)
        self._weather = weather
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._ahead: dict[tuple[str, int], list[Message]] = {}
        self._halted: set[tuple[str, int]] = set()

    def incremental_assign(self, partitions: list[ClientPartition]) -> None:
        super().incremental_assign(partitions)
        for item in partitions:
            key = item.topic, item.partition
            self._leaders[key] = self._cluster.epoch_of(*key)
            self._epochs[key] = -1
            self._ahead.pop(key, None)
            self._halted.discard(key)

    def seek(self, item: ClientPartition) -> None:
        super().seek(item)
        if item.leader_epoch is not None and item.leader_epoch >= 0:
            key = item.topic, item.partition
            self._epochs[key], self._leaders[key] = item.leader_epoch, -1

    def fetch_ahead(self) -> None:
        """What is there now was fetched before whatever happens next."""
        for key in [each for each in self._next if each not in self._paused]:
            self._read(key, 10_000, found := [])
            self._ahead[key] = found

    def _read(self, key: tuple[str, int], most: int, found: list[Message]) -> None:
        ahead = self._ahead.get(key)
        while ahead and len(found) < most:
            found.append(ahead.pop(0))
        if len(found) >= most or key in self._halted:
            return
        error = self._validated(key)
        if error is not None:
            self._halted.add(key)
            found.append(Message(topic=key[0], partition=key[1], offset=INVALID, error=error))
            return
        before = self._next[key]
        super()._read(key, most, found)
        if self._next[key] > before:
            self._epochs[key] = self._cluster.logs[key][self._next[key] - 1].leader_epoch

    def _validated(self, key: tuple[str, int]) -> KafkaError | None:
        """Why nothing more can be read where it reads, if so."""
        place, leader = self._next[key], self._cluster.epoch_of(*key)
        asks = self._leaders[key] != leader and self._epochs[key] >= 0
        self._leaders[key] = leader
        if asks and self._cluster.end_of_epoch(*key, self._epochs[key]) < place:
            return KafkaError(codes.AUTO_OFFSET_RESET, "Partition log truncation detected")
        if place > len(self._cluster.logs[key]):
            return KafkaError(codes.AUTO_OFFSET_RESET, "Broker: Offset out of range")
        return None

    def consume(self, most: int = 1, _timeout: float = 0):
        self._weather.moment("consume")
        return super().consume(most)

    def poll(self, timeout: float = 0):
        self._weather.wait(min(timeout, 0.05))
        return next(iter(super().consume(1)), None)

    def list_topics(self, *_names, timeout: float = 0):
        del timeout


class SourceAdmin:
    """What a take-over asks the source."""

    def __init__(self, cluster: ElectingCluster, partitions: int = 2, *, shown=None) -> None:
        """``shown`` gives a log as who is asked shows it."""
        self._cluster = cluster
        self._partitions = partitions
        self._shown = shown or (lambda cluster, place: cluster.shown(place))

    def describe_each_topic(self, names):
        return {
            name: TopicDescription(
                name, "", self._partitions, 1, leaderless=frozenset(),
                authorized_operations=frozenset(),
            )
            for name in names
        }  # fmt: skip

    def offsets(self, keys, *, at, isolation):
        if at == "earliest":
            return dict.fromkeys(keys, 0)
        shown = {key: self._shown(self._cluster, key) for key in keys}
        if isolation == "read_uncommitted":
            return {key: log.end for key, log in shown.items()}
        return {key: log.stable for key, log in shown.items()}

    def log_ends(self, keys, isolation="read_uncommitted"):
        shown = {key: self._shown(self._cluster, key) for key in keys}
        whole = isolation == "read_uncommitted"
        return {
            key: LogEnd(log.end if whole else log.stable, log.epoch) for key, log in shown.items()
        }

    def known_offsets(self, keys, at):
        return self.offsets(keys, at=at, isolation="read_committed")

    def close(self) -> None:
        pass
