"""Copies in a batch of a target's log: those that name their place, and those that have to be counted. Pure.

The records engine writes each record's place into a header, the batches engine leaves batches as they are. A
producer id does not tell the two apart: both engines write under their lane's. So a batch is searched for the
header first, and what a registered producer wrote without it was copied in whole batches.
"""

from dataclasses import dataclass

from replicator.batches.codec.found_batches import FoundBatch
from replicator.batches.codec.header import MAGIC
from replicator.batches.codec.stretch import Stretch
from replicator.batches.registry.batch_bounds import Hole, records_of
from replicator.batches.registry.returning import may_hold_header
from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import find_hops, hop_prefix
from replicator.wire.records.record_batch import RawRecord, decode_batch

_NAME = HOPS_HEADER.encode()
_MAGIC_AT = 16
_OTHERS, _SILENT = -1, -2

Place = tuple[int, int]
"""Source and target offset of one record."""


@dataclass(frozen=True, slots=True)
class BatchCopies:
    """What one batch holds of a source partition's copies.

    Attributes:
        pairs: copies that name their place, in order.
        counted: copies that do not, told by the batch's producer.
        silent: records that say nothing of where they come from, of a producer that is no flow's.
        own: copies of either kind whose producer is registered.
        holes: offsets of the batch of which some lack a record.
        records: how many records it has.
        decoded: how many of them were looked at one by one.
    """

    pairs: tuple[Place, ...] = ()
    counted: tuple[Stretch, ...] = ()
    silent: tuple[Stretch, ...] = ()
    own: tuple[Stretch, ...] = ()
    holes: tuple[Hole, ...] = ()
    records: int = 0
    decoded: int = 0


class MarkedCopies:
    """Of one source partition. Records ``replayed`` from quarantine stand behind newer ones: they are passed over."""

    def __init__(
        self, place: tuple[str, str, int], *, replayed: frozenset[int] = frozenset()
    ) -> None:
        """``place`` is the source's alias, the topic and the partition."""
        self._prefix = hop_prefix(*place)
        self._replayed = replayed

    def found(self, batch: FoundBatch, *, registered: bool) -> BatchCopies:
        """The copies in a batch of records; ``registered`` says whether a producer of its flows wrote it.

        Raises:
            StoredFormatError: the batch cannot be read.
        """
        part, _ = records_of([batch], position=batch.base_offset, counts=lambda _: True)
        records, count = tuple(part.records), sum(each.count for each in part.records)
        if batch.data[_MAGIC_AT] != MAGIC or not may_hold_header(batch):
            if registered:
                return BatchCopies(counted=records, own=records, holes=part.holes, records=count)
            return BatchCopies(silent=records, records=count)
        said = [
            (self._source_offset(each), each.offset) for each in decode_batch(bytes(batch.data))
        ]
        pairs = tuple(each for each in said if each[0] >= 0)
        if registered and len(pairs) < count:
            # Written by a client with headers that it found elsewhere: only the records engine marks all.
            return BatchCopies(
                counted=records, own=records, holes=part.holes, records=count, decoded=count
            )
        return BatchCopies(
            pairs=pairs,
            silent=tuple(Stretch(at, 1) for source, at in said if source == _SILENT),
            own=records if registered else (),
            holes=part.holes if pairs else (),
            records=count,
            decoded=count,
        )

    def _source_offset(self, record: RawRecord) -> int:
        value = find_hops(
            [(HOPS_HEADER, content) for name, content in record.headers if name == _NAME]
        ).value
        if value is None:
            return _SILENT
        last = value.rsplit(b" ", 1)[-1]
        if last.startswith(self._prefix):
            offset = int(last[len(self._prefix) :])
            return _OTHERS if offset in self._replayed else offset
        return _OTHERS if b"/" in last else _SILENT
