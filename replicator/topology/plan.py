"""What is wanted, after validation: frozen, hashed, and free of the file's shape.

``compile`` makes a Plan from a topology file; everything else in the program reads only the Plan.

Words: a **link** is what the file declares; it expands into directed **flows** (one per ordered
pair of clusters). All flows of all links over the same ordered pair share that **pair**'s control
topics, membership group and lanes; each lane serves exactly one flow.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.identifiers import ClusterAlias, FlowId, LinkName, flow_id
from replicator.policy.values import LinkPolicy

Shape = Literal["active-passive", "active-active", "hub-and-spoke"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret is found when it is needed: exactly one of the three is given.

    `literal` is the value itself; validation allows it for user names only, which are no secret.
    """

    env: str | None = None
    file: str | None = None
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class SecurityPlan:
    """How clients of one cluster connect. Holds references only, never a secret."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: SecretRef | None = None
    password: SecretRef | None = None
    ca: SecretRef | None = None
    certificate: SecretRef | None = None
    key: SecretRef | None = None
    key_password: SecretRef | None = None


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """One cluster: alias, where it is, how to connect, extra librdkafka settings as they are."""

    alias: ClusterAlias
    bootstrap_servers: tuple[str, ...]
    security: SecurityPlan = SecurityPlan()
    kafka: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """One directed flow of one link.

    ``blocked`` are the aliases whose appearance in a record's hops keeps it from being copied: the
    target always, the other members of an active-active link (they have flows of their own to the
    target), and the other spokes where a hub must not relay.
    """

    link: LinkName
    source: ClusterAlias
    target: ClusterAlias
    policy: LinkPolicy
    blocked: tuple[ClusterAlias, ...]

    @property
    def id(self) -> FlowId:
        """The flow as people write it: ``east->west``."""
        return flow_id(self.source, self.target)


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """One link and the flows it expands to; ``active`` is None where the shape has none."""

    name: LinkName
    shape: Shape
    clusters: tuple[ClusterAlias, ...]
    active: ClusterAlias | None
    hub: ClusterAlias | None
    flows: tuple[FlowPlan, ...]


@dataclass(frozen=True, slots=True)
class PairPlan:
    """An ordered pair of clusters with every flow over it, in the order of the file's links.

    Without a ``topology`` a pair has no names of its own on the wire, and so no canaries.
    """

    source: ClusterPlan
    target: ClusterPlan
    flows: tuple[FlowPlan, ...]
    topology: str = ""

    @property
    def id(self) -> FlowId:
        """The pair as people write it: ``east->west``."""
        return flow_id(self.source.alias, self.target.alias)


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole compiled topology; ``hash`` is the SHA-256 of its canonical JSON, hexadecimal."""

    topology: str
    clusters: tuple[ClusterPlan, ...]
    links: tuple[LinkPlan, ...]
    hash: str

    def cluster(self, alias: str) -> ClusterPlan:
        """The cluster of that alias.

        Raises:
            KeyError: when the topology has no such cluster.
        """
        for cluster in self.clusters:
            if cluster.alias == alias:
                return cluster
        raise KeyError(alias)

    @property
    def flows(self) -> tuple[FlowPlan, ...]:
        """All flows of all links, in file order."""
        return tuple(flow for link in self.links for flow in link.flows)

    @property
    def pairs(self) -> tuple[PairPlan, ...]:
        """The ordered pairs that any flow uses, in the order of first use."""
        grouped: dict[FlowId, list[FlowPlan]] = {}
        for flow in self.flows:
            grouped.setdefault(flow.id, []).append(flow)
        return tuple(
            PairPlan(
                self.cluster(flows[0].source),
                self.cluster(flows[0].target),
                tuple(flows),
                self.topology,
            )
            for flows in grouped.values()
        )
