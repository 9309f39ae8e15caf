"""Answers about logs that come from the past: a broker that is cut off from the controllers goes on as it was.

It leads what it led, and its logs end where they ended. Taken for the present, that is a log that lost its last records.
So before a loss is believed, all brokers are asked what they know of its partition.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError, TransientBrokerError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan

if TYPE_CHECKING:
    from replicator.wire.requests.known_leaders import KnownLeaders


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered about a partition, and what was known of it before.

    ``topic_id`` and ``leader_epoch`` are those of the log that was described, ``known_id`` and ``known_epoch`` those
    of one that the lane has met; empty and -1 where they are not known. ``heard``: that the log was cut was said to a
    client, which may have asked any broker.
    """

    topic_id: str
    leader_epoch: int
    known_id: str = ""
    known_epoch: int = -1
    heard: bool = False

    @property
    def goes_back(self) -> bool:
        """Whether the lane has met another topic of that name, or a later leader."""
        if self.known_id and self.topic_id != self.known_id:
            return True
        return 0 <= self.leader_epoch < self.known_epoch


def stale_answers(
    cluster: ClusterPlan, answers: Mapping[TopicPartition, Answer], *, client_id: str
) -> dict[TopicPartition, ReplicatorError]:
    """Those that are not to be believed now, each with the reason; blocking.

    A log that goes back is believed once every broker says the same: then the cluster itself went back, as one that
    was restored does.

    Raises:
        ReplicatorError: no broker says what it knows.
    """
    if not answers:
        return {}
    # Here, because the protocol's codec takes half a second to import.
    from replicator.wire.requests.known_leaders import known_leaders

    known = known_leaders(cluster, answers.keys(), client_id=client_id)
    reasons = {place: why_stale(place, answer, known) for place, answer in answers.items()}
    return {
        place: TransientBrokerError(
            f"{why}: nothing is decided before they agree",
            subject=f"cluster:{cluster.alias}",
            remedy="Look whether a broker has lost its connection to the controllers: it answers clients, and knows "
            "nothing of what happened since. Restart it, or mend its network.",
        )
        for place, why in reasons.items()
        if why
    }


def why_stale(place: TopicPartition, answer: Answer, known: "KnownLeaders") -> str:
    """Why an answer is not to be believed, beside what all brokers know; empty where it is. Pure."""
    topic, name = place[0], f"{place[0]}/{place[1]}"
    newest = known.newest(place, answer.topic_id)
    if newest > answer.leader_epoch >= 0:
        return (
            f"the broker that answers for {name} leads it in epoch {answer.leader_epoch}, and another knows of "
            f"epoch {newest}"
        )
    if answer.heard and known.disagree(place):
        return f"a client heard that {name} was cut, and brokers disagree who leads it"
    others = sorted(known.topic_ids(place) - {answer.topic_id})
    if others:
        return (
            f"brokers disagree which topic {topic} is: one answers for id {answer.topic_id}, others know "
            f"{' and '.join(others)}"
        )
    if answer.goes_back and known.silent:
        verb = "does" if len(known.silent) == 1 else "do"
        return (
            f"what is answered for {name} is older than what was known of it, and {_names(known.silent)} {verb} "
            f"not answer"
        )
    return ""


def _names(brokers: Collection[str]) -> str:
    names = sorted(brokers)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
