"""Records of roles and of their changes; see ``replicator.control.records.pair_records`` for the rest.

``role`` stands in the control topic of each cluster of a link, the others in that of the cluster
which survives a change.
"""

from typing import Any, Literal

from replicator.control.records.base import Part, Record
from replicator.topology.roles import Role, RoleState


class RoleRecord(Record):
    """Who is active on a link since when; the highest ``(epoch, revision)`` visible counts."""

    KIND = "role"
    KEY = ("link",)
    link: str
    epoch: int
    revision: int = 0
    active: str
    state: RoleState
    since: int
    by: str
    reason: str = ""
    transition: str = ""

    def role(self) -> Role:
        """As the rules use it."""
        return Role(
            link=self.link,
            epoch=self.epoch,
            revision=self.revision,
            active=self.active,
            state=self.state,
            since_ms=self.since,
            by=self.by,
            reason=self.reason,
        )


class _OfTransition(Record):
    """Belongs to one transition of a link."""

    link: str
    id: str


class _OfSide(Record):
    """Holds of one cluster of a link since a time, by somebody's doing."""

    KEY = ("link", "cluster")
    link: str
    cluster: str
    at_ms: int
    by: str


class TransitionRecord(_OfTransition):
    """A transition as a whole. While ``open`` it is the link's lock, ``token`` names its runner.

    ``report`` is the object of the contract once it ended; ``options`` is what was asked for.
    """

    KIND = "transition"
    KEY = ("link", "id")
    kind: Literal["switchover", "failover", "failback"]
    state: Literal["open", "done", "rolled-back", "superseded"]
    source: str
    target: str
    home: str
    token: str
    at_ms: int
    by: str
    plan_hash: str = ""
    base_epoch: int = 0
    fencing: str = "none"
    options: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it
    report: dict[str, Any] | None = None


class StepRecord(_OfTransition):
    """One step of a transition: written before it as ``intent`` and after it with its evidence."""

    KIND = "step"
    KEY = ("link", "id", "step")
    step: str
    state: Literal["intent", "done"]
    at_ms: int
    by: str
    seconds: float = 0.0
    result: str = ""
    evidence: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it


class Denial(Part):
    """An ACL that the product added, and must take away again."""

    pattern: Literal["LITERAL", "PREFIXED"]
    name: str
    principal: str


class FenceRecord(_OfSide):
    """Which rules fence the writers of one cluster of a link; a tombstone says that they were removed.

    It says what to remove later, never that writers are fenced: that is read from the cluster.
    ``transition`` put the fence up in ``epoch``; empty and -1 in records of before they were noted.
    """

    KIND = "fence"
    method: Literal["acl", "command", "manual"]
    state: Literal["intent", "held"]
    transition: str = ""
    epoch: int = -1
    denials: tuple[Denial, ...] = ()


class ReturnProblem(Part):
    """A problem found on a cluster that returned, as it is stored and shown."""

    code: str
    subject: str
    detail: str
    remedy: str


class ReturnRecord(Record):
    """A cluster answers again after a failover; ``ends`` by topic and partition when it was first seen.

    It speaks of one epoch and means nothing in another. ``tail`` counts what it has beyond what was
    copied from it; ``fence`` says how its writers are fenced, or why they are not.
    """

    KIND = "return"
    KEY = ("link", "cluster")
    link: str
    cluster: str
    epoch: int
    at_ms: int
    ends: dict[str, list[int]] = {}  # noqa: RUF012  pydantic copies it
    tail: int = 0
    fence: str = ""
    problems: tuple[ReturnProblem, ...] = ()


class DrainedRecord(_OfSide):
    """On a link without an active side, nobody should use this cluster now; a tombstone ends it."""

    KIND = "drained"


class SightingRecord(Record):
    """Kept by a witness: a worker could reach a cluster at this time."""

    KIND = "sighting"
    KEY = ("cluster", "worker")
    cluster: str
    worker: str
    at_ms: int


class TopicContact(Part):
    """Ends of one source topic by partition when the source last answered, and its pace.

    -1 where a partition was not answered for.
    """

    topic: str
    ends: tuple[int, ...]
    records_per_second: float = 0.0


class ContactRecord(Record):
    """When a flow's source last answered, and where its logs ended then."""

    KIND = "contact"
    KEY = ("source", "link")
    source: str
    link: str
    at_ms: int
    topics: tuple[TopicContact, ...]


class SalvageRecord(_OfTransition):
    """How far the tail of one partition was put on the new side: written with those records."""

    KIND = "salvage"
    KEY = ("link", "id", "topic", "partition")
    topic: str
    partition: int
    next_offset: int
    records: int = 0
