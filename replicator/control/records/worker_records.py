"""What a worker says of itself in the control topic, and of what its lanes copy."""

from replicator.control.records.base import Part, Record
from replicator.control.records.problem_part import ProblemPart


class CanaryPart(Part):
    """The newest canary of a link's flow: when it came, how long it took; how many were lost."""

    at_ms: int
    round_trip_seconds: float
    lost: int = 0


class FlowRates(Part):
    """What one worker copies of one link's flow now; its controller tells of canaries too.

    ``lanes_behind`` counts the lanes that have been behind for a minute, though they copied all the time, and
    whose work could be divided. ``records_reason``: why one of its lanes copies record by record now, though whole
    batches are ordered, in a word of ``FlowEngine``.
    """

    link: str
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    problems: tuple[ProblemPart, ...] = ()
    canary: CanaryPart | None = None
    lanes_behind: int = 0
    records_reason: str = ""


class MemoryPart(Part):
    """What a worker may hold, in bytes: in all (None without a limit), of records, and of these in each lane."""

    limit_bytes: int | None = None
    records_bytes: int
    lane_bytes: int


class WorkerRecord(Record):
    """A worker says it is there; written about every 5 s, tombstoned on a clean exit.

    ``logins``: what it logs in with to the pair's clusters and that will not hold. ``memory`` is None where
    an older release, or a stream of Spark, says nothing of it. ``processes`` is how many processes its lanes may
    run in, 0 where it does not say. ``tells_batches``: its release tells copies in whole batches, which have no
    header, from other records; an older one does not.
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
    tells_batches: bool = False
