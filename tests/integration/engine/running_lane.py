"""One real lane in this process, with everything it said."""

from dataclasses import replace
from typing import Any

from replicator.clock import SystemClock
from replicator.dataplane.context.idle_poller import IdlePoller
from replicator.dataplane.lane.lane import Lane
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.lane_stats import PartitionStats
from replicator.offsets.index.index import LaneIndex
from replicator.testing import wait_until

PATIENCE_SECONDS = 90.0


class RunningLane:
    """A lane's thread with everything it said."""

    def __init__(self, spec: LaneSpec) -> None:
        self.said: list[LaneStopped | LostRange | LogLine] = []
        self.idle_poller = IdlePoller()
        self.lane = Lane(
            spec, post=self.said.append, may_start=lambda *_: True, clock=SystemClock(),
            open_index=LaneIndex, idle_poller=self.idle_poller,
        )  # fmt: skip
        self.lane.start()

    @property
    def spec(self) -> LaneSpec:
        return self.lane.spec

    @property
    def stats(self):
        return self.lane.stats

    @property
    def gaps(self) -> list[LostRange]:
        return [each for each in self.said if isinstance(each, LostRange)]

    @property
    def log(self) -> list[LogLine]:
        return [each for each in self.said if isinstance(each, LogLine)]

    @property
    def ended(self) -> LaneStopped | None:
        return next((each for each in self.said if isinstance(each, LaneStopped)), None)

    def partition(self, topic: str, partition: int = 0) -> PartitionStats | None:
        """The figures of one partition; ``None`` while the lane does not work on it."""
        for each in self.lane.stats.partitions:
            if (each.topic, each.partition) == (topic, partition):
                return each
        return None

    def until_whole(self) -> None:
        """Returns when the lane copies whole batches: one whose id copied record by record goes on so for a while."""
        wait_until(
            lambda: self.stats.state == "running" and not self.stats.records_reason,
            timeout_seconds=PATIENCE_SECONDS,
            describe=lambda: f"the lane to copy whole batches: {self.stats}",
        )

    def problem(self, topic: str, partition: int = 0) -> str:
        """The problem of one partition, empty when there is none."""
        found = self.partition(topic, partition)
        return "" if found is None else found.problem

    def update(self, **changes: Any) -> None:
        """Goes on with a changed spec; returns when the lane has taken it."""
        spec = replace(self.lane.spec, **changes)
        self.lane.update(spec)
        wait_until(
            lambda: self.lane.spec is spec and not self.lane._commands,
            timeout_seconds=PATIENCE_SECONDS,
            describe=lambda: f"the lane to take its new spec: {self.stats}",
        )

    def stop(self) -> LaneStopped:
        """Stops in order."""
        self.lane.stop(1)
        self.lane.join(PATIENCE_SECONDS)
        assert not self.lane.is_alive(), "the lane did not end"
        assert self.ended is not None
        return self.ended
