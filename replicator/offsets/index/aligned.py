"""Which copies are which records where nothing in them says so: by counting, between known pairs. Pure.

A lane writes what it reads in order and leaves nothing out. So between two records whose copies are known,
the records of the source and the copies on the target are the same ones, if they are as many and one of the
logs lost nothing to compaction. If they are not (compacted, expired, quarantined, repeated), nothing is
concluded.
"""

from collections.abc import Sequence

from replicator.batches.codec.stretch import Stretch
from replicator.offsets.index.runs import Run, Window, append_run


def aligned(
    source: Sequence[Stretch], target: Sequence[Stretch], *, start: int, end: int
) -> Window | None:
    """Everything of ours in ``[start, end)`` of the target log; None where the numbers differ.

    Args:
        source: the committed records of the stretch that were copied, in order.
        target: the committed copies in it, in order.
        start: target offset of the first copy.
        end: target offset behind the last one.
    """
    if sum(one.count for one in source) != sum(one.count for one in target):
        return None
    runs: list[Run] = []
    left = list(reversed(source))
    for copies in target:
        at, wanted = copies.first, copies.count
        while wanted:
            records = left.pop()
            count = min(wanted, records.count)
            append_run(runs, Run(records.first, at, count))
            at, wanted = at + count, wanted - count
            if records.count > count:
                left.append(Stretch(records.first + count, records.count - count))
    return Window(start, end, tuple(runs))
