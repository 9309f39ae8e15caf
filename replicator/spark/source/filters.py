"""What a query's filters leave to be read: partitions, offsets and times of records. Pure.

Spark still applies every filter to what comes back, so a filter that is not understood costs time only.
Times narrow the start alone: records need not be in the order of their times.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from replicator.identifiers import TopicPartition

NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Pushed:
    """What is wanted of the partitions that the options name.

    Attributes:
        topics: the only ones wanted; None is all.
        partitions: the only numbers wanted; None is all.
        first_offset: of every partition.
        end_offset: of every partition; not wanted itself.
        first_ms: nothing older is wanted; milliseconds since 1970.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int = 0
    end_offset: int = NEVER
    first_ms: int | None = None

    def has(self, key: TopicPartition) -> bool:
        """Whether anything of a partition is wanted."""
        topic, partition = key
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


EVERYTHING = Pushed()


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column operator value``; the operator is one of = > >= < <= in, ``value`` a tuple for ``in``."""

    column: str
    operator: str
    value: Any


def narrowed(pushed: Pushed, filters: Iterable[Comparison]) -> Pushed:
    """What all of the filters leave, as far as they are about places and times."""
    for one in filters:
        pushed = _narrowed(pushed, one)
    return pushed


def _narrowed(pushed: Pushed, one: Comparison) -> Pushed:
    values = one.value if one.operator == "in" else (one.value,)
    if one.column == "topic" and one.operator in {"=", "in"}:
        wanted = frozenset(value for value in values if isinstance(value, str))
        return replace(pushed, topics=wanted if pushed.topics is None else pushed.topics & wanted)
    if one.column == "timestamp" and one.operator in {"=", ">", ">="}:
        at = _milliseconds(one.value)
        if at is None:
            return pushed
        return replace(pushed, first_ms=at if pushed.first_ms is None else max(pushed.first_ms, at))
    bounds = _bounds(one.operator, values)
    if bounds is None:
        return pushed
    first, end = bounds
    if one.column == "offset":
        return replace(
            pushed,
            first_offset=max(pushed.first_offset, first),
            end_offset=min(pushed.end_offset, end),
        )
    if one.column == "partition" and one.operator in {"=", "in"}:
        numbers = frozenset(value for value in values if _is_number(value))
        return replace(
            pushed,
            partitions=numbers if pushed.partitions is None else pushed.partitions & numbers,
        )
    return pushed


def _bounds(operator: str, values: tuple[Any, ...]) -> tuple[int, int] | None:
    """The smallest half-open range that has all wanted numbers."""
    numbers = [value for value in values if _is_number(value)]
    if len(numbers) != len(values) or not numbers:
        return None
    (low, high) = min(numbers), max(numbers)
    return {
        "=": (low, high + 1),
        "in": (low, high + 1),
        ">": (low + 1, NEVER),
        ">=": (low, NEVER),
        "<": (0, high),
        "<=": (0, high + 1),
    }.get(operator)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _milliseconds(value: object) -> int | None:
    """A time of a filter; one without a zone could mean any, so it narrows nothing."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    at = math.floor(value.timestamp() * 1000)
    return at if at >= 0 else None
