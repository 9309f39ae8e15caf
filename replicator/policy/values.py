"""Frozen values that policies are made of; no rules here, the rules live in their own files.

They are what the topology file compiles to, what travels to the lane processes as JSON, and what
the pure rules take as arguments.
"""

from dataclasses import dataclass
from typing import Literal

NamingKind = Literal["identity", "prefix", "template"]
Delivery = Literal["exactly-once", "at-least-once"]
EngineChoice = Literal["auto", "records", "batches"]
Provenance = Literal["full", "path"]
Priority = Literal["critical", "normal", "bulk"]
OnRecordError = Literal["quarantine", "stop"]
OnTruncation = Literal["stop", "report"]
Runtime = Literal["workers", "spark"]

PRIORITIES: tuple[Priority, ...] = ("critical", "normal", "bulk")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which names a link takes: literals, globs, or ``regex:`` full matches; exclude wins."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Naming:
    """How a source topic is called on the target; ``template`` only for the template kind."""

    kind: NamingKind = "identity"
    template: str | None = None


@dataclass(frozen=True, slots=True)
class StartFrom:
    """Where a partition without a checkpoint starts; ``timestamp_ms`` only for the timestamp kind."""

    kind: Literal["earliest", "latest", "timestamp"] = "earliest"
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """Budget of a whole flow over all its workers; None means no limit on that axis."""

    bytes_per_second: int | None = None
    records_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class TopicSync:
    """What is carried over about topics besides their records."""

    configs: bool = True
    partitions: bool = True
    deletions: Literal["keep", "propagate"] = "keep"
    replication_factor: int | None = None
    """None is `auto`: the source's, at least 3, at most the target's brokers."""
    overrides: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupSync:
    """How consumer-group positions are carried over."""

    enabled: bool = True
    interval_seconds: float = 5.0
    rewind: Literal["never", "follow"] = "never"


@dataclass(frozen=True, slots=True)
class BulkSync:
    """Whether history is copied by Spark first; ``auto`` from ``threshold_bytes`` on."""

    mode: Literal["auto", "always", "never"] = "never"
    threshold_bytes: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A header that must be present, with this value when one is given."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class DropRule:
    """One `dropIf`: a record that matches every given condition is not copied."""

    headers: tuple[HeaderMatch, ...] = ()
    key_prefix: str | None = None
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    """Everything a link may decide about its flows, with the defaults of the file format."""

    topics: Selection
    groups: Selection
    naming: Naming = Naming()
    start_from: StartFrom = StartFrom()
    delivery: Delivery = "exactly-once"
    engine: EngineChoice = "auto"
    """In a plan never `auto`: what that chose."""
    engine_reason: str = ""
    """Why `auto` chose the records engine, in a word; `auto` where it chose whole batches."""
    commit_interval_seconds: float = 0.2
    lanes: int | None = None
    """None is `auto`: it follows partitions, workers and load."""
    provenance: Provenance = "full"
    single_provenance: Provenance = "full"
    """The same for records that are written one by one, beside the lanes: whole batches do not bind those."""
    throttle: Throttle = Throttle()
    priority: Priority = "normal"
    topic_priorities: tuple[tuple[str, Priority], ...] = ()
    sync_topics: TopicSync = TopicSync()
    sync_acls: bool = False
    sync_groups: GroupSync = GroupSync()
    discovery_interval_seconds: float = 5.0
    on_record_error: OnRecordError = "quarantine"
    on_truncation: OnTruncation = "stop"
    filters: tuple[DropRule, ...] = ()
    transforms: tuple[str, ...] = ()
    bulk_sync: BulkSync = BulkSync()
    runtime: Runtime = "workers"
    relay: bool = False
    mm2_compatibility: bool = False
    heartbeats_reserved: bool = False
    """Whether `heartbeats` and its copies are MirrorMaker 2's here, written by a link of the topology."""
