"""The looks into one target log for one translation: by marks, by counting, or both."""

from collections.abc import Callable, Sequence

from replicator.offsets.index.paths import ReplicatedPartition
from replicator.offsets.index.runs import Window
from replicator.offsets.translation.counted_copies import CountedCopies
from replicator.offsets.translation.forward import UnmarkedSpan
from replicator.offsets.translation.probe import PartitionProbe
from replicator.offsets.translation.sighting import CopyMark
from replicator.offsets.translation.translate import Read
from replicator.offsets.translation.translation import PartitionFacts


class Looks:
    """What stands there decides: marks where there are marks, and counting between them.

    Where a flow copies record by record, marks come first: a look is shorter than a count. Where it copies whole
    batches, a count comes first: nearly always it needs no look.
    """

    def __init__(
        self,
        copied: ReplicatedPartition,
        facts: PartitionFacts,
        *,
        replayed: frozenset[int],
        probe: PartitionProbe,
        counted: CountedCopies,
        in_time: Callable[[], bool],
    ) -> None:
        """``replayed`` are source offsets that were put back from quarantine; ``probe`` reads the target."""
        self._copied = copied
        self._facts = facts
        self._replayed = replayed
        self._probe = probe
        self._counted = counted
        self._in_time = in_time
        self._met = copied.whole_batches

    def look(self, read: Read) -> Window:
        """What marks tell of a stretch; it ends at the first copy that has none.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        copied = self._copied
        if not self._counted.needed(copied):
            mark = CopyMark(
                copied.source.alias, copied.topic, copied.partition, replayed=self._replayed
            )
            return self._probe.look(
                copied.target_topic, copied.partition, mark, read,
                keep_unmarked=not self._facts.cyclic,
            )  # fmt: skip
        window, met = self._counted.look(
            copied, read, self._facts, replayed=self._replayed, in_time=self._in_time
        )
        self._met = self._met or met
        return window

    def align(self, gap: UnmarkedSpan) -> Sequence[Window] | None:
        """See ``translate``; nothing before a copy without a mark was met."""
        if self._replayed or not self._copied.counted or not self._met:
            return ()
        return self._counted.between(self._copied, gap, self._facts, in_time=self._in_time)
