"""Ranges of partitions: what one task reads. Pure.

Offsets are half open: ``start`` is the first one read, ``end`` the first one that is not.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.errors import InputError
from replicator.identifiers import TopicPartition

EARLIEST = -2
LATEST = -1
"""How the stock Kafka source writes the two ends in its JSON of offsets."""

PACKED_RECORDS = 200_000
"""Small ranges share a task up to this many offsets: a task of its own costs more than they do."""


@dataclass(frozen=True, slots=True)
class Range:
    """Some offsets of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets it spans: an upper bound of its records."""
        return max(0, self.end - self.start)


def ranges_between(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[Range]:
    """The ranges that hold anything, by topic and partition; of partitions that have both ends."""
    found = [
        Range(topic, partition, start, ends[topic, partition])
        for (topic, partition), start in starts.items()
        if (topic, partition) in ends
    ]
    return sorted(
        (one for one in found if one.size), key=lambda one: (one.topic, one.partition, one.start)
    )


def split(ranges: Iterable[Range], most: int | None) -> list[Range]:
    """Ranges of at most so many offsets; None leaves them whole."""
    if most is None:
        return list(ranges)
    return [
        Range(one.topic, one.partition, start, min(start + most, one.end))
        for one in ranges
        for start in range(one.start, one.end, most)
    ]


def packed(ranges: Iterable[Range], most: int = PACKED_RECORDS) -> list[tuple[Range, ...]]:
    """What each task reads: large ranges alone, small ones together, none cut."""
    tasks: list[tuple[Range, ...]] = []
    small: list[Range] = []
    held = 0
    for one in ranges:
        if one.size >= most:
            tasks.append((one,))
            continue
        if held + one.size > most and small:
            tasks.append(tuple(small))
            small, held = [], 0
        small.append(one)
        held += one.size
    if small:
        tasks.append(tuple(small))
    # The longest first: whatever is left at the end is short.
    return sorted(tasks, key=lambda task: -sum(one.size for one in task))


def offsets_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """``{"topic": {"0": 23}}``, as the stock source writes it."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def parse_offsets(text: str, *, option: str) -> dict[TopicPartition, int]:
    """Reads that JSON; -2 and -1 stay as they are.

    Raises:
        InputError: it is not of that form.
    """
    try:
        return keyed_offsets(json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"'{text[:80]}' is not offsets",
            subject=option,
            remedy='Write {"topic": {"0": 23, "1": -2}}; -2 is the earliest, -1 the latest.',
        ) from error


def keyed_offsets(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The same as a mapping by topic and partition."""
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }
