"""The drill file: what is rehearsed on which link, under which load, within which limits."""

from typing import Annotated, Literal

from pydantic import Field

from replicator.topology.spec.fields import Alias, Duration, Spec

KIND = "Drill"

Kind = Literal["worker-crash", "network-cut", "switchover", "failover"]
Command = Annotated[list[str], Field(min_length=1)]
"""A program and its arguments; no shell."""


class DrillMetadata(Spec):
    """What the drill is called."""

    name: Alias
    """Name of the drill; part of the ids of its reports and of the topic it writes."""


class LoadSpec(Spec):
    """The traffic of applications during the drill."""

    records_per_second: int = Field(default=200, ge=10, le=20_000)
    """Written to the source, over all partitions; default 200."""
    partitions: int = Field(default=4, ge=1, le=64)
    """Of the drill's own topic; default 4."""
    record_bytes: int = Field(default=200, ge=64, le=1_000_000)
    """Size of each value; default 200."""
    before: Annotated[float, Duration(least="1s", most="1h")] = 5.0
    """Steady state that must hold before the fault; default 5s."""
    after: Annotated[float, Duration(least="1s", most="1h")] = 5.0
    """Traffic after the recovery; default 5s."""
    topic: str | None = Field(default=None, min_length=1, max_length=249)
    """Real links only: an existing topic to write to, instead of one of the drill's own."""


class FaultSpec(Spec):
    """The fault; which fields apply depends on the kind."""

    duration: Annotated[float, Duration(least="1s", most="30m")] | None = None
    """network-cut: how long the cut lasts; 10s when not given."""
    side: Literal["source", "target"] | None = None
    """network-cut: which cluster the workers are cut off from; source when not given."""
    how: Literal["black-hole", "refuse", "kill"] | None = None
    """network-cut and failover: connections hang, connections are refused, or (failover) every broker
    is killed; black-hole when not given."""
    workers: int | None = Field(default=None, ge=1, le=8)
    """Sandbox only: how many workers run; 2 when not given."""
    begin: Command | None = None
    """Real links only: a program that begins the fault, for example `kubectl delete pod`."""
    end: Command | None = None
    """Real links only: a program that ends it; it runs whatever happens in between."""


class LimitsSpec(Spec):
    """What must hold for the drill to pass; at least one is given."""

    max_rto_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """Longest interruption."""
    max_lost_records: int | None = Field(default=None, ge=0)
    """Acknowledged records that the surviving cluster lacks in the end."""
    max_reread: int | None = Field(default=None, ge=0)
    """Records that a consumer group is given again though it had committed past them."""


class AbortSpec(Spec):
    """Real links only: when to stop at once; looked at every second, before the fault too."""

    max_lag_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """The flow's lag."""
    max_write_silence_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """No write of the drill is acknowledged for so long."""
    on_problems: list[str] | None = Field(default=None, min_length=1)
    """Codes of problems, as status shows them, that were not there when the drill began."""


class DrillSpec(Spec):
    """The drill itself."""

    link: Alias
    """A link of the topology; without a topology the sandbox makes one of this name."""
    flow: str | None = Field(default=None, min_length=1)
    """Which flow of the link, as source->target; needed where the link has more than one."""
    kind: Kind
    """worker-crash: a worker is killed; network-cut: workers lose a cluster; switchover: roles change
    as planned; failover: the active cluster is cut off and the other one promoted."""
    load: LoadSpec = LoadSpec()
    """The traffic of applications."""
    fault: FaultSpec = FaultSpec()
    """The fault."""
    limits: LimitsSpec
    """What must hold."""
    abort: AbortSpec = AbortSpec()
    """When to stop at once."""


class DrillDocument(Spec):
    """One drill."""

    api_version: Literal["replicator/v1"]
    """Version of this format."""
    kind: Literal["Drill"]
    """What this file is."""
    metadata: DrillMetadata
    """What the drill is called."""
    spec: DrillSpec
    """The drill itself."""
