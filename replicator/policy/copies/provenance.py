"""The hop header: where a record came from, and which way it went.

The value of `replicator-hops` is UTF-8 text: hops separated by one space, oldest first. A hop is
`alias/topic/partition/offset` as seen on the cluster that was read, or the alias alone under
`provenance: path`; both forms may stand in one value. Topic names can hold neither `/` nor a space,
so splitting is unambiguous. Anything else under that header name is foreign: kept, never guessed at.

Under `provenance: path` a hop does not show which topic it stands on, so a **mark** follows the last
one: `at--` and the CRC-32 of the topic that the copy was written to. It has the form of an alias, so
that releases which do not know it pass it by.

Applications that forward headers (Kafka Streams and retry libraries do) put a hop list on records of
their own, in other topics. `Arrivals` distinguishes such a list from one that a flow wrote where it stands.

Loop prevention needs only the aliases, once per record, so `find_hops` and `aliases_of` do no more than
one regular expression in C and a split. The quantifiers are possessive: arbitrary bytes cannot make the
match backtrack.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.naming import target_name
from replicator.policy.values import Naming

ALIAS_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""Grammar of an alias: no dots, so that a prefixed topic name can be read back."""

MAX_ALIAS_LENGTH = 63
MAX_PARTITION = 2**31 - 1
MAX_OFFSET = 2**63 - 1

Headers = Sequence[tuple[str, bytes | None]]

_ALIAS = rb"[a-z0-9]++(?:-++[a-z0-9]++)*+"
_PLACE = rb"/[a-zA-Z0-9._-]{1,249}+/(?:0|[1-9][0-9]{0,9}+)/(?:0|[1-9][0-9]{0,18}+)"
_HOP = rb"%b(?:%b)?+" % (_ALIAS, _PLACE)
_HOPS = re.compile(rb"%b(?: %b)*+" % (_HOP, _HOP))
_MARK_BYTES = len(b" at--01234567")
_MARK = re.compile(rb" at--[0-9a-f]{8}")
MARK_PATTERN = r"at--[0-9a-f]{8}"
"""What no alias may look like."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One cluster a record was read from; the place is None where only the path was kept."""

    alias: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class FoundHops:
    """What a record's headers say about its way.

    `index` is the place of the last well-formed header, None when there is none. `foreign` counts
    headers of our name that are somebody else's.
    """

    index: int | None
    value: bytes | None
    foreign: int


_NO_HOPS = FoundHops(None, None, 0)


def hop_prefix(alias: str, topic: str, partition: int) -> bytes:
    """The constant part of a partition's hops; the offset is appended per record."""
    return f"{alias}/{topic}/{partition}/".encode()


def path_hop(alias: str, target_topic: str) -> bytes:
    """The hop of `provenance: path`, with the mark of the topic that the copy is written to."""
    return f"{alias} at--{zlib.crc32(target_topic.encode()):08x}".encode()


def encode_hop(hop: Hop) -> bytes:
    """One hop as it stands in the header; the path form when it has no place."""
    if hop.topic is None or hop.partition is None or hop.offset is None:
        return hop.alias.encode()
    return f"{hop.alias}/{hop.topic}/{hop.partition}/{hop.offset}".encode()


def append(existing: bytes | None, hop: bytes) -> bytes:
    """Extends a well-formed value by one encoded hop; None starts a new one."""
    return hop if existing is None else b"%b %b" % (_without_mark(existing), hop)


def aliases_of(value: bytes) -> tuple[str, ...]:
    """The aliases on a record's way, oldest first, of a well-formed value as ``find_hops`` returns it.

    This is the per-record path: it does not check number ranges, which loop prevention never needs.
    """
    text = value.decode("ascii")
    if " " not in text:  # most records have travelled once
        return (text.partition("/")[0],)
    return tuple([hop.partition("/")[0] for hop in text.split(" ")])


def parse_hops(value: bytes | None) -> tuple[Hop, ...] | None:
    """Reads a header value; None when it is not well-formed, whatever the bytes."""
    if value is None or _HOPS.fullmatch(value) is None:
        return None
    hops = tuple(_parse_hop(text) for text in _without_mark(value).decode("ascii").split(" "))
    return None if any(_out_of_range(hop) for hop in hops) else hops


def find_hops(headers: Headers | None) -> FoundHops:
    """The last well-formed hop header counts; others of that name are foreign."""
    if not headers:
        return _NO_HOPS
    index: int | None = None
    value: bytes | None = None
    foreign = 0
    for position, (name, content) in enumerate(headers):
        if name != HOPS_HEADER:
            continue
        if content is not None and _HOPS.fullmatch(content) is not None:
            index, value = position, content
        else:
            foreign += 1
    return FoundHops(index, value, foreign)


def with_hop(
    headers: Headers | None, found: FoundHops, hop: bytes
) -> list[tuple[str, bytes | None]]:
    """The headers to write: everything as it was, our header extended and last in the list."""
    kept = [header for at, header in enumerate(headers or ()) if at != found.index]
    kept.append((HOPS_HEADER, append(found.value, hop)))
    return kept


def without_last_hop(value: bytes) -> tuple[bytes | None, bytes]:
    """A well-formed value before its last hop was added, and that hop without its mark.

    A mark that stood there before is not restored.
    """
    before, _, last = _without_mark(value).rpartition(b" ")
    return before or None, last


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How records arrive on a cluster: each alias that flows there, with the naming of the flow.

    `identity` and `prefix` names are recognised for every alias, because another topology file may
    have copied the record, or this one before its naming was changed.
    """

    namings: tuple[tuple[str, Naming], ...] = ()

    def wrote(self, value: bytes, topic: str, partition: int) -> bool:
        """Whether a flow wrote this well-formed value into the partition in which it is found.

        Otherwise an application forwarded the header from a record that it read elsewhere, and its
        record is a new one. A path hop of a release that wrote no mark counts as the flow's.
        """
        bare = _without_mark(value)
        if bare is not value:
            return value[len(bare) :] == path_hop("", topic)
        last = bare.rpartition(b" ")[2].decode("ascii")
        if "/" not in last:
            return True
        alias, source_topic, number, _ = last.split("/")
        if int(number) != partition:
            return False
        return topic in {source_topic, f"{alias}.{source_topic}"} or any(
            topic == target_name(naming, alias, source_topic)
            for known, naming in self.namings
            if known == alias
        )

    def passed(self, headers: Headers | None, topic: str, partition: int) -> tuple[str, ...]:
        """The aliases on the way of a record that a flow wrote there; empty for any other record."""
        value = find_hops(headers).value
        if value is None or not self.wrote(value, topic, partition):
            return ()
        return aliases_of(value)


def origin(hops: Sequence[Hop]) -> Hop | None:
    """Where the record was first written, None for a record that never travelled."""
    return hops[0] if hops else None


def _without_mark(value: bytes) -> bytes:
    """The same object where there is no mark."""
    return value[:-_MARK_BYTES] if _MARK.fullmatch(value[-_MARK_BYTES:]) else value


def _parse_hop(text: str) -> Hop:
    alias, slash, place = text.partition("/")
    if not slash:
        return Hop(alias)
    topic, partition, offset = place.split("/")
    return Hop(alias, topic, int(partition), int(offset))


def _out_of_range(hop: Hop) -> bool:
    return (hop.partition or 0) > MAX_PARTITION or (hop.offset or 0) > MAX_OFFSET
