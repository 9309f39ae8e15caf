"""Inside a task: each record of one side becomes a small row with what the comparison needs.

Keys and values never leave the task: at most some eighty bytes a record cross into Spark. The source
side applies the engine's own rules to each record, so it hashes what the target should hold.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from replicator.batches.registry.copied_ranges import CopiedRanges
from replicator.dataplane.copy.rewrite import Rewriter, load_transforms
from replicator.dataplane.copy.source_message import (
    UNREADABLE,
    Headers,
    ProducedHeaders,
    SourceMessage,
)
from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.errors import RecordRefusedError
from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import parse_hops
from replicator.spark.base.ranges import Range
from replicator.spark.compare.cases import Case, belongs, segment_of
from replicator.spark.compare.digests import NO_TIME, content_digest, key_digest, without_last_hop
from replicator.spark.source.scan import RangeScanner, Scanned
from replicator.topology.plan import ClusterPlan

SOURCE, TARGET = 0, 1
EXPECTED, LOOP, FILTERED, TRANSFORMED, QUARANTINED, GIVEN_UP, FOREIGN_ALLOWED, EXPIRED = range(8)
"""Exclusion reasons: why a record need not have a counterpart; EXPECTED records must have one."""
REASONS = {
    LOOP: "loop",
    FILTERED: "filtered",
    TRANSFORMED: "transformed",
    QUARANTINED: "quarantined",
    GIVEN_UP: "givenUp",
    FOREIGN_ALLOWED: "others",
    EXPIRED: "targetRetention",
}

DDL = (
    "case int, side int, match1 bigint, match2 bigint, segment int, offset bigint, origin bigint, "
    "hash1 bigint, hash2 bigint, at bigint, exclusion int, outOfOrder boolean, tombstone boolean"
)
SCHEMA = pa.schema(
    [
        ("case", pa.int32()), ("side", pa.int32()), ("match1", pa.int64()), ("match2", pa.int64()),
        ("segment", pa.int32()), ("offset", pa.int64()), ("origin", pa.int64()),
        ("hash1", pa.int64()), ("hash2", pa.int64()), ("at", pa.int64()), ("exclusion", pa.int32()),
        ("outOfOrder", pa.bool_()), ("tombstone", pa.bool_()),
    ]
)  # fmt: skip

_DROPS = {"loop": LOOP, "filtered": FILTERED, "transformed": TRANSFORMED}
_EMPTY: Headers = []
_ZERO = ord("0")
_DIGITS = 18


class Fingerprint(NamedTuple):
    """What is known of one record; ``origin`` is the source offset, -1 where it is not known."""

    offset: int
    origin: int
    digest: bytes
    match: bytes | None
    at_ms: int
    exclusion: int
    out_of_order: bool
    tombstone: bool


def fingerprints(case: Case, side: int, cluster: ClusterPlan) -> Iterator[pa.RecordBatch]:
    """The rows of one side of a case."""
    facts = case.facts
    wanted = (
        Range(facts.topic, facts.partition, case.source_from, case.source_to)
        if side == SOURCE
        else Range(facts.target_topic, facts.partition, case.target_from, case.target_to)
    )
    reader = SourceFingerprints(case, cluster) if side == SOURCE else TargetFingerprints(case)
    with RangeScanner(cluster, client_id="replicator-verify") as scanner:
        for scanned in scanner.scan(wanted):
            rows = [row for row in reader.fingerprints(scanned) if row is not None]
            if rows:
                yield _batch(case, side, rows)


class SourceFingerprints:
    """What the flow's rules make of the records of a source partition."""

    def __init__(self, case: Case, cluster: ClusterPlan) -> None:
        self._case = case
        rules = case.facts.rules
        producers = frozenset(rules.producers)
        returned = CopiedRanges(
            cluster,
            lambda number: rules.target if number in producers else None,
            blocked=(rules.target,),
            client_id="replicator-verify",
        )
        self._rewriter = Rewriter(
            blocked=rules.blocked,
            arrivals=rules.arrivals,
            filters=rules.filters,
            transforms=load_transforms(rules.transforms),
            returned=returned if producers else None,
        )
        self._timed = not case.facts.target.appends_time
        self._keyed = case.mode == "latest"

    def fingerprints(self, scanned: Scanned) -> Iterator[Fingerprint]:
        """One per record."""
        quarantined, gaps = self._case.facts.quarantined, self._case.facts.gaps
        head_to = self._case.head_to
        for message, headers in zip(scanned.messages, scanned.headers, strict=True):
            offset = message.offset()
            row = self._fingerprint(message, headers, offset)
            if row.exclusion == EXPECTED:
                if offset in quarantined:
                    row = row._replace(exclusion=QUARANTINED)
                elif gaps and any(low <= offset < high for low, high in gaps):
                    row = row._replace(exclusion=GIVEN_UP)
                elif offset < head_to and self._case.expired(offset, row.at_ms):
                    row = row._replace(exclusion=EXPIRED)
            yield row

    def _fingerprint(
        self, message: SourceMessage, headers: Headers | None, offset: int
    ) -> Fingerprint:
        key, value, at = message.key(), message.value(), message.timestamp()[1]
        exclusion = EXPECTED
        content: Sequence[tuple[str, bytes | None]] = headers or _EMPTY
        if self._rewriter.came_back(message, CopyOutcome()):
            exclusion = LOOP
        elif headers is UNREADABLE:
            exclusion = QUARANTINED
        elif headers is not None or self._rewriter.active:
            outcome = CopyOutcome()
            hop = f"{self._case.hop_prefix.decode()}{offset}"
            try:
                written = self._rewriter.rewrite(message, headers or [], hop, outcome)
            except RecordRefusedError:
                written, exclusion = None, QUARANTINED
            if written is None:
                exclusion = next((_DROPS[why] for why in outcome.dropped), exclusion)
            else:
                key, value = written.key, written.value
                content = without_last_hop(_plain(written.headers))[0]
        digest = content_digest(key, value, content, at if self._timed else NO_TIME)
        match = key_digest(key) if self._keyed else None
        return Fingerprint(offset, offset, digest, match, at, exclusion, False, value is None)


class TargetFingerprints:
    """Which source record each record of the target says it is, and what it holds."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._prefix = case.hop_prefix
        self._digits = len(self._prefix)
        self._timed = not case.facts.target.appends_time
        self._without_hop = FOREIGN_ALLOWED if case.facts.foreign_allowed else EXPECTED
        self._highest = -1
        self._keyed = case.mode == "latest"
        self._alias = case.facts.rules.source.encode()

    def fingerprints(self, scanned: Scanned) -> Iterator[Fingerprint | None]:
        """One per record; None for records outside of the interval that is judged."""
        for message, headers in zip(scanned.messages, scanned.headers, strict=True):
            yield self._fingerprint(message, headers)

    def _fingerprint(self, message: SourceMessage, headers: Headers | None) -> Fingerprint | None:
        case = self._case
        content: Sequence[tuple[str, bytes | None]] = _EMPTY
        origin, ours = self._only_hop(headers), True
        if origin < 0:
            content, hop = without_last_hop(headers or _EMPTY)
            origin, ours = self._origin(hop)
        if origin >= 0 and not self._inside(origin):
            return None
        out_of_order = False
        if origin >= 0:
            out_of_order = origin < self._highest and origin not in case.facts.replayed
            self._highest = max(self._highest, origin)
        key, value, at = message.key(), message.value(), message.timestamp()[1]
        # Without our hop it may be anyone's; its headers count as they are.
        kept = content if ours else headers or _EMPTY
        digest = content_digest(key, value, kept, at if self._timed else NO_TIME)
        match = key_digest(key) if self._keyed else None
        exclusion = EXPECTED if ours else self._without_hop
        return Fingerprint(
            message.offset(), origin, digest, match, at, exclusion, out_of_order, value is None
        )

    def _only_hop(self, headers: Headers | None) -> int:
        """The source offset in a record's one header, which is our one hop; -1 where it is not so.

        Most copies are of this kind, and it takes a third of the time to see it at once.
        """
        if headers is None or len(headers) != 1:
            return -1
        name, value = headers[0]
        if name != HOPS_HEADER or value is None or not value.startswith(self._prefix):
            return -1
        digits = value[self._digits :]
        # As our engine writes it: what only looks like an offset is looked at closely.
        plain = digits.isdigit() and digits[0] != _ZERO and len(digits) <= _DIGITS
        return int(digits) if plain else -1

    def _origin(self, hop: bytes | None) -> tuple[int, bool]:
        """The source offset a hop names, and whether this flow added it."""
        if hop is None:
            return -1, False
        if hop.startswith(self._prefix) and (digits := hop[len(self._prefix) :]).isdigit():
            return int(digits), True
        if self._case.facts.rules.provenance == "path" and hop.partition(b"/")[0] == self._alias:
            hops = parse_hops(hop)
            placed = hops is not None and hops[-1].topic is not None
            return -1, not placed or (hops is not None and belongs(hops[-1], self._case))
        return -1, False

    def _inside(self, origin: int) -> bool:
        case = self._case
        return case.mode == "latest" or case.source_from <= origin < case.cut


def _plain(headers: ProducedHeaders) -> Sequence[tuple[str, bytes | None]]:
    """Headers as they were built for the producer, as pairs of text and bytes."""
    pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
    return [
        (name, content.encode() if isinstance(content, str) else content) for name, content in pairs
    ]


def _batch(case: Case, side: int, rows: Sequence[Fingerprint]) -> pa.RecordBatch:
    count = len(rows)
    hashes = np.frombuffer(b"".join(row.digest for row in rows), "<i8").reshape(count, 2)
    offsets = np.fromiter((row.offset for row in rows), "i8", count)
    origins = np.fromiter((row.origin for row in rows), "i8", count)
    zeros = np.zeros(count, "i8")
    if case.mode == "origin":
        # A record of the target that names no origin matches nothing.
        match = np.stack([np.where(origins < 0, -1 - offsets, origins), zeros], axis=1)
    elif case.mode == "latest":
        joined = b"".join(row.match or b"" for row in rows)
        match = np.frombuffer(joined, "<i8").reshape(count, 2)
    else:
        match = hashes
    segments = np.zeros(count, "i4")
    if case.segments:
        bounds = [pair.source if side == SOURCE else pair.target for pair in case.segments]
        segments = np.fromiter((segment_of(bounds, int(at)) for at in offsets), "i4", count)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(count, case.number, "i4")),
            pa.array(np.full(count, side, "i4")),
            pa.array(np.ascontiguousarray(match[:, 0])),
            pa.array(np.ascontiguousarray(match[:, 1])),
            pa.array(segments),
            pa.array(offsets),
            pa.array(origins),
            pa.array(np.ascontiguousarray(hashes[:, 0])),
            pa.array(np.ascontiguousarray(hashes[:, 1])),
            pa.array(np.fromiter((row.at_ms for row in rows), "i8", count)),
            pa.array(np.fromiter((row.exclusion for row in rows), "i4", count)),
            pa.array(np.fromiter((row.out_of_order for row in rows), "?", count)),
            pa.array(np.fromiter((row.tombstone for row in rows), "?", count)),
        ],
        schema=SCHEMA,
    )
