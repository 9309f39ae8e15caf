"""The policy fields of a link, as the file spells them.

Every field may be left out: on `defaults` and on a link only what is given counts, and what is given
nowhere gets its default from `LinkPolicy`. So a field is None here unless the file gives it.
"""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from replicator.policy.capacity.lane_assignment import MAX_LANES
from replicator.policy.copies.naming import template_problem
from replicator.policy.values import (
    Delivery,
    EngineChoice,
    OnRecordError,
    OnTruncation,
    Priority,
    Provenance,
)
from replicator.topology.spec.fields import (
    Duration,
    GroupPattern,
    Size,
    Spec,
    Timestamp,
    TopicPattern,
    complaint,
    shown,
)
from replicator.topology.spec.procedure_spec import FailoverSpec, Fencing, HooksSpec
from replicator.topology.spec.sync_spec import BulkSyncSpec, SyncSpec

AUTO_LANES = 0
"""`lanes: auto` as it stands in a spec, where None already means not given."""


class TopicsSpec(Spec):
    """Which topics; exclude wins, and internal topics never match."""

    include: list[TopicPattern] | None = Field(default=None, min_length=1)
    """Names, globs (`*`, `?`), or `regex:` and an expression that matches the whole name."""
    exclude: list[TopicPattern] | None = None
    """Same; wins over include."""
    priorities: dict[TopicPattern, Priority] | None = None
    """Priority of single topics, by name or pattern; the first match counts."""


class GroupsSpec(Spec):
    """Which consumer groups' positions are carried over; `include: []` means none."""

    include: list[GroupPattern] | None = None
    """Names, globs, or `regex:` and an expression; default `["*"]`."""
    exclude: list[GroupPattern] | None = None
    """Same; wins over include; default `["console-consumer-*", "__*"]`."""


def _template(value: str) -> str:
    problem = template_problem(value)
    if problem is not None:
        raise complaint(f"'{value}': {problem}", "write for example '{source}.{topic}'")
    return value


class NamingTemplate(Spec):
    """Names on the target by a template."""

    template: Annotated[str, AfterValidator(_template)]
    """Text with `{topic}` and, separated from it by '.' or '_', `{source}`."""


class StartTimestamp(Spec):
    """Start at a point in time."""

    timestamp: Timestamp
    """The first record at or after this time, ISO 8601 with its zone."""


def _form(value: object) -> str:
    """Distinguishes the two spellings of a field, so that only one of them is checked."""
    return "word" if isinstance(value, str) else "mapping"


def _naming(value: object) -> object:
    if value not in ("identity", "prefix") and not isinstance(value, dict):
        raise complaint(
            f"'{shown(value)}' is not a naming",
            "write identity, prefix, or {template: '{source}.{topic}'}",
        )
    return value


def _start(value: object) -> object:
    if value not in ("earliest", "latest") and not isinstance(value, dict):
        raise complaint(
            f"'{shown(value)}' is not a start",
            "write earliest, latest, or {timestamp: 2026-01-01T00:00:00Z}",
        )
    return value


def _lanes(value: object) -> int:
    if value == "auto":
        return AUTO_LANES
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LANES:
        return value
    raise complaint(
        f"{shown(value)} is not a number of lanes", f"write auto, or a number from 1 to {MAX_LANES}"
    )


NamingSpec = Annotated[
    Annotated[Literal["identity", "prefix"], Tag("word")]
    | Annotated[NamingTemplate, Tag("mapping")],
    Discriminator(_form),
    BeforeValidator(_naming),
]
StartSpec = Annotated[
    Annotated[Literal["earliest", "latest"], Tag("word")]
    | Annotated[StartTimestamp, Tag("mapping")],
    Discriminator(_form),
    BeforeValidator(_start),
]
LanesSpec = Annotated[
    int,
    BeforeValidator(_lanes),
    WithJsonSchema(
        {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MAX_LANES}]}
    ),
]


class ThrottleSpec(Spec):
    """Budget of the whole flow, over all workers."""

    bytes_per_second: Annotated[int, Size(least="1KiB", most="1TB")] | None = None
    """Bytes of records per second."""
    records_per_second: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Records per second."""


class DropIf(Spec):
    """Conditions on a record; all that are given must hold."""

    header: dict[str, str | None] | None = Field(default=None, min_length=1)
    """Headers the record must have; an empty value asks only that the header is there."""
    key_prefix: str | None = Field(default=None, min_length=1)
    """What the key begins with."""
    tombstone: Literal[True] | None = None
    """The record has no value."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_nothing(cls, value: object) -> object:
        if value == {}:
            raise complaint("a filter without a condition", "give header, keyPrefix or tombstone")
        return value


class FilterSpec(Spec):
    """Records that are not copied."""

    drop_if: DropIf
    """What a record must look like to be left out."""


class PolicySpec(Spec):
    """Everything `defaults` and a link may say about flows; a link wins."""

    topics: TopicsSpec | None = None
    """Which topics; `include` is required."""
    groups: GroupsSpec | None = None
    """Which consumer groups."""
    naming: NamingSpec | None = None
    """How topics are called on the target; default identity for active-passive and from the hub,
    prefix for active-active and to the hub."""
    start_from: StartSpec | None = None
    """Where partitions start that exist when the flow is first applied; default earliest. Topics and
    partitions that appear later start at their beginning."""
    delivery: Delivery | None = None
    """Default exactly-once."""
    engine: EngineChoice | None = None
    """How records are copied; default auto: whole batches wherever a flow may, else records."""
    commit_interval: Annotated[float, Duration(least="10ms", most="60s")] | None = None
    """Longest a transaction stays open; default 200ms, and 40 round trips to the target where that is longer."""
    lanes: LanesSpec | None = None
    """Consumer and producer pairs of a flow; default auto: 8, fewer for fewer partitions, and more as partitions, workers and load grow."""
    provenance: Provenance | None = None
    """What the hop header carries: each hop's place, or the path alone; default full. Whole batches have none: `full` by name keeps records."""
    throttle: ThrottleSpec | None = None
    """Budget of the whole flow; default none."""
    priority: Priority | None = None
    """Who gets the budget first while catching up; default normal."""
    sync: SyncSpec | None = None
    """What is carried over besides records."""
    discovery_interval: Annotated[float, Duration(least="100ms", most="1h")] | None = None
    """How soon new topics, partitions and settings are seen; default 5s."""
    on_record_error: OnRecordError | None = None
    """A record the target will never take: kept aside, or the partition stops; default quarantine."""
    on_truncation: OnTruncation | None = None
    """Source data gone before it was copied: the partition stops until an operator accepts the gap,
    or the gap is recorded and replication goes on; default stop."""
    bulk_sync: BulkSyncSpec | None = None
    """History copied by Spark first; default never."""
    runtime: Literal["workers", "spark"] | None = None
    """Who runs the flow; default workers."""
    filters: list[FilterSpec] | None = None
    """Records that are not copied."""
    transforms: (
        list[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]] | None
    ) = None
    """Python functions, `package.module:function`, from record to record or None, in order."""
    fencing: Fencing | None = None
    """How writers are fenced on a side that gives up its role."""
    hooks: HooksSpec | None = None
    """What to run at each step of a role change."""
    failover: FailoverSpec | None = None
    """What may happen by itself when the active side is lost; default nothing."""
    relay: bool | None = None
    """Hub-and-spoke, both directions: whether the hub passes one spoke's records on to the other
    spokes; default false."""
    mm2_compatibility: bool | None = None
    """Also writes MirrorMaker 2 heartbeats, checkpoints and offset-syncs; default false."""
