"""What one round of an archive takes: pure, from what it holds and what the cluster holds.

A partition goes on where the archive ends. Offsets that retention deleted first are recorded as lost;
where the log is shorter than the archive, the topic was created again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from replicator.identifiers import JsonObject, TopicPartition
from replicator.spark.archive_files.manifest import Archive, Lost
from replicator.spark.base.ranges import Range

_SUMMED = ("records", "files", "bytes")


@dataclass(frozen=True, slots=True)
class Round:
    """Ranges to read, offsets that are lost, and partitions that were recreated."""

    ranges: tuple[Range, ...]
    lost: tuple[Lost, ...]
    recreated: tuple[TopicPartition, ...]


def decide_round(
    archive: Archive,
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str],
) -> Round:
    """Decides from both ends of every partition and the ids of the topics as they are now."""
    ranges: list[Range] = []
    lost: list[Lost] = []
    recreated: list[TopicPartition] = []
    for key in sorted(latest):
        topic, partition = key
        held = archive.ends.get(key)
        known = archive.topics.get(topic)
        other_topic = known is not None and bool(known.id) and known.id != topic_ids.get(topic, "")
        if held is not None and (held > latest[key] or other_topic):
            recreated.append(key)
            continue
        start = earliest[key] if held is None else held
        if start < earliest[key]:
            lost.append(Lost(topic, partition, start, earliest[key]))
            start = earliest[key]
        if start < latest[key]:
            ranges.append(Range(topic, partition, start, latest[key]))
    return Round(tuple(ranges), tuple(lost), tuple(recreated))


def first_part(ranges: Sequence[Range], most: int) -> tuple[Range, ...]:
    """What one commit takes of the ranges: the same part of each, about ``most`` offsets together.

    So all partitions are read at once in every part, and each partition in the order of its offsets.
    """
    total = sum(each.size for each in ranges)
    if total <= most:
        return tuple(ranges)
    return tuple(
        replace(each, end=each.start + max(1, each.size * most // total)) for each in ranges
    )


def together(parts: Sequence[JsonObject]) -> JsonObject:
    """The result of a round from those of its commits."""
    made = [part for part in parts if part["commit"] is not None]
    last = made[-1] if made else parts[-1]
    sums = {name: sum(int(str(part[name])) for part in parts) for name in _SUMMED}
    lost = [one for part in parts for one in cast("list[object]", part["lost"])]
    return {
        "commit": last["commit"], "commits": len(made), **sums,
        "topics": last["topics"], "lost": lost,
    }  # fmt: skip


def up_to(ranges: Iterable[Range], ends: Mapping[TopicPartition, int]) -> tuple[Range, ...]:
    """The ranges below these ends: a round does not run after writers who never stop."""
    clipped = (
        replace(each, end=min(each.end, ends.get((each.topic, each.partition), each.start)))
        for each in ranges
    )
    return tuple(each for each in clipped if each.size)
