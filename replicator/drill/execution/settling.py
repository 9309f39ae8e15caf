"""The end of a drill: both clusters are read to their ends, and the records found complete the history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replicator.drill.environment.environment import Scene
from replicator.errors import ReplicatorError
from replicator.kafka.clients.client import KafkaException
from replicator.testing.checker.anomalies import Anomaly, Report
from replicator.testing.checker.check import check
from replicator.testing.checker.history import FINAL, Delivered, Event, Seen, Sent
from replicator.testing.kit.waiting import NotInTimeError, wait_until
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.scan import scan

SETTLE_SECONDS = 90.0
LOOK_SECONDS = 0.5
_NOT_YET_THERE = {Anomaly.LOST, Anomaly.UNSEEN_TAIL}


@dataclass(frozen=True, slots=True)
class SettledCopies:
    """The whole history, the checker's report on it, and why it could not be read in full."""

    events: Sequence[Event]
    report: Report
    trouble: str


def settle(
    scene: Scene,
    written: Callable[[], list[Event]],
    *,
    loss_accepted: bool,
    group_moved: bool = True,
    timeout_seconds: float = SETTLE_SECONDS,
) -> SettledCopies:
    """Waits until every record has arrived and the group has read it, then checks the whole history.

    Missing records are not waited for where a loss was accepted, nor is a group that was never moved to
    the other cluster. A link that stays down ends the wait at its deadline; the history is checked as
    it is then.
    """
    last: list[SettledCopies] = []

    def done() -> bool:
        last[:] = [_look(scene, written())]
        read = not group_moved or _read_to_end(scene, last[0].events)
        return read and (loss_accepted or not _missing(last[0].report))

    try:
        wait_until(
            done,
            timeout_seconds=timeout_seconds,
            describe="every record to arrive",
            interval_seconds=LOOK_SECONDS,
        )
    except NotInTimeError:
        return last[0]
    return last[0]


def _look(scene: Scene, written: list[Event]) -> SettledCopies:
    looked = Recorder()
    trouble = ""
    for alias, topic in ((scene.source.name, scene.topic), (scene.target.name, scene.copy)):
        try:
            scan(scene.behind[alias], [topic], history=looked, starts=scene.starts.get(alias))
        except (ReplicatorError, KafkaException) as error:
            trouble = f"{alias} could not be read to its end: {error}"
    found = looked.events()
    if scene.shared:
        own = {event.id for event in written if isinstance(event, Sent)}
        found = [event for event in found if not isinstance(event, Seen) or event.id in own]
    events = written + found
    return SettledCopies(events, check(events, naming=scene.naming), trouble)


def _missing(report: Report) -> bool:
    """Whether a record is missing whose loss is not tolerated."""
    return any(each.anomaly in _NOT_YET_THERE and not each.tolerated for each in report.findings)


def _read_to_end(scene: Scene, events: Sequence[Event]) -> bool:
    """Whether the group was given the last record of every partition it moved to."""
    target = scene.target.name
    last: dict[int, int] = {}
    given: dict[int, int] = {}
    for each in events:
        if isinstance(each, Seen) and each.view == FINAL and each.cluster == target:
            last[each.partition] = max(each.offset, last.get(each.partition, -1))
        elif isinstance(each, Delivered) and each.cluster == target and each.group == scene.group:
            given[each.partition] = max(each.offset, given.get(each.partition, -1))
    return all(given.get(partition, -1) >= offset for partition, offset in last.items())
