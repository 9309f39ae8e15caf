"""Where checkpoints belong under a layout, and which must move: the pure half of a layout change.

Invariant: after the moves every source partition that had a checkpoint has exactly one, in the
partition of the lane that owns it now, and it is the newest that was ever stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import Layout
from replicator.formats.checkpoint import decode_checkpoint, replaces
from replicator.kafka.clients.wire_json import decode_key


@dataclass(frozen=True, slots=True)
class Move:
    """Write ``value`` (None is a tombstone) under ``key`` into one checkpoints partition."""

    partition: int
    key: bytes
    value: bytes | None


def plan_moves(
    stored: Mapping[int, Mapping[bytes, bytes]], layout: Layout, links: Mapping[str, str]
) -> tuple[Move, ...]:
    """Decides which records of the checkpoints topic change their partition.

    Args:
        stored: per checkpoints partition, the last value of each key.
        layout: the layout to have.
        links: the link that each source topic belongs to now. Topics of no link stay where they
            are: should they come back, their old checkpoints are found by a later change.

    Other records of a partition (offset index entries) name their topic and partition too and move
    with its checkpoint.
    """
    newest: dict[bytes, tuple[int, bytes]] = {}
    for number, records in sorted(stored.items()):
        for key, value in records.items():
            held = newest.get(key)
            if held is None or _replaces(key, value, held[1]):
                newest[key] = (number, value)
    moves: list[Move] = []
    for key, (number, value) in newest.items():
        wanted = _lane(key, layout, links)
        home = number if wanted is None else wanted
        if stored.get(home, {}).get(key) != value:
            moves.append(Move(home, key, value))
        moves.extend(
            Move(other, key, None)
            for other, records in sorted(stored.items())
            if other != home and key in records
        )
    return tuple(moves)


CHECKED_KINDS = frozenset({"checkpoint"})
"""Kinds of keys whose version is checked before they are moved; others follow their partition as they are."""


def lane_of_link(layout: Layout, link: str, topic: str, partition: int) -> int | None:
    """The lane of a source partition, None while the link has no lanes."""
    block = layout.block(link)
    return None if block is None else lane_in(block, topic, partition)


def _lane(key: bytes, layout: Layout, links: Mapping[str, str]) -> int | None:
    where = decode_key(key, kinds=CHECKED_KINDS)
    topic, partition = where.get("topic"), where.get("partition")
    if not isinstance(topic, str) or not isinstance(partition, int) or topic not in links:
        return None
    return lane_of_link(layout, links[topic], topic, partition)


def _replaces(key: bytes, value: bytes, held: bytes) -> bool:
    found = decode_checkpoint(key, value)
    return found is not None and replaces(found, decode_checkpoint(key, held))
