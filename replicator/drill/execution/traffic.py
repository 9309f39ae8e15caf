"""The applications of a drill: writers, a consumer group that moves, and a watcher of the copies."""

import contextlib
from collections.abc import Iterator, Sequence

from replicator.drill.environment.environment import Scene
from replicator.drill.file.plan import Load
from replicator.errors import ReplicatorError
from replicator.testing.checker.history import Completed, Delivered, Event
from replicator.testing.kit.endpoints import Endpoint
from replicator.testing.workload.group_reader import GroupReader
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import RecordStyle
from replicator.testing.workload.watcher import Watcher
from replicator.testing.workload.writer import Writer

_STOP_SECONDS = 60.0


class Traffic:
    """One drill's applications; everything they do goes into one history."""

    def __init__(self, scene: Scene, load: Load) -> None:
        self.history = Recorder()
        self._scene = scene
        self._load = load
        self._writers: list[Writer] = []
        self._readers: list[GroupReader] = []
        self._stopped = 0
        self.watcher = Watcher(scene.behind[scene.target.name], scene.copy)
        self.history.expect([scene.pair.id])

    def start(self) -> None:
        """Writers and the group begin on the source, the watcher on the target."""
        self.watcher.start()
        self.write_to(self._scene.source)
        self.read_from(self._scene.source)

    def write_to(self, cluster: Endpoint) -> Writer:
        """Starts another writer; earlier writers keep running."""
        topic = self._topic_on(cluster)
        writer = Writer(
            cluster,
            [topic],
            history=self.history,
            rate_per_second=self._load.records_per_second,
            seed=len(self._writers),
            style=RecordStyle(value_bytes=self._load.record_bytes),
        ).start()
        self._writers.append(writer)
        return writer

    def read_from(self, cluster: Endpoint) -> GroupReader:
        """Starts a member of the group; without a position it begins at the start."""
        reader = GroupReader(
            cluster,
            [self._topic_on(cluster)],
            group=self._scene.group,
            history=self.history,
            from_start=not self._scene.shared,
        ).start()
        self._readers.append(reader)
        return reader

    def stop_writing(self) -> str:
        """Stops the newest writer cleanly; every outcome is known then, or unknown for good."""
        writer = self._writers[-1]
        self._stopped = len(self._writers)
        writer.stop(timeout_seconds=_STOP_SECONDS)
        return f"{writer.acked} acknowledged, {writer.sent - writer.acked} not"

    def stop_reading(self) -> str:
        """Stops the newest reader cleanly: it commits what it has processed."""
        self._readers[-1].stop()
        return f"{self._readers[-1].delivered} records were delivered there"

    def lose(self) -> None:
        """Abandons the newest writer and reader, as if their site was lost."""
        self._writers[-1].abandon()
        self._readers[-1].abandon()
        self._stopped = len(self._writers)

    @property
    def acknowledged(self) -> int:
        """Writes acknowledged so far, by all writers."""
        return sum(writer.acked for writer in self._writers)

    @property
    def delivered(self) -> int:
        """Records given to the group by its newest member."""
        return self._readers[-1].delivered

    @property
    def last_write_at(self) -> float:
        """Wall-clock seconds of the newest acknowledgement, 0 before any."""
        return max((writer.last_ack_at for writer in self._writers), default=0.0)

    @property
    def wrote_last(self) -> int:
        """Writes acknowledged to the newest writer."""
        return self._writers[-1].acked

    @property
    def stopped(self) -> bool:
        """Whether the newest writer was stopped."""
        return self._stopped == len(self._writers)

    def read_written_after(self, moment: float) -> bool:
        """Whether the group was given a record that was acknowledged after a moment."""
        name = self._scene.target.name
        fresh = {
            (each.partition, each.offset)
            for each in self.history.events()
            if isinstance(each, Completed) and each.outcome == "ok" and each.at > moment
        }
        return any(
            isinstance(each, Delivered)
            and each.cluster == name
            and (each.partition, each.offset) in fresh
            for each in self.history.events()
        )

    def events(self) -> list[Event]:
        """The history so far, without the records read back from the clusters."""
        return self.history.events()

    def close(self) -> Sequence[str]:
        """Stops everything; returns the errors that occurred meanwhile."""
        problems: list[str] = []
        for writer in self._writers:
            with _errors_kept_in(problems):
                writer.stop()
        for reader in self._readers:
            with _errors_kept_in(problems):
                reader.stop()
        self.watcher.stop()
        return problems

    def _topic_on(self, cluster: Endpoint) -> str:
        return self._scene.topic if cluster.name == self._scene.source.name else self._scene.copy


@contextlib.contextmanager
def _errors_kept_in(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except ReplicatorError as error:
        problems.append(error.paragraph())
