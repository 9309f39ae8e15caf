"""What is written into control topics of the pairs that copy into a cluster, and of their flows.

A control topic is a compacted log of facts and decisions. The key says which fact (``kind`` plus the
fields that identify it), the value says what holds now, a tombstone says that nothing holds any more.
"""

from typing import Literal

from replicator.control.records.base import Part, Record
from replicator.control.records.problem_part import ProblemPart
from replicator.errors import SourceDamagedError
from replicator.policy.values import Priority


class Binding(Record):
    """An alias means this cluster, since then; written into every cluster, never changed."""

    KIND = "binding"
    KEY = ("alias",)
    alias: str
    cluster_id: str
    at_ms: int


class Block(Part):
    """The lanes ``first`` to ``first + count - 1`` serve the flow of one link."""

    link: str
    first: int
    count: int

    @property
    def lanes(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + self.count)


class Layout(Record):
    """Which lanes serve which link. While ``changing`` no lane of the pair may copy.

    ``at_ms`` is when it was decided, and ``reason`` why; 0 and empty in records of releases that did not say it.
    """

    KIND = "layout"
    KEY = ("source",)
    source: str
    epoch: int
    state: Literal["stable", "changing"]
    blocks: tuple[Block, ...]
    total: int
    at_ms: int = 0
    reason: str = ""

    def block(self, link: str) -> Block | None:
        """The lanes of a link, None when it has none yet."""
        return next((block for block in self.blocks if block.link == link), None)

    def link_of(self, lane: int) -> str | None:
        """The link that a lane serves."""
        return next((block.link for block in self.blocks if lane in block.lanes), None)


class TopicRecord(Record):
    """One replicated topic; lanes work exactly on the ``active`` ones.

    ``partitions`` counts the source's, ``target_partitions`` the target's: lanes work on those that
    both have. ``activated`` says that lanes were ever told to copy it: then the target topic is
    never created a second time by itself, because what it held would be missing in silence.
    ``at_ms`` is when the state last changed. ``first_partitions`` is how many partitions there were when the
    flow was first applied: those from there on appeared later and are copied from their beginning, whatever
    ``startFrom`` says. None in records of releases that did not know it: all of them were there.
    """

    KIND = "topic"
    KEY = ("source", "link", "topic")
    source: str
    link: str
    topic: str
    target: str
    topic_id: str
    partitions: int
    target_partitions: int
    max_message_bytes: int = 1_048_588
    state: Literal["active", "refused", "gone"]
    problems: tuple[ProblemPart, ...] = ()
    priority: Priority = "normal"
    activated: bool = False
    at_ms: int = 0
    first_partitions: int | None = None

    def is_late(self, partition: int) -> bool:
        """Whether a partition appeared after the flow was first applied."""
        return self.first_partitions is not None and partition >= self.first_partitions

    @property
    def working_partitions(self) -> int:
        """How many partitions lanes work on."""
        return min(self.partitions, self.target_partitions) if self.state == "active" else 0


class Pause(Record):
    """An operator paused a flow, or one link, topic or partition of it; a tombstone resumes."""

    KIND = "pause"
    KEY = ("flow", "link", "topic", "partition")
    flow: str
    link: str | None = None
    topic: str | None = None
    partition: int | None = None
    at_ms: int
    by: str


class Lost(Part):
    """Source offsets given up, half open; ``to`` may be None when it was not known."""

    from_offset: int | None = None
    to_offset: int | None = None


class AcceptedGap(Record):
    """An operator accepted that source records of a partition are lost. Kept as a journal."""

    KIND = "gap"
    KEY = ("source", "topic", "partition")
    source: str
    topic: str
    partition: int
    token: str
    at_ms: int
    by: str
    problem: str = ""
    detail: str = ""
    lost: Lost = Lost()

    @property
    def unreadable(self) -> tuple[int, int] | None:
        """Where it is about damaged records that the source still has: these offsets are passed over."""
        begin, end = self.lost.from_offset, self.lost.to_offset
        if self.problem != SourceDamagedError.code or begin is None or end is None:
            return None
        return begin, end


class GapTaken(Record):
    """A lane gave source offsets up, by policy or on an operator's word. Kept as a journal."""

    KIND = "gap-taken"
    KEY = ("source", "topic", "partition", "id")
    source: str
    topic: str
    partition: int
    id: str
    at_ms: int
    detail: str
    lost: Lost


class BackfillRecord(Record):
    """Spark copies a partition: while it is not ``done``, no lane may work on it.

    ``start`` and ``end`` are the source offsets planned when it began, half open. ``run`` is the run
    that may copy; tasks of any other one refuse. ``releasing``: nobody may begin to copy, and a task
    that did is being fenced. ``done`` is written in the transaction of the last checkpoint, so a lane that
    sees it finds that checkpoint. A ``stream`` has no end.
    """

    KIND = "seed"
    KEY = ("source", "link", "topic", "partition")
    source: str
    link: str
    topic: str
    partition: int
    state: Literal["seeding", "releasing", "done"]
    purpose: Literal["history", "stream"] = "history"
    run: str = ""
    start: int = 0
    end: int = 0
    at_ms: int = 0
    by: str = ""
    keeps_latest: bool = False
    position: int = 0
    records: int = 0
    bytes: int = 0
    checksum: str = ""
    seconds: float = 0.0
    superseded: int = 0
    problem: str = ""


class LaneShare(Part):
    """One lane's part of the flow's budget; None means no limit on that axis."""

    bytes_per_second: int | None = None
    records_per_second: int | None = None


class Share(Record):
    """How the throttle of a link's flow is split over its lanes; lane numbers as text."""

    KIND = "share"
    KEY = ("source", "link")
    source: str
    link: str
    lanes: dict[str, LaneShare]


class OppositeTopologies(Record):
    """Other topologies that copy to the source from where the pair's flows lead, as their topics there say.

    ``unaware``: those whose workers may not look for copies of this topology yet.
    """

    KIND = "opposite"
    KEY = ("source",)
    source: str
    topologies: tuple[str, ...]
    unaware: tuple[str, ...] = ()
    at_ms: int


class ProblemRecord(Record):
    """The controller's current problems of one flow, so that ``status`` shows them without asking."""

    KIND = "problem"
    KEY = ("source", "link")
    source: str
    link: str
    problems: tuple[ProblemPart, ...]
    at_ms: int


class QuarantineOutcome(Record):
    """An operator replayed or discarded a quarantined record."""

    KIND = "quarantine"
    KEY = ("id",)
    id: str
    source: str
    topic: str
    partition: int
    offset: int
    outcome: Literal["replayed", "discarded"]
    at_ms: int
    by: str
