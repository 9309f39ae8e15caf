"""A source that gives out something which cannot be read, and finding out whether that is why nothing comes."""

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import ReplicatorError, SourceDamagedError
from replicator.topology.plan import ClusterPlan


def damaged(state: PartitionState, what: str) -> SourceDamagedError:
    """That the source gives out something at the partition's position which cannot be read."""
    place = f"{state.topic}/{state.partition}"
    return SourceDamagedError(
        f"what stands at offset {state.position} of {place} cannot be read: {what}",
        subject=place,
        remedy="Move the partition to a replica whose log is whole, or mend the disk. It is read again "
        "by itself, from the same offset; nothing behind it is copied before.",
    )


def found_damaged(
    source: ClusterPlan, state: PartitionState, *, client_id: str, seconds: float
) -> SourceDamagedError | None:
    """Reads the log itself at the position of a partition that stands still; None where it is whole. Blocking.

    Raises:
        ReplicatorError: the source does not answer.
    """
    # Here, because the protocol's codec takes half a second to import.
    from replicator.batches.registry.unreadable import why_unreadable

    why = why_unreadable(source, state.key, state.position, client_id=client_id, seconds=seconds)
    return damaged(state, why) if why else None


MOST_LOOKS = 3
"""Partitions of a lane that are looked at in one round: a look may take its whole time."""


def damages_of(
    source: ClusterPlan, still: list[PartitionState], *, client_id: str, seconds: float
) -> dict[PartitionState, ReplicatorError]:
    """Those of the first few partitions whose source log is damaged. Blocking; a silent source ends it."""
    found: dict[PartitionState, ReplicatorError] = {}
    for state in still[:MOST_LOOKS]:
        try:
            error = found_damaged(source, state, client_id=client_id, seconds=seconds)
        except ReplicatorError:
            break  # nobody knows: it stands still, and that is said
        if error is not None:
            found[state] = error
    return found
