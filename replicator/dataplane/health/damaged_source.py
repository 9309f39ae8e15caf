"""A source that gives out something which cannot be read, and finding out whether that is why nothing comes."""

from collections.abc import Mapping

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import NotMovingError, ReplicatorError, SourceDamagedError
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


_ASK_SECONDS = 3.0


def why_still(
    source: ClusterPlan, ends: Mapping[PartitionState, int], *, client_id: str
) -> dict[PartitionState, ReplicatorError]:
    """Why partitions bring none of the records that the source has up to ``ends``. Blocking.

    Only what was read from the log itself is called damaged: a line that carries little, or a client that is stuck, shows
    itself in the same way.
    """
    found: dict[PartitionState, ReplicatorError] = {
        state: NotMovingError(
            f"{state.topic}/{state.partition} stands still at {state.position} while the "
            f"source has records up to {end}",
            subject=f"{state.topic}/{state.partition}",
            remedy="It is read anew by itself. If that repeats, look at the broker that "
            "leads it, at the line to it, and at fetch settings below the size of its records.",
        )
        for state, end in ends.items()
    }
    return found | damages_of(source, list(ends), client_id=client_id, seconds=_ASK_SECONDS)


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
