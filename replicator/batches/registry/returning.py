"""Which records of a batch would go back to where they came from. Pure but for the registry's answer.

Copies made in whole batches are told by their producer id, all of a batch at once. Copies made record by
record carry a header, so a batch of an unknown producer is searched for the header's name, and only one
that holds it is opened.
"""

from collections.abc import Collection, Sequence

from replicator.batches.codec.found_batches import DamagedBatchError, FoundBatch
from replicator.batches.codec.header import CODEC_MASK, HEADER_BYTES, MAGIC
from replicator.batches.registry.producer_registry import SourceOf
from replicator.errors import StoredFormatError
from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import Arrivals
from replicator.wire.records.codecs import CODECS, decompress
from replicator.wire.records.record_batch import RawRecord, decode_batch

_NAME = HOPS_HEADER.encode()
_MAGIC_AT = 16


class ReturnGuard:
    """Of one lane in a flow whose records may come back."""

    def __init__(self, source_of: SourceOf, *, blocked: Sequence[str], arrivals: Arrivals) -> None:
        """``blocked`` are the aliases whose records must not be copied on."""
        self._source_of = source_of
        self._blocked = frozenset(blocked)
        self._arrivals = arrivals

    def returning(self, found: FoundBatch, topic: str, partition: int) -> Collection[int]:
        """Source offsets of the batch whose records must not be copied; empty for nearly all batches.

        Raises:
            DamagedBatchError: its records cannot be read.
            ReplicatorError: the registry cannot be read, so nothing may be copied now.
        """
        if found.data[_MAGIC_AT] != MAGIC:
            return ()  # of a time before headers, and before producer ids
        if self._source_of(found.producer_id) in self._blocked:
            return range(found.base_offset, found.last_offset + 1)
        place = f"{topic}/{partition}"
        try:
            if not may_hold_header(found):
                return ()
            return frozenset(
                record.offset
                for record in decode_batch(bytes(found.data))
                if self._returns(record, topic, partition)
            )
        except StoredFormatError as error:
            raise DamagedBatchError(error.message, place=place, offset=found.base_offset) from error

    def _returns(self, record: RawRecord, topic: str, partition: int) -> bool:
        ours = [(HOPS_HEADER, value) for name, value in record.headers if name == _NAME]
        return bool(ours) and not self._blocked.isdisjoint(
            self._arrivals.passed(ours, topic, partition)
        )


def may_hold_header(found: FoundBatch) -> bool:
    """Whether the header of copies made record by record may stand in a batch; no means no."""
    data = bytes(found.data)
    codec = CODECS[found.attributes & CODEC_MASK]
    return _NAME in (data if codec == "none" else decompress(codec, data[HEADER_BYTES:]))
