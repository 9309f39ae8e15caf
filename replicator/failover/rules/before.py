"""What a link was before a transition: where a rollback returns to, and where a reverse flow begins. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from replicator.control.records.role_records import SalvageRecord
from replicator.identifiers import TopicPartition
from replicator.topology.roles import RoleState

REST = "rest"
"""Among the options of a transition: the state in which the link rests if it is rolled back."""

SEEN = "seen"
"""The epoch and the revision of the role that was checked before."""

REPLACES = "replaces"
"""Among the options of a failover: the id of the open transition that it ends."""


def rest_of(state: RoleState) -> RoleState:
    """The state to which a link returns whose transition from this state is rolled back.

    While it was promoted and the other cluster had not come back, nothing was copied to that cluster: a
    rollback must not pretend otherwise, for a failback would be refused, and nothing ever copied.
    """
    return "promoted" if state in {"promoted", "promoting", "salvaging"} else "mirroring"


@dataclass(frozen=True, slots=True)
class Promotion:
    """A transition promoted a cluster, or had begun to.

    Attributes:
        cluster: its alias.
        epoch: in which that transition began.
        rest: the state of the link before, see ``rest_of``.
        stays: whether the cluster had been active before as well.
        ends: where its logs ended then; empty where that was begun and never done.
    """

    cluster: str
    epoch: int
    rest: RoleState
    stays: bool = False
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReverseStart:
    """Where a flow begins: where it stands, or ``ends``; ``since`` is the epoch from which nothing came back."""

    since: int
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


def reverse_start(promotions: Iterable[Promotion], active: str) -> ReverseStart:
    """Where the flow out of the active cluster begins once the other one returns.

    Usually where the cluster's logs ended when it was promoted: what is before came from the other one. But where a
    link was failed over and back before anything was copied back, the cluster has records of its own
    from before, which the other one never got: the flow continues where it stood then.
    """
    unbroken: list[Promotion] = []
    for one in sorted(promotions, key=lambda each: each.epoch, reverse=True):
        unbroken.append(one)
        if one.rest != "promoted":
            break
    if not unbroken:
        return ReverseStart(0)
    first = unbroken[-1]
    if first.rest != "promoted" and (first.cluster == active) == first.stays:
        return ReverseStart(first.epoch)  # it was active and copied before all this
    own = [one for one in unbroken if one.cluster == active and one.ends]
    return ReverseStart(first.epoch, own[-1].ends if own else {})


def behind_injected(
    starts: Mapping[TopicPartition, int],
    standing: Mapping[TopicPartition, int],
    injected: Iterable[SalvageRecord],
) -> dict[TopicPartition, int]:
    """The starts, moved behind what a failback had already put on the other cluster as a tail."""
    found = dict(starts)
    for one in injected:
        place = (one.topic, one.partition)
        if one.next_offset > found.get(place, standing.get(place, 0)):
            found[place] = one.next_offset
    return found
