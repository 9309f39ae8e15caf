"""How far one micro-batch goes when it may not take everything. Pure."""

from collections.abc import Mapping

from replicator.identifiers import TopicPartition


def limited(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int | None
) -> dict[TopicPartition, int]:
    """Ends of a micro-batch of about ``most`` offsets, shared out by what each partition has.

    Every partition that has something gets something, so none starves behind a large one. Ends never
    go back below their start, even where the log was cut.
    """
    waiting = {key: max(0, end - starts.get(key, 0)) for key, end in ends.items()}
    total = sum(waiting.values())
    share = 1.0 if most is None or total <= most else most / total
    return {
        key: starts.get(key, 0) + min(left, -int(-left * share // 1))
        for key, left in waiting.items()
    }
