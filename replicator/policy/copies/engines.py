"""Which engine copies a flow, and what keeps whole batches from it. Pure.

Whole batches carry no header: that they are copies is told by their producer id, which the producer
registry on the target knows. A flow that needs headers, or that looks into records, is copied record by
record; so are rings of three clusters and more, where a producer id tells the last hop alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from replicator.policy.values import LinkPolicy

Engine = Literal["records", "batches"]
AUTOMATIC = "auto"
"""The reason in a plan where ``auto`` chose whole batches."""

WayBack = Literal["none", "batches", "records", "longer"]
"""How records of a flow may come back to their source over flows of the topology, of which some may only
run after a role change: not at all; over one flow that copies whole batches, or record by record; over
further clusters."""


BatchesWait = Literal["", "older-workers", "other-topology"]
"""Who keeps whole batches waiting: workers of a release that does not know them, another topology that copies the
other way and may not know of this one yet, or nobody."""

RecordsReason = Literal["", "new-id", "no-clients", "refused-record"]
"""Why a lane copies record by record for now, though its orders are whole batches."""

NEW_ID: RecordsReason = "new-id"
"""Readers may not know yet that its producer id is registered: some seconds after it went over from records."""

NO_CLIENTS: RecordsReason = "no-clients"
"""The same, and the clients of whole batches cannot be opened since then."""

REFUSED_RECORD: RecordsReason = "refused-record"
"""The target refused a record of what was sent: the range is copied again, to find out which."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a flow cannot be copied in whole batches: the field that says so, one word, and a sentence."""

    field: tuple[str, ...]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FlowEngine:
    """The engine of a flow, and in one word why it is not the batches engine ("" where it is).

    The words: ``asked`` (by name), those of obstacles, ``delivery``, ``both-directions``, those of ``engine_now``, and
    those of ``RecordsReason``.
    """

    engine: Engine
    reason: str = ""


def obstacles(
    *, filters: bool, transforms: bool, full_provenance: bool, by_spark: bool, comes_back: WayBack
) -> tuple[Obstacle, ...]:
    """What keeps whole batches from a flow.

    Args:
        filters: the flow drops records by rule.
        transforms: the flow changes records.
        full_provenance: the file asks for each record's place by name.
        by_spark: Spark runs the flow.
        comes_back: how its records may come back to their source.
    """
    found = (
        (filters, "filters", "filters", "the batches engine cannot run filters"),
        (transforms, "transforms", "transforms", "the batches engine cannot run transforms"),
        (
            full_provenance, "provenance", "provenance",
            "whole batches carry no header, so provenance: full cannot be had",
        ),
        (by_spark, "runtime", "runtime", "Spark copies records, not whole batches"),
        (
            comes_back == "longer", "engine", "cycle",
            "records could come back to their source over a third cluster: no header stops them",
        ),
        (
            comes_back == "records", "engine", "cycle",
            "records could come back to their source over a flow that copies record by record",
        ),
    )  # fmt: skip
    return tuple(
        Obstacle((field,), reason, message) for applies, field, reason, message in found if applies
    )


def automatic_engine(
    obstacles: tuple[Obstacle, ...], *, exactly_once: bool, both_directions: bool
) -> FlowEngine:
    """What ``auto`` chooses: whole batches wherever nothing speaks against them.

    Args:
        obstacles: what keeps whole batches from the flow at all.
        exactly_once: the flow's delivery. Where records may stand twice, copies without marks cannot be counted.
        both_directions: the two directions run at the same time. Workers that take a new file one after the
            other must not disagree about the engine there, so there it is asked for by name.
    """
    if obstacles:
        return FlowEngine("records", obstacles[0].reason)
    if not exactly_once:
        return FlowEngine("records", "delivery")
    return FlowEngine("records", "both-directions") if both_directions else FlowEngine("batches")


def flow_engine(policy: LinkPolicy) -> FlowEngine:
    """The engine of a flow of a plan, where ``auto`` was decided."""
    if policy.engine == "batches":
        return FlowEngine("batches")
    return FlowEngine("records", policy.engine_reason or "asked")


def engine_now(policy: LinkPolicy, *, waits_for: BatchesWait) -> FlowEngine:
    """The engine of a flow while somebody at work would take copies without a header for records of others.

    What the file asks for by name it gets.
    """
    chosen = flow_engine(policy)
    if waits_for and chosen.engine == "batches" and policy.engine_reason == AUTOMATIC:
        return FlowEngine("records", waits_for)
    return chosen


def engine_of_lanes(ordered: FlowEngine, reasons: Iterable[str]) -> FlowEngine:
    """The engine of a flow as its lanes copy: record by record where one of them does, with its reason.

    Args:
        ordered: what their orders are.
        reasons: what the lanes' workers say, in words of ``RecordsReason``.
    """
    reason = next(filter(None, reasons), "")
    return FlowEngine("records", reason) if reason and ordered.engine == "batches" else ordered
