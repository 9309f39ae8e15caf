"""The metrics of a drill: which interruption counts, and until when. Pure."""

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
from replicator.drill.report.verdict import DrillMetrics
from replicator.testing.workload.watcher import Arrival


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to measure; ``partitions`` are those that were watched on the other cluster."""

    drill: Drill
    scene: Scene
    executed: Executed
    settled: SettledCopies
    arrivals: Sequence[Arrival]
    partitions: frozenset[int]


def measure(seen: Seen) -> DrillMetrics:
    """Everything measured.

    Where roles change, the interruption is that of the applications. Else it is that of the copies,
    because applications near the source notice nothing. A group that is moved on purpose after the
    fault does not count as interrupted.
    """
    executed, events, group = seen.executed, seen.settled.events, seen.scene.group
    roles = seen.drill.kind in ROLE_KINDS
    until = executed.ended_at if roles else executed.moved_at or executed.ended_at
    fault_at = executed.fault_at or until
    writes = longest_silence(_before(write_times(events), until), after=fault_at)
    reads = longest_silence(_before(read_times(events, group), until), after=fault_at)
    copies = None if roles else _copies(seen, fault_at, until)
    return DrillMetrics(
        rto=longest_of([writes, reads]) if roles else copies,
        writes=writes,
        reads=reads,
        copies=copies,
        loss=measure_loss(events, survivor=seen.scene.target.name, fault_at=fault_at),
        groups=measure_groups(events, [group], naming=seen.scene.naming),
    )


def _copies(seen: Seen, fault_at: float, until: float) -> Silence | None:
    """The longest interruption of any partition."""
    times: dict[int, list[float]] = {number: [] for number in seen.partitions}
    for arrival in seen.arrivals:
        times[arrival.partition].append(arrival.at)
    return longest_of(
        longest_silence(_before(each, until), after=fault_at) for each in times.values()
    )


def _before(times: Iterable[float], moment: float) -> list[float]:
    return [at for at in times if at <= moment]
