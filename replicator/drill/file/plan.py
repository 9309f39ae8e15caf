"""A drill as it will run: frozen, without the file's shape."""

import hashlib
from dataclasses import asdict, dataclass

import orjson

from replicator.drill.file.document import DrillDocument, Kind

ROLE_KINDS: frozenset[Kind] = frozenset({"switchover", "failover"})
DEFAULT_CUT_SECONDS = 10.0
DEFAULT_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Load:
    """Traffic; ``topic`` None is one of the drill's own. Times in seconds."""

    records_per_second: int
    partitions: int
    record_bytes: int
    before_seconds: float
    after_seconds: float
    topic: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault; ``begin`` and ``end`` are the operator's programs on a real link."""

    duration_seconds: float
    side: str
    how: str
    workers: int
    begin: tuple[str, ...]
    end: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """None is no limit."""

    max_rto_seconds: float | None
    max_lost_records: int | None
    max_reread: int | None


@dataclass(frozen=True, slots=True)
class Abort:
    """None is no condition."""

    max_lag_seconds: float | None
    max_write_silence_seconds: float | None
    on_problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drill:
    """One drill; ``flow`` is empty where the link has only one."""

    name: str
    link: str
    flow: str
    kind: Kind
    load: Load
    fault: Fault
    limits: Limits
    abort: Abort

    @property
    def hash(self) -> str:
        """SHA-256 of everything it says, hexadecimal."""
        return hashlib.sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).hexdigest()


def compile_drill(document: DrillDocument) -> Drill:
    """The drill of a valid document."""
    spec = document.spec
    load, fault, limits, abort = spec.load, spec.fault, spec.limits, spec.abort
    return Drill(
        name=document.metadata.name,
        link=spec.link,
        flow=spec.flow or "",
        kind=spec.kind,
        load=Load(
            records_per_second=load.records_per_second,
            partitions=load.partitions,
            record_bytes=load.record_bytes,
            before_seconds=load.before,
            after_seconds=load.after,
            topic=load.topic,
        ),
        fault=Fault(
            duration_seconds=fault.duration or DEFAULT_CUT_SECONDS,
            side=fault.side or "source",
            how=fault.how or "black-hole",
            workers=fault.workers or DEFAULT_WORKERS,
            begin=tuple(fault.begin or ()),
            end=tuple(fault.end or ()),
        ),
        limits=Limits(limits.max_rto_seconds, limits.max_lost_records, limits.max_reread),
        abort=Abort(
            abort.max_lag_seconds,
            abort.max_write_silence_seconds,
            tuple(abort.on_problems or ()),
        ),
    )
