"""The whole topology file: an object of `apiVersion`, `kind`, `metadata` and `spec`."""

from typing import Annotated, Literal

from pydantic import Field

from replicator.topology.spec.cluster_spec import ClusterSpec
from replicator.topology.spec.fields import Alias, Spec
from replicator.topology.spec.policy_spec import PolicySpec

API_VERSION = "replicator/v1"
KIND = "Topology"


class ActivePassive(PolicySpec):
    """One cluster takes writers, the other is its copy and can take over."""

    name: Alias
    """Name of the link, unique in the file."""
    shape: Literal["active-passive"]
    """One way, with roles that can be switched."""
    active: str
    """The cluster that takes writers at first."""
    passive: str
    """The cluster that is its copy."""


class ActiveActive(PolicySpec):
    """All clusters take writers; every ordered pair is a flow."""

    name: Alias
    """Name of the link, unique in the file."""
    shape: Literal["active-active"]
    """Every cluster to every other."""
    clusters: list[str] = Field(min_length=2)
    """Two or more clusters."""


class HubAndSpoke(PolicySpec):
    """One cluster in the middle: records are gathered there, or handed out from there, or both."""

    name: Alias
    """Name of the link, unique in the file."""
    shape: Literal["hub-and-spoke"]
    """Between a hub and each of its spokes."""
    hub: str
    """The cluster in the middle."""
    spokes: list[str] = Field(min_length=1)
    """The clusters around it."""
    direction: Literal["to-hub", "from-hub", "both"]
    """to-hub gathers, from-hub hands out."""


LinkSpec = Annotated[ActivePassive | ActiveActive | HubAndSpoke, Field(discriminator="shape")]


class Metadata(Spec):
    """What the topology is called."""

    name: Alias
    """Part of the names of control topics and groups; do not change it once it runs."""


class TopologySpec(Spec):
    """Clusters, what holds for every link, and links."""

    clusters: dict[Alias, ClusterSpec] = Field(min_length=1)
    """Every cluster by its alias: small letters, digits and dashes. An alias means one cluster for
    ever: records carry it."""
    defaults: PolicySpec | None = None
    """Any policy field, for every link."""
    links: list[LinkSpec] = Field(min_length=1)
    """What is replicated between which clusters."""


class Document(Spec):
    """One topology."""

    api_version: Literal["replicator/v1"]
    """Version of this format."""
    kind: Literal["Topology"]
    """What this file is."""
    metadata: Metadata
    """What the topology is called."""
    spec: TopologySpec
    """What is wanted."""
