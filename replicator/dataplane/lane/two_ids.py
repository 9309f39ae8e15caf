"""Topics of which brokers of the source name two ids: for a moment after a topic is created again, or for good."""

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import NotMovingError
from replicator.identifiers import TopicPartition

DISAGREE_SECONDS = 5.0
"""Two answers of the source may name two ids of a topic for this long before it is reported."""


class TwoIds:
    """Since when the lane's reader and the brokers that were asked about a log have meant different topics."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, float] = {}

    def forget(self, key: TopicPartition) -> None:
        """They mean the same topic, or the partition no longer belongs to the lane."""
        self._since.pop(key, None)

    def lasting(self, state: PartitionState, read: str, *, now: float) -> NotMovingError | None:
        """Why the partition does not move, once the disagreement has lasted; None until then.

        Args:
            state: the partition, with the id of its topic where its log was asked about.
            read: the id that the lane's reader has.
            now: monotonic seconds.
        """
        lasted = now - self._since.setdefault(state.key, now)
        if lasted < DISAGREE_SECONDS:
            return None
        place = f"{state.topic}/{state.partition}"
        return NotMovingError(
            f"cannot read {place}: for {lasted:.0f} seconds brokers of the source have named two ids of its "
            f"topic, {read} to the lane's reader and {state.topic_id} where they were asked about its log",
            subject=place,
            remedy="A broker of the source lags behind the others, or somebody creates the topic again and again: "
            "look at each broker with 'kafka-topics.sh --describe'. It is tried again by itself.",
        )
