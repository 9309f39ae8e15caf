"""Which engine copies a flow, and what keeps whole batches from it. Pure.

Whole batches carry no header: nothing on the target says of a record that it is a copy. So a flow that
needs one, or that looks into records, is copied record by record.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.policy.values import LinkPolicy

Engine = Literal["records", "batches"]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a flow cannot be copied in whole batches: the field that says so, one word, and a sentence."""

    field: tuple[str, ...]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FlowEngine:
    """The engine of a flow, and in one word why it is not the batches engine ("" where it is)."""

    engine: Engine
    reason: str = ""


def obstacles(
    *, filters: bool, transforms: bool, full_provenance: bool, by_spark: bool, comes_back: bool
) -> tuple[Obstacle, ...]:
    """What keeps whole batches from a flow.

    Args:
        filters: the flow drops records by rule.
        transforms: the flow changes records.
        full_provenance: the file asks for each record's place by name.
        by_spark: Spark runs the flow.
        comes_back: its records may come back to their source over flows of the topology, of which some
            may only run after a role change.
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
            comes_back, "engine", "cycle",
            "records could come back to their source, now or after a role change: no header stops them",
        ),
    )  # fmt: skip
    return tuple(
        Obstacle((field,), reason, message) for applies, field, reason, message in found if applies
    )


def flow_engine(policy: LinkPolicy, *, comes_back: bool) -> FlowEngine:
    """The engine of a flow whose policy was found valid; ``auto`` copies records in this release."""
    if policy.engine == "batches":
        return FlowEngine("batches")
    if policy.engine == "records":
        return FlowEngine("records", "asked")
    found = obstacles(
        filters=bool(policy.filters),
        transforms=bool(policy.transforms),
        full_provenance=False,
        by_spark=policy.runtime == "spark",
        comes_back=comes_back,
    )
    return FlowEngine("records", found[0].reason if found else "auto")
