"""What is written into control topics: one pydantic model per kind of record.

A control topic is a compacted log of facts and decisions. The key says which fact (``kind`` plus the
fields that identify it), the value says what holds now, a tombstone says that nothing holds any
more. Fields of newer releases are kept when a record is written again; records of kinds that this
release does not know are skipped, whatever their version; a known kind of an unknown version is refused,
because acting on half of a decision is worse than stopping. A new kind begins with version 1: releases before
this one refused any other.

Wire names are camelCase; times are milliseconds since the epoch under the name ``at``.
"""

from functools import lru_cache
from typing import Any, Literal

from pydantic import ValidationError

from replicator.control.records.base import Part, Record, unpacked, wire_name
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.role_records import (
    ContactRecord,
    DrainedRecord,
    FenceRecord,
    ReturnRecord,
    RoleRecord,
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.errors import SourceDamagedError, StoredFormatError
from replicator.kafka.clients.wire_json import decode_key, decode_value
from replicator.policy.values import Priority
from replicator.problem import Problem


class ProblemPart(Part):
    """A problem as it is stored and shown."""

    code: str
    subject: str
    detail: str
    remedy: str


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
        for block in self.blocks:
            if block.first <= lane < block.first + block.count:
                return block.link
        return None


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


class CanaryPart(Part):
    """The newest canary of a link's flow: when it came, how long it took; how many were lost."""

    at_ms: int
    round_trip_seconds: float
    lost: int = 0


class FlowRates(Part):
    """What one worker copies of one link's flow now; its controller tells of canaries too.

    ``lanes_behind`` counts the lanes that have been behind for a minute, though they copied all the time, and
    whose work could be divided.
    """

    link: str
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    problems: tuple[ProblemPart, ...] = ()
    canary: CanaryPart | None = None
    lanes_behind: int = 0


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


class MemoryPart(Part):
    """What a worker may hold, in bytes: in all (None without a limit), of records, and of these in each lane."""

    limit_bytes: int | None = None
    records_bytes: int
    lane_bytes: int


class WorkerRecord(Record):
    """A worker says it is there; written about every 5 s, tombstoned on a clean exit.

    ``logins``: what it logs in with to the pair's clusters and that will not hold. ``memory`` is None where
    an older release, or a stream of Spark, says nothing of it. ``processes`` is how many processes its lanes may
    run in, 0 where it does not say.
    """

    KIND = "worker"
    KEY = ("source", "id")
    source: str
    id: str
    at_ms: int
    host: str = ""
    pid: int = 0
    http: str = ""
    lanes: tuple[int, ...] = ()
    plan_hash: str = ""
    flows: tuple[FlowRates, ...] = ()
    logins: tuple[ProblemPart, ...] = ()
    memory: MemoryPart | None = None
    processes: int = 0


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


KINDS: dict[str, type[Record]] = {
    kind.KIND: kind
    for kind in (
        Binding, Layout, TopicRecord, Pause, AcceptedGap, WorkerRecord, Share, ProblemRecord,
        QuarantineOutcome, GapTaken, BackfillRecord, RoleRecord, TransitionRecord, StepRecord, FenceRecord,
        ContactRecord, SalvageRecord, SightingRecord, DrainedRecord, DrillRecord,
        ReturnRecord,
    )
}  # fmt: skip

Identity = tuple[str, tuple[Any, ...]]
"""Kind and key values: what a record is about, whether it holds or not."""


@lru_cache(maxsize=10_000)  # read again and again, and hardly ever changed
def decode_record(key: bytes, value: bytes | None) -> tuple[Identity, Record | None] | None:
    """Reads one control record; the record is None for a tombstone, all is None for other kinds.

    Raises:
        StoredFormatError: for an unknown version of a known kind, or content that is not ours.
    """
    where = decode_key(key, kinds=KINDS)
    kind = KINDS.get(str(where.get("kind")))
    if kind is None:
        return None
    fields = {name: item for name, item in where.items() if name not in {"kind", "v"}}
    identity = (kind.KIND, tuple(fields.get(wire_name(name)) for name in kind.KEY))
    if value is None:
        return identity, None
    content = {name: item for name, item in unpacked(decode_value(value)).items() if name != "v"}
    try:
        return identity, kind.model_validate({**content, **fields})
    except ValidationError as error:
        raise StoredFormatError(
            f"a '{kind.KIND}' record of the control topic cannot be read: {error.errors()[0]['msg']}",
            remedy="Something else wrote into the control topic; nothing was guessed.",
        ) from error


def problem_part(problem: Problem) -> ProblemPart:
    """A problem as control records carry it."""
    return ProblemPart(
        code=problem.code, subject=problem.subject, detail=problem.detail, remedy=problem.remedy
    )
