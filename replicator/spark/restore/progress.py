"""How far a restore is: the records that its stored progress counts, on the target."""

from collections.abc import Callable, Sequence

from replicator.identifiers import TopicPartition, restores_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.spark.base.amounts import Amount
from replicator.spark.restore.selection import (
    PROGRESS_PARTITIONS,
    decode_progress,
    progress_key,
    progress_partition,
)
from replicator.spark.restore.task import CLIENT_ID, RestoreOrder

_ASK_SECONDS = 10.0


def restored_so_far(
    order: RestoreOrder, partitions: Sequence[TopicPartition], whole: Amount
) -> Callable[[], Amount]:
    """A question for the part of ``whole`` that is committed; what earlier runs restored counts too."""

    def ask() -> Amount:
        stored = read_compacted(
            order.target, restores_topic(order.topology), range(PROGRESS_PARTITIONS),
            client_id=CLIENT_ID, timeout_seconds=_ASK_SECONDS, past_open_transactions=True,
            known_to_exist=True,
        )  # fmt: skip
        records = 0
        for key in partitions:
            value = stored[progress_partition(*key)].get(progress_key(order.restore, *key))
            records += decode_progress(order.restore, *key, value).records
        return whole.part(records)

    return ask
