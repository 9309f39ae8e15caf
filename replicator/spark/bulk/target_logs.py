"""Does the target still hold what the checkpoints say was copied? Asked before a bulk run."""

from collections.abc import Sequence

from replicator.control.store.state import ControlState
from replicator.errors import RefusedError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.index.stored import CheckpointsView
from replicator.topology.plan import PairPlan, Plan

CLIENT_ID = "replicator-seed"


def require_targets(
    plan: Plan, pair: PairPlan, control: ControlState, *, topics: Sequence[str] = ()
) -> None:
    """Checks the target topics of a flow: they exist, and reach as far as the offset map says.

    Raises:
        RefusedError: a topic was deleted, or deleted and created again since it was copied.
        ClusterError: the target does not answer.
    """
    records = [
        record
        for record in control.topics(pair.source.alias)
        if record.activated and (not topics or record.topic in topics)
    ]
    with ClusterAdmin(pair.target, client_id=CLIENT_ID) as target:
        existing = target.topic_partitions()
        keys: dict[TopicPartition, TopicPartition] = {
            (record.topic, number): (record.target, number)
            for record in records
            for number in range(min(record.working_partitions, existing.get(record.target, 0)))
        }
        ends = target.known_offsets(keys.values(), "latest", "read_uncommitted")
        view = CheckpointsView(
            plan.topology, pair.source.alias, pair.target, admin=target, client_id=CLIENT_ID
        )
        try:
            stored = view.refresh()
        finally:
            view.close()
    deleted = sorted({record.target for record in records if record.target not in existing})
    shorter = sorted(
        {
            place[0]
            for key, place in keys.items()
            if place in ends
            and any(e.pair.target >= ends[place] for e in stored.of(*key).entries.values())
        }
    )
    if deleted or shorter:
        parts = [f"{name} was deleted" for name in deleted]
        parts += [f"{name} was deleted and created again" for name in shorter]
        raise RefusedError(
            f"{'; '.join(parts)}: what the flow had copied into it is not copied again",
            subject=f"cluster:{pair.target.alias}",
            remedy="Restore it from an archive with 'replicator restore', or exclude the topic.",
        )
