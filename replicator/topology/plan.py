"""What is wanted, after validation: frozen, hashed, and free of the file's shape.

``compile`` makes a Plan from a topology file; everything else in the program reads only the Plan.

Words: a **link** is what the file declares; it expands into directed **flows** (one per ordered
pair of clusters). All flows of all links over the same ordered pair share that **pair**'s control
topics, membership group and lanes; each lane serves exactly one flow.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from replicator.errors import InputError
from replicator.identifiers import ClusterAlias, FlowId, LinkName, flow_id, parse_flow_id
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.copies.routes import leads_to
from replicator.policy.procedure import Procedure
from replicator.policy.values import LinkPolicy

Shape = Literal["active-passive", "active-active", "hub-and-spoke"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]

AWS_SIGNER = "aws_msk_iam_sasl_signer"
"""The module of AWS that makes the tokens of AWS_MSK_IAM; an extra."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret is found when it is needed: exactly one of the three is given.

    `literal` is the value itself; validation allows it for user names only, which are no secret.
    """

    env: str | None = None
    file: str | None = None
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class OAuthPlan:
    """Where tokens come from: exactly one of ``token_url``, ``token_file`` and ``token_command``."""

    token_url: str = ""
    client_id: SecretRef | None = None
    client_secret: SecretRef | None = None
    scope: str = ""
    ca: SecretRef | None = None
    token_file: str = ""
    token_command: tuple[str, ...] = ()
    extensions: tuple[tuple[str, str], ...] = ()


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
    oauth: OAuthPlan | None = None
    aws_region: str = ""
    """Of AWS_MSK_IAM; the region that the first bootstrap server's name tells, where not given."""

    @property
    def uses_tokens(self) -> bool:
        """Whether clients log in with a token; Kafka's mechanism is OAUTHBEARER then."""
        return self.mechanism in {"OAUTHBEARER", "AWS_MSK_IAM"}


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
    target), and the other spokes where a hub must not relay. ``role_version`` is the epoch and revision of
    the role under which the flow runs.
    """

    link: LinkName
    source: ClusterAlias
    target: ClusterAlias
    policy: LinkPolicy
    blocked: tuple[ClusterAlias, ...]
    role_version: tuple[int, int] = (0, 0)

    @property
    def id(self) -> FlowId:
        """The flow as people write it: ``east->west``."""
        return flow_id(self.source, self.target)


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """One link and the flows it expands to; ``active`` is None where the shape has none.

    ``active`` is the file's. ``standby`` are flows that rest in the link's present role: the way back
    of an active-passive link, until it turns around. ``procedure`` is what runs around that.
    """

    name: LinkName
    shape: Shape
    clusters: tuple[ClusterAlias, ...]
    active: ClusterAlias | None
    hub: ClusterAlias | None
    flows: tuple[FlowPlan, ...]
    standby: tuple[FlowPlan, ...] = ()
    procedure: Procedure = Procedure()  # noqa: RUF009  frozen, so one instance is safe


@dataclass(frozen=True, slots=True)
class PairPlan:
    """An ordered pair of clusters with every flow over it, in the order of the file's links.

    Without a ``topology`` a pair has no names of its own on the wire, and so no canaries.
    ``standby`` are flows over the pair that rest: what is on record for them is left as it is.
    """

    source: ClusterPlan
    target: ClusterPlan
    flows: tuple[FlowPlan, ...]
    topology: str = ""
    standby: tuple[FlowPlan, ...] = ()

    def same_flows(self, other: "PairPlan") -> bool:
        """Whether the same flows run and rest, under whatever epoch."""

        def ageless(flows: tuple[FlowPlan, ...]) -> tuple[FlowPlan, ...]:
            return tuple(replace(flow, role_version=(0, 0)) for flow in flows)

        return (self.source, self.target) == (other.source, other.target) and (
            ageless(self.flows), ageless(self.standby)
        ) == (ageless(other.flows), ageless(other.standby))  # fmt: skip

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

    def link(self, name: str) -> LinkPlan:
        """The link of that name.

        Raises:
            KeyError: when the topology has no such link.
        """
        for link in self.links:
            if link.name == name:
                return link
        raise KeyError(name)

    def arrivals(self, alias: str) -> Arrivals:
        """How records arrive on a cluster, over flows that run and flows that rest."""
        flows = (flow for link in self.links for flow in (*link.flows, *link.standby))
        namings = {(str(one.source), one.policy.naming) for one in flows if one.target == alias}
        return Arrivals(tuple(sorted(namings, key=str)))

    @property
    def flows(self) -> tuple[FlowPlan, ...]:
        """All flows of all links that run, in file order."""
        return tuple(flow for link in self.links for flow in link.flows)

    def in_cycle(self, flow: FlowPlan) -> bool:
        """Whether records of this flow could come back to its source over other flows.

        Names are not looked at: a record that keeps its header can never loop, so the only price of
        saying yes too often is that no record of the flow may lose its header.
        """
        arrows = ((other.source, other.target) for other in self.flows)
        return leads_to(arrows, flow.target, flow.source)

    def may_come_back(self, flow: FlowPlan) -> bool:
        """As ``in_cycle``, counting the ways back that rest until a role changes."""
        return leads_to(arrows(self.links), flow.target, flow.source)

    @property
    def pairs(self) -> tuple[PairPlan, ...]:
        """The ordered pairs over which any flow runs, in the order of first use."""
        grouped: dict[FlowId, list[FlowPlan]] = {}
        for flow in self.flows:
            grouped.setdefault(flow.id, []).append(flow)
        return tuple(self._pair(flows) for flows in grouped.values())

    @property
    def resting_pairs(self) -> tuple[PairPlan, ...]:
        """The ordered pairs that only resting flows would use; without running flows."""
        running = {flow.id for flow in self.flows}
        resting = {
            flow.id: flow for link in self.links for flow in link.standby if flow.id not in running
        }
        return tuple(replace(self._pair([flow]), flows=()) for flow in resting.values())

    def _pair(self, flows: list[FlowPlan]) -> PairPlan:
        first = flows[0]
        return PairPlan(
            self.cluster(first.source),
            self.cluster(first.target),
            tuple(flows),
            self.topology,
            tuple(flow for link in self.links for flow in link.standby if flow.id == first.id),
        )


def find_pair(plan: Plan, flow: str) -> PairPlan:
    """The pair behind ``source->target``.

    Raises:
        InputError: the topology has no such flow.
    """
    try:
        wanted = parse_flow_id(flow)
    except ValueError as error:
        raise InputError(str(error)) from error
    for pair in plan.pairs:
        if (pair.source.alias, pair.target.alias) == wanted:
            return pair
    raise InputError(
        f"the topology has no flow '{flow}'",
        remedy=f"Its flows: {', '.join(pair.id for pair in plan.pairs)}.",
    )


def arrows(links: Iterable[LinkPlan]) -> tuple[tuple[str, str], ...]:
    """Source and target of every flow, those that rest too."""
    return tuple(
        (flow.source, flow.target) for link in links for flow in (*link.flows, *link.standby)
    )
