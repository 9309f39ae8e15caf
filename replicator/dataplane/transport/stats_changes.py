"""Statistics of lanes travel as differences: only partitions whose numbers changed are sent.

A lane is sent whole once, when it starts; the socket neither loses nor reorders what follows. So a
second in which one of 10,000 partitions moved costs one partition. Pure.
"""

from dataclasses import dataclass, replace

from replicator.formats.lane_stats import LaneStats
from replicator.identifiers import TopicPartition


@dataclass(frozen=True, slots=True)
class LaneChange:
    """What changed of one lane; ``stats`` holds the changed partitions only.

    ``whole`` says that these are all partitions of the lane, whatever was known before.
    """

    stats: LaneStats
    removed: tuple[TopicPartition, ...] = ()
    whole: bool = False


def lane_change(before: LaneStats | None, now: LaneStats) -> LaneChange:
    """The difference to what was sent ``before``; None when nothing was."""
    if before is None:
        return LaneChange(now, whole=True)
    known = {(each.topic, each.partition): each for each in before.partitions}
    changed = tuple(
        each for each in now.partitions if known.pop((each.topic, each.partition), None) != each
    )
    return LaneChange(replace(now, partitions=changed), removed=tuple(known))


def with_change(before: LaneStats | None, change: LaneChange) -> LaneStats | None:
    """The lane's whole statistics after a change; None while its first picture has not come."""
    if change.whole:
        return change.stats
    if before is None:
        return None
    partitions = {(each.topic, each.partition): each for each in before.partitions}
    for key in change.removed:
        partitions.pop(key, None)
    partitions.update(((each.topic, each.partition), each) for each in change.stats.partitions)
    return replace(change.stats, partitions=tuple(partitions.values()))
