"""Which engine copies a flow, and what keeps whole batches from it. Pure.

Whole batches carry no header: that they are copies is told by their producer id, which the producer
registry on the target knows. A flow that needs headers, or that looks into records, is copied record by
record; so are rings of three clusters and more, where a producer id tells the last hop alone.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.policy.values import LinkPolicy

Engine = Literal["records", "batches"]
WayBack = Literal["none", "batches", "records", "longer"]
"""How records of a flow may come back to their source over flows of the topology, of which some may only
run after a role change: not at all; over one flow that copies whole batches, or record by record; over
further clusters."""


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


def flow_engine(policy: LinkPolicy, *, comes_back: WayBack) -> FlowEngine:
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
