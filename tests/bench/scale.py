"""What decisions cost as topics grow: each step by itself, on 1,000, 10,000 and 100,000 topics.

    python tests/bench/scale.py [--topics 1000 10000] [--json]
    python tests/bench/scale.py --brokers [--topics 1000 5000] [--partitions 4]

Steps are pure functions; the figure is the CPU time of the fastest of some runs. ``--brokers`` runs pairs of real brokers instead
(1,000 topics unless told): a first apply, rounds that find nothing, and one status.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from replicator.control.lanes.lane_specs import lane_specs
from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.control.reconcile.decide import Reconciler
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelector
from replicator.control.records.pair_records import Block, Layout, Pause, TopicRecord
from replicator.control.status.facts import GroupMember, PairFacts
from replicator.control.status.report import status_report
from replicator.control.store.state import EMPTY, ControlState
from replicator.formats.checkpoint import Checkpoint
from replicator.policy.copies.topic_config import ConfigValue
from replicator.policy.values import LinkPolicy, Selection
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, PairPlan, Plan

PARTITIONS, LANES = 4, 4
TRIED_AGAIN = "tried again"
"""How often a step was; every other figure is a time."""
SETTINGS = {
    "cleanup.policy": ConfigValue("delete", is_default=True),
    "max.message.bytes": ConfigValue("1048588", is_default=True),
    "retention.ms": ConfigValue("604800000", is_default=True),
}
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Scene:
    """So many topics, copied from east to west; a second link from north wants the same names."""

    plan: Plan
    pair: PairPlan
    second: PairPlan
    names: tuple[str, ...]
    control: ControlState
    snapshot: PairSnapshot
    second_snapshot: PairSnapshot

    @property
    def record(self) -> TopicRecord:
        """The record of one topic in the middle."""
        return record(self.names[len(self.names) // 2])


def record(name: str) -> TopicRecord:
    """What is on record about a topic that is copied from east."""
    return TopicRecord(
        source="east", link="one", topic=name, target=name, topic_id="a", partitions=PARTITIONS,
        target_partitions=PARTITIONS, max_message_bytes=1_048_588, state="active",
        priority="normal", activated=True, at_ms=NOW_MS,
    )  # fmt: skip


def view(names: Sequence[str], settings: dict[str, ConfigValue]) -> ClusterView:
    """A cluster with these topics, all of them described."""
    facts = TopicFacts("a", PARTITIONS, 1, settings)
    return (
        ClusterView()
        .listed(dict.fromkeys(names, PARTITIONS))
        .described(dict.fromkeys(names, facts))
    )


def scene(topics: int) -> Scene:
    """The scene with so many topics, in a state in which nothing is to be done."""
    policy = LinkPolicy(Selection(("*",)), Selection(), lanes=LANES)
    clusters = tuple(ClusterPlan(name, (f"{name}:9092",)) for name in ("east", "north", "west"))
    east, north, west = clusters
    one = FlowPlan("one", "east", "west", policy, ("west",))
    two = FlowPlan("two", "north", "west", policy, ("west",))
    links = tuple(
        LinkPlan(flow.link, "active-passive", (flow.source, "west"), flow.source, None, (flow,))
        for flow in (one, two)
    )
    names = tuple(f"topic-{number:06d}" for number in range(topics))
    layout = Layout(
        source="east", epoch=1, state="stable", total=LANES,
        blocks=(Block(link="one", first=0, count=LANES),),
    )  # fmt: skip
    control = EMPTY.fold([each.encode() for each in (layout, *map(record, names))])
    room = ConfigValue(str(1_048_588 + 65_536), is_default=False)
    source, target = view(names, SETTINGS), view(names, {**SETTINGS, "max.message.bytes": room})
    snapshot = PairSnapshot(
        at_ms=NOW_MS, aliases=("east", "north", "west"), source=source, target=target,
        target_brokers=3, control=control,
    )  # fmt: skip
    pair = PairPlan(east, west, (one,))
    settled = Reconciler(TopicSelector(pair, snapshot.aliases))
    for _ in range(2):  # limits and priorities are recorded as they are found
        writes = [action.record.encode() for action in settled.decide(snapshot).actions]
        control = control.fold(writes)
        snapshot = replace(snapshot, control=control)
    return Scene(
        plan=Plan("retail", clusters, links, "hash"),
        pair=pair,
        second=PairPlan(north, west, (two,)),
        names=names,
        control=control,
        snapshot=snapshot,
        second_snapshot=snapshot,
    )


def facts_of(scene: Scene) -> PairFacts:
    """What a status reads of the pair, with every partition at its end."""
    keys = [(name, number) for name in scene.names for number in range(PARTITIONS)]
    ends = dict.fromkeys(keys, 100)
    return PairFacts(
        NOW_MS,
        control=scene.control,
        checkpoints={key: Checkpoint(*key, offset=100) for key in keys},
        source_starts=dict.fromkeys(keys, 0),
        source_ends=ends,
        target_ends=ends,
        members=(GroupMember("w-1", tuple(range(LANES))),),
    )


def measured(scene: Scene) -> dict[str, float]:
    """Milliseconds of each step."""
    record = scene.record
    changed = [record.model_copy(update={"at_ms": NOW_MS + 1}).encode()]
    pause = Pause(flow="east->west", topic=record.topic, at_ms=1, by="bench")
    paused = scene.control.fold([pause.encode()])
    name = record.topic
    facts = facts_of(scene)
    pair, plan = scene.pair, scene.plan
    keeps = Reconciler(TopicSelector(pair, scene.snapshot.aliases))
    keeps.decide(scene.snapshot)
    grown = replace(
        scene.snapshot,
        source=scene.snapshot.source.described({name: TopicFacts("b", PARTITIONS, 1, SETTINGS)}),
    )

    def one_changed() -> None:
        keeps.decide(grown)
        keeps.decide(scene.snapshot)

    def fresh(pair: PairPlan, snapshot: PairSnapshot) -> Callable[[], object]:
        return lambda: Reconciler(TopicSelector(pair, snapshot.aliases)).decide(snapshot)

    steps: dict[str, Callable[[], object]] = {
        "fold of one record": lambda: scene.control.fold(changed),
        "one question: is it paused": lambda: paused.paused("east->west", "one", name, 0),
        "lane specs with one pause": lambda: lane_specs(
            plan=plan, pair=pair, control=paused, lanes=range(LANES)
        ),
        "a round that finds nothing": lambda: keeps.decide(scene.snapshot),
        "a round with one topic recreated, and back": one_changed,
        "a first round that finds nothing": fresh(pair, scene.snapshot),
        "first apply of a second source": fresh(scene.second, scene.second_snapshot),
        "one status report": lambda: status_report(
            plan, {"east->west": facts}, now_ms=NOW_MS, flow="east->west"
        ),
    }
    return {name: 1000 * fastest(step) for name, step in steps.items()}


def fastest(step: Callable[[], object], *, runs: int = 5, enough_seconds: float = 2.0) -> float:
    """CPU seconds of the fastest run; fewer runs where each takes long."""
    best, spent = float("inf"), 0.0
    gc.collect()
    gc.disable()
    try:
        for _ in range(runs):
            began = time.process_time()
            step()
            took = time.process_time() - began
            best, spent = min(best, took), spent + took
            if spent > enough_seconds:
                break
    finally:
        gc.enable()
    return best


def as_table(rows: dict[int, dict[str, float]]) -> str:
    """The figures in markdown, one column per number of topics."""
    counts = list(rows)
    lines = [
        "| step | " + " | ".join(f"{count:,} topics" for count in counts) + " |",
        "|---|" + "---:|" * len(counts),
    ]
    lines.extend(
        f"| {step} | " + " | ".join(shown(step, rows[count][step]) for count in counts) + " |"
        for step in rows[counts[0]]
    )
    return "\n".join(lines)


def shown(step: str, figure: float) -> str:
    """A figure with its unit; how often a step was tried again has none."""
    return f"{figure:,.0f}" if step.endswith(TRIED_AGAIN) else f"{figure:,.2f} ms"


def main() -> None:
    """Measures what was asked for and prints it."""
    parser = argparse.ArgumentParser(description="What decisions cost as topics grow.")
    parser.add_argument("--topics", type=int, nargs="+")
    parser.add_argument(
        "--json", action="store_true", help="figures as JSON, times in milliseconds"
    )
    parser.add_argument("--partitions", type=int, default=4, help="of each topic on real brokers")
    parser.add_argument("--brokers", action="store_true", help="on pairs of real brokers")
    arguments = parser.parse_args()
    if arguments.brokers:
        from scale_brokers import measured_on_brokers

        rows = {
            count: measured_on_brokers(count, arguments.partitions)
            for count in arguments.topics or [1_000]
        }
    else:
        rows = {
            count: measured(scene(count)) for count in arguments.topics or [1_000, 10_000, 100_000]
        }
    print(json.dumps(rows, indent=2) if arguments.json else as_table(rows))


if __name__ == "__main__":
    main()
