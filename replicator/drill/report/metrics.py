"""From what a drill saw to its figures: which interruption counts, and until when. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicator.drill.environment.environment import Scene
from replicator.drill.execution.execution import Executed
from replicator.drill.execution.settling import SettledCopies
from replicator.drill.file.plan import ROLE_KINDS, Drill
from replicator.drill.report.measure import (
    Silence,
    longest_of,
    longest_silence,
    measure_groups,
    measure_loss,
    read_times,
    write_times,
)
from replicator.drill.report.verdict import DrillFigures
from replicator.testing.workload.watcher import Arrival


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to measure; ``partitions`` are those that were watched on the other side."""

    drill: Drill
    scene: Scene
    played: Executed
    settled: SettledCopies
    arrivals: Sequence[Arrival]
    partitions: frozenset[int]


def measure(seen: Seen) -> DrillFigures:
    """Everything measured.

    Where roles change, the interruption is that of the applications; else it is that of the copies,
    as applications near the source notice nothing. A group that is moved on purpose once the fault
    is over does not count as interrupted.
    """
    played, events, group = seen.played, seen.settled.events, seen.scene.group
    roles = seen.drill.kind in ROLE_KINDS
    until = played.ended_at if roles else played.moved_at or played.ended_at
    fault_at = played.fault_at or until
    writes = longest_silence(_before(write_times(events), until), after=fault_at)
    reads = longest_silence(_before(read_times(events, group), until), after=fault_at)
    copies = None if roles else _copies(seen, fault_at, until)
    return DrillFigures(
        rto=longest_of([writes, reads]) if roles else copies,
        writes=writes,
        reads=reads,
        copies=copies,
        loss=measure_loss(events, survivor=seen.scene.target.name, fault_at=fault_at),
        groups=measure_groups(events, [group], naming=seen.scene.naming),
    )


def _copies(seen: Seen, fault_at: float, until: float) -> Silence | None:
    """The interruption of the partition that was worst."""
    times: dict[int, list[float]] = {number: [] for number in seen.partitions}
    for arrival in seen.arrivals:
        times[arrival.partition].append(arrival.at)
    return longest_of(
        longest_silence(_before(each, until), after=fault_at) for each in times.values()
    )


def _before(times: Iterable[float], moment: float) -> list[float]:
    return [at for at in times if at <= moment]
