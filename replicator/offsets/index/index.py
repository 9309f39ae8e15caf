"""The sparse index: which source offset stands at which target offset, about once a second. Pure.

A lane notes a pair now and then and stores it in its partition of the checkpoints topic, in the
transaction that also holds its checkpoints. The number of stored keys per source partition is
bounded, and no entry is ever rewritten to make room: entry *n* goes to the level of its trailing
zero bits, and each level is a ring of `RING` slots. So half of the entries fall on level 0, a
quarter on level 1, and so on, and at an age of *a* entries the distance between those that are left
is at most *a* / `RING`. The first entry has a slot of its own, the newest is always there.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from replicator.errors import StoredFormatError
from replicator.offsets.index.runs import Pair

VERSION = 1
KIND = "offset"
RING = 8
LEVELS = 26
"""2^26 entries are two years of one a second; later entries share the last level."""

FIRST_SLOT = 0
SLOTS = 1 + RING * LEVELS

NOTE_SECONDS = 1.0
NOTE_RECORDS = 10_000

Stored = tuple[bytes, bytes | None]
"""Key and value as they go into the checkpoints topic; None takes an entry away."""

_EMPTY = -1


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One stored pair; ``number`` counts the entries of a partition, ``at_ms`` is when it was noted."""

    slot: int
    number: int
    pair: Pair
    at_ms: int


class OffsetIndex:
    """The index of one source partition, as its lane keeps it; a few kilobytes at most.

    Of the entries it holds the pairs: readers get the rest from the topic. After a lane threw a session
    away it starts from the stored entries again.
    """

    __slots__ = ("_last", "_last_at", "_number", "_partition", "_sources", "_targets", "_topic")

    def __init__(self, topic: str, partition: int, entries: Iterable[IndexEntry] = ()) -> None:
        self._topic = topic
        self._partition = partition
        self._sources = array("q")
        self._targets = array("q")
        self._number = 0
        self._last = _EMPTY
        self._last_at = float("-inf")
        for entry in sorted(entries, key=lambda one: one.number):
            self._hold(entry.slot, entry.pair)
            self._number = max(self._number, entry.number)
            self._last = entry.pair.source

    def due(self, source: int, now: float) -> bool:
        """Whether a record at this source offset is worth an entry now (monotonic seconds)."""
        return (
            source < self._last
            or source - self._last >= NOTE_RECORDS
            or (source > self._last and now - self._last_at >= NOTE_SECONDS)
        )

    def note(self, source: int, target: int, *, now: float, at_ms: int) -> list[Stored]:
        """Takes in one copied record; returns what is to be stored, nothing while none is due.

        Args:
            source: offset of the record on the source.
            target: offset of its copy on the target, from the delivery report.
            now: monotonic seconds.
            at_ms: wall-clock milliseconds, for people.
        """
        if not self.due(source, now):
            return []
        stored = self._forget_from(source)
        self._number += 1
        entry = IndexEntry(slot_of(self._number), self._number, Pair(source, target), at_ms)
        if not self._held(FIRST_SLOT):
            stored.append(self._put(IndexEntry(FIRST_SLOT, self._number, entry.pair, at_ms)))
        stored.append(self._put(entry))
        self._last, self._last_at = source, now
        return stored

    def restart(self) -> list[Stored]:
        """The source topic was made anew, or truncated: no entry holds any more."""
        return self._forget_from(0)

    def newest_below(self, source: int, target: int) -> tuple[int, int] | None:
        """The newest pair below both offsets, source and target; None where none is held."""
        held = zip(self._sources, self._targets, strict=True)
        return max(
            (each for each in held if 0 <= each[0] < source and each[1] < target), default=None
        )

    def _forget_from(self, source: int) -> list[Stored]:
        """Entries at or above a source offset that is being copied again are no longer the newest."""
        stored: list[Stored] = []
        if source > self._last:
            return stored
        for slot, held in enumerate(self._sources):
            if held >= source:
                self._sources[slot] = _EMPTY
                stored.append((encode_key(self._topic, self._partition, slot), None))
        self._last = max(self._sources, default=_EMPTY)
        return stored

    def _put(self, entry: IndexEntry) -> Stored:
        self._hold(entry.slot, entry.pair)
        return encode_key(self._topic, self._partition, entry.slot), encode_value(entry)

    def _held(self, slot: int) -> bool:
        return slot < len(self._sources) and self._sources[slot] != _EMPTY

    def _hold(self, slot: int, pair: Pair) -> None:
        while len(self._sources) <= slot:
            self._sources.append(_EMPTY)
            self._targets.append(_EMPTY)
        self._sources[slot], self._targets[slot] = pair.source, pair.target


class LaneIndex:
    """The indexes of all source partitions of one lane."""

    def __init__(self, records: Mapping[bytes, bytes]) -> None:
        """Starts from the last value of every key in the lane's partition; others are skipped."""
        self._indexes = {
            (topic, partition): OffsetIndex(topic, partition, entries)
            for (topic, partition), entries in decode_index(records).items()
        }

    def due(self, topic: str, partition: int, source: int, now: float) -> bool:
        """See ``OffsetIndex.due``."""
        return self._of(topic, partition).due(source, now)

    def note(
        self, topic: str, partition: int, source: int, target: int, *, now: float, at_ms: int
    ) -> list[Stored]:
        """See ``OffsetIndex.note``."""
        return self._of(topic, partition).note(source, target, now=now, at_ms=at_ms)

    def restart(self, topic: str, partition: int) -> list[Stored]:
        """See ``OffsetIndex.restart``."""
        return self._of(topic, partition).restart()

    def newest_below(
        self, topic: str, partition: int, source: int, target: int
    ) -> tuple[int, int] | None:
        """See ``OffsetIndex.newest_below``."""
        return self._of(topic, partition).newest_below(source, target)

    def _of(self, topic: str, partition: int) -> OffsetIndex:
        index = self._indexes.get((topic, partition))
        if index is None:
            index = self._indexes[topic, partition] = OffsetIndex(topic, partition)
        return index


def slot_of(number: int) -> int:
    """Where entry ``number`` (from 1) is stored."""
    level = min((number & -number).bit_length() - 1, LEVELS - 1)
    return 1 + level * RING + (number >> (level + 1)) % RING


def encode_key(topic: str, partition: int, slot: int) -> bytes:
    """The key of one slot."""
    return orjson.dumps(
        {"kind": KIND, "partition": partition, "slot": slot, "topic": topic, "v": VERSION},
        option=orjson.OPT_SORT_KEYS,
    )


def encode_value(entry: IndexEntry) -> bytes:
    """The value of an entry."""
    return orjson.dumps(
        {
            "at": entry.at_ms,
            "n": entry.number,
            "source": entry.pair.source,
            "target": entry.pair.target,
            "v": VERSION,
        },
        option=orjson.OPT_SORT_KEYS,
    )


def decode_index(records: Mapping[bytes, bytes]) -> dict[tuple[str, int], list[IndexEntry]]:
    """The stored entries by source topic and partition; keys of other kinds are skipped.

    Raises:
        StoredFormatError: for an unknown version or text that is not ours; nothing is guessed.
    """
    found: dict[tuple[str, int], list[IndexEntry]] = {}
    for key, value in records.items():
        try:
            where = orjson.loads(key)
            if where["kind"] != KIND:
                continue
            what = orjson.loads(value)
            entry = _entry(where, what)
            found.setdefault((where["topic"], where["partition"]), []).append(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise StoredFormatError(
                f"an offset index record cannot be read ({error})",
                remedy="Something else wrote into the checkpoints topic; nothing was guessed.",
            ) from error
    return found


def index_pairs(entries: Iterable[IndexEntry]) -> list[Pair]:
    """The pairs in the order of the target log, strictly rising on both sides.

    Where a later entry is not above an earlier one, the earlier is of a life that is over.
    """
    pairs: list[Pair] = []
    for entry in sorted(entries, key=lambda one: one.number):
        if pairs and pairs[-1] == entry.pair:
            continue  # the first entry stands in two slots
        while pairs and (
            pairs[-1].source >= entry.pair.source or pairs[-1].target >= entry.pair.target
        ):
            pairs.pop()
        pairs.append(entry.pair)
    return pairs


def _entry(where: Mapping[str, Any], what: Mapping[str, Any]) -> IndexEntry:
    if where["v"] != VERSION or what["v"] != VERSION:
        raise StoredFormatError(
            f"an offset index record has version {what['v']}, this release reads {VERSION}",
            remedy="Run the release that wrote it, or a newer one.",
        )
    pair = Pair(int(what["source"]), int(what["target"]))
    return IndexEntry(int(where["slot"]), int(what["n"]), pair, int(what["at"]))
