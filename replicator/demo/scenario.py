"""The shapes the demo can show: clusters, one link, and where traffic is written. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.demo.shapes import Shape
from replicator.testing.checker.history import Flow
from replicator.testing.checker.routes import Naming, identity, prefix

TOPOLOGY = "demo"
TOPIC = "orders"
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """One shape, made concrete.

    Attributes:
        shape: its name.
        clusters: aliases.
        writers: clusters that applications write to.
        flows: ``source, target`` of every flow.
        link: the lines of the link that only this shape has.
        naming: topic names on targets, for the checker.
        moral: why it works, in one sentence.
    """

    shape: Shape
    clusters: tuple[str, ...]
    writers: tuple[str, ...]
    flows: tuple[tuple[str, str], ...]
    link: tuple[str, ...]
    naming: Naming
    moral: str

    @property
    def marked(self) -> bool:
        """Whether copies carry the hop header: they do where two directions run at the same time."""
        return self.shape is Shape.ACTIVE_ACTIVE

    def topics_on(self, cluster: str) -> tuple[str, ...]:
        """Topic names of a cluster at the end."""
        own = [TOPIC] if cluster in self.writers else []
        copied = [
            name
            for source, target in self.flows
            if target == cluster and (name := self.naming(source, TOPIC, target)) is not None
        ]
        return tuple(dict.fromkeys([*own, *copied]))

    def expected_flows(self) -> tuple[Flow, ...]:
        """The flows as the history checker takes them."""
        return tuple(Flow(source, target, relay=False) for source, target in self.flows)


SCENARIOS: Mapping[Shape, Scenario] = {
    Shape.ACTIVE_PASSIVE: Scenario(
        shape=Shape.ACTIVE_PASSIVE,
        clusters=("east", "west"),
        writers=("east",),
        flows=(("east", "west"),),
        link=("active: east", "passive: west"),
        naming=identity,
        moral="If west is ever written to and copied back, this is how loops are recognised.",
    ),
    Shape.ACTIVE_ACTIVE: Scenario(
        shape=Shape.ACTIVE_ACTIVE,
        clusters=("east", "west"),
        writers=("east", "west"),
        flows=(("east", "west"), ("west", "east")),
        link=("clusters: [east, west]", "naming: identity"),
        naming=identity,
        moral=(
            "The flow back finds its own target in the header and skips the record: "
            "one topic name on both clusters, and no record loops."
        ),
    ),
    Shape.HUB_AND_SPOKE: Scenario(
        shape=Shape.HUB_AND_SPOKE,
        clusters=("central", "east", "west"),
        writers=("east", "west"),
        flows=(("east", "central"), ("west", "central")),
        link=("hub: central", "spokes: [east, west]", "direction: to-hub"),
        naming=prefix,
        moral="On the hub every spoke has a topic of its own, named after it.",
    ),
}


def topology_text(scenario: Scenario, bootstrap_servers: Mapping[str, Sequence[str]]) -> str:
    """The topology file, as a person would write it."""
    lines = [
        "apiVersion: replicator/v1",
        "kind: Topology",
        "metadata:",
        f"  name: {TOPOLOGY}",
        "spec:",
        "  clusters:",
    ]
    for alias in scenario.clusters:
        servers = ", ".join(f'"{server}"' for server in bootstrap_servers[alias])
        lines += [f"    {alias}:", f"      bootstrapServers: [{servers}]"]
    lines += [
        "  links:",
        f"    - name: {TOPIC}",
        f"      shape: {scenario.shape}",
        *(f"      {line}" for line in scenario.link),
        f"      topics: {{include: [{TOPIC}]}}",
    ]
    return "\n".join(lines) + "\n"
