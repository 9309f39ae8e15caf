"""Telling our copies from other records of a target partition, by their last hop. Pure."""

from collections.abc import Sequence

from replicator.policy.copies.provenance import find_hops, hop_prefix

OTHERS = -1
"""A record of somebody else: another cluster's copy."""

UNMARKED = -2
"""A record that says nothing about where it comes from."""


class CopyMark:
    """The mark of copies of one source partition.

    ``replayed`` are source offsets that were put back from quarantine: they stand after newer
    records, so their place says nothing about where others stand.
    """

    __slots__ = ("_prefix", "_replayed")

    def __init__(
        self, alias: str, topic: str, partition: int, *, replayed: frozenset[int] = frozenset()
    ) -> None:
        self._prefix = hop_prefix(alias, topic, partition)
        self._replayed = replayed

    def source_offset(self, headers: Sequence[tuple[str, bytes | None]] | None) -> int:
        """The source offset of a copy, else ``OTHERS`` or ``UNMARKED``."""
        value = find_hops(headers).value
        if value is None:
            return UNMARKED
        last = value.rsplit(b" ", 1)[-1]
        if last.startswith(self._prefix):
            offset = int(last[len(self._prefix) :])
            return OTHERS if offset in self._replayed else offset
        return OTHERS if b"/" in last else UNMARKED
