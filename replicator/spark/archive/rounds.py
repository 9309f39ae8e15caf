"""What one round of an archive takes: pure, from what it holds and what the cluster holds.

A partition goes on where the archive ends. Offsets that retention deleted first are recorded as lost;
where the log is shorter than the archive, the topic was created again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.identifiers import TopicPartition
from replicator.spark.archive.manifest import Archive, Lost
from replicator.spark.base.ranges import Range


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
