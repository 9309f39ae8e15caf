"""Whatever the clusters look like: doing what reconcile says ends with nothing left to do."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.control.lanes.checkpoint_moves import plan_moves
from replicator.control.lanes.lane_specs import lane_specs
from replicator.control.lanes.layout import lane_in
from replicator.control.reconcile.actions import (
    AlterConfigs,
    ArrangeLanes,
    CreateTopic,
    DeleteTopic,
    EraseRecord,
    GrowTopic,
    WriteRecord,
)
from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.control.reconcile.decide import Reconciler, reconcile
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelector
from replicator.control.reconcile.topics.unselected import MASS_DELETION, asked_by_name
from replicator.control.records.pair_records import Block, Layout, Pause, TopicRecord
from replicator.formats.checkpoint import Checkpoint
from replicator.policy.copies.topic_config import ConfigValue
from replicator.policy.values import LinkPolicy, Naming, Selection, TopicSync
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, PairPlan, Plan

NAMES = ("orders", "payments", "stock", "audit.tmp")
EAST = ClusterPlan("east", ("east:9092",))
WEST = ClusterPlan("west", ("west:9092",))

partitions = st.integers(1, 12)
configs = st.fixed_dictionaries(
    {
        "cleanup.policy": st.sampled_from(["delete", "compact"]).map(
            lambda value: ConfigValue(value, is_default=value == "delete")
        ),
        "retention.ms": st.sampled_from(["1000", "604800000"]).map(
            lambda value: ConfigValue(value, is_default=value == "604800000")
        ),
        "max.message.bytes": st.sampled_from(["1048588", "5000000"]).map(
            lambda value: ConfigValue(value, is_default=value == "1048588")
        ),
    }
)
topics = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(TopicFacts, st.sampled_from(["a", "b"]), partitions, st.integers(1, 3), configs),
)


@st.composite
def pairs(draw):
    links = draw(st.integers(1, 2))
    split = draw(st.integers(0, len(NAMES)))
    flows = []
    for number in range(links):
        names = NAMES[:split] if number == 0 else NAMES[split:]
        policy = LinkPolicy(
            topics=Selection(names if links == 2 else NAMES, ("*.tmp",)),
            groups=Selection(),
            naming=Naming(draw(st.sampled_from(["identity", "prefix"]))),
            lanes=draw(st.one_of(st.none(), st.integers(1, 5))),
            sync_topics=TopicSync(
                configs=draw(st.booleans()),
                partitions=draw(st.booleans()),
                deletions=draw(st.sampled_from(["keep", "propagate"])),
            ),
        )
        flows.append(FlowPlan(f"link-{number}", "east", "west", policy, ("west",)))
    return PairPlan(EAST, WEST, tuple(flows))


def view_of(topics, before=ClusterView()):  # noqa: B008  a view is frozen
    """The view of a cluster with these topics, after another view of it."""
    sizes = {name: facts.partitions for name, facts in topics.items()}
    return before.listed(sizes).described(topics)


def done(snapshot: PairSnapshot, actions) -> PairSnapshot:
    """The snapshot after a cluster that does everything it is told."""
    target = dict(snapshot.target.topics)
    log = []
    for action in actions:
        match action:
            case CreateTopic():
                target[action.topic] = TopicFacts(
                    f"id-{action.topic}",
                    action.partitions,
                    action.replication_factor,
                    {
                        "cleanup.policy": ConfigValue("delete", is_default=True),
                        "retention.ms": ConfigValue("604800000", is_default=True),
                        "max.message.bytes": ConfigValue("1048588", is_default=True),
                    }
                    | {
                        name: ConfigValue(value, is_default=False) for name, value in action.configs
                    },
                )
            case GrowTopic():
                held = target[action.topic]
                target[action.topic] = replace(held, partitions=action.to_partitions)
            case AlterConfigs():
                held = target[action.topic]
                settings_now = dict(held.configs)
                defaults = {
                    "cleanup.policy": "delete",
                    "retention.ms": "604800000",
                    "max.message.bytes": "1048588",
                }
                for item in action.settings:
                    settings_now[item.name] = (
                        ConfigValue(defaults[item.name], is_default=True)
                        if item.to_value is None
                        else ConfigValue(item.to_value, is_default=False)
                    )
                target[action.topic] = replace(held, configs=settings_now)
            case DeleteTopic():
                del target[action.topic]
            case ArrangeLanes():
                log.extend(record.tombstone() for record in action.erased)
                log.append(action.decision.layout.encode())
            case WriteRecord():
                log.append(action.record.encode())
            case EraseRecord():
                log.append(action.record.tombstone())
    return replace(
        snapshot,
        target=view_of(target, snapshot.target),
        control=snapshot.control.fold(log),
        misplaced=frozenset(),
    )


def answered(pair: PairPlan, snapshot: PairSnapshot) -> PairSnapshot:
    """The source does not know what it does not list, and says so when it is asked."""
    names = asked_by_name(pair, snapshot.control, snapshot.source.sizes, at_ms=snapshot.at_ms)
    return replace(snapshot, absences=dict.fromkeys(names))


def settled(pair: PairPlan, snapshot: PairSnapshot, rounds: int = 4) -> PairSnapshot:
    for _ in range(rounds):
        snapshot = answered(pair, snapshot)
        decision = reconcile(pair, snapshot)
        if not decision.actions:
            return snapshot
        chosen = decision.cluster_actions or decision.actions
        snapshot = done(snapshot, chosen)
    left = reconcile(pair, answered(pair, snapshot)).actions
    assert not left, left
    return snapshot


def observed(source, target) -> PairSnapshot:
    return PairSnapshot(
        at_ms=1_000_000,
        aliases=("east", "west"),
        source=view_of(source),
        target=view_of(target),
        target_brokers=3,
    )


def plan_of(pair: PairPlan) -> Plan:
    links = tuple(
        LinkPlan(flow.link, "active-passive", ("east", "west"), "east", None, (flow,))
        for flow in pair.flows
    )
    return Plan("retail", (EAST, WEST), links, "hash")


@given(pairs(), topics, topics)
def test_doing_what_was_decided_leaves_nothing_to_do(pair, source, target):
    settled(pair, observed(source, target))


@given(pairs(), topics, topics, topics)
def test_it_settles_again_after_the_source_changed(pair, source, target, later):
    first = settled(pair, observed(source, target))
    changed = replace(
        first,
        source=view_of(later, first.source),
        at_ms=first.at_ms + 60_000,
    )
    settled(pair, changed)


@given(pairs(), pairs(), topics)
def test_it_settles_again_after_the_file_changed(pair, edited, source):
    first = settled(pair, observed(source, {}))
    settled(edited, first)


@given(pairs(), topics, topics)
def test_every_active_partition_has_exactly_one_lane_and_exists_on_both_sides(pair, source, target):
    snapshot = settled(pair, observed(source, target))
    layout = snapshot.control.layout("east")
    specs = lane_specs(
        plan=plan_of(pair), pair=pair, control=snapshot.control, lanes=range(layout.total)
    )
    work = [(item.topic, item.partition) for spec in specs.values() for item in spec.work]
    assert len(work) == len(set(work))
    expected = {
        (record.topic, number)
        for record in snapshot.control.topics("east")
        for number in range(record.working_partitions)
    }
    assert set(work) == expected
    for spec in specs.values():
        assert layout.link_of(spec.lane) == spec.link
        for item in spec.work:
            assert item.partition < source[item.topic].partitions
            assert item.partition < snapshot.target.topics[item.target_topic].partitions


@given(pairs(), topics)
def test_a_target_topic_is_deleted_only_where_deletions_propagate(pair, source):
    first = settled(pair, observed(source, {}))
    emptied = replace(first, source=view_of({}, first.source), at_ms=first.at_ms + 1_000)
    shrunk = settled(pair, emptied)
    assert (
        shrunk.target.sizes.keys() == first.target.sizes.keys()
    )  # not before the grace has passed
    late = settled(pair, replace(shrunk, at_ms=shrunk.at_ms + 60_000))
    keeps = {flow.link for flow in pair.flows if flow.policy.sync_topics.deletions == "keep"}
    gone = Counter(r.link for r in shrunk.control.topics("east") if r.state == "gone")
    keeps |= {link for link, count in gone.items() if count >= MASS_DELETION}
    kept = {record.target for record in first.control.topics("east") if record.link in keeps}
    ever_copied = {record.target for record in first.control.topics("east") if record.activated}
    assert first.target.sizes.keys() - late.target.sizes.keys() == ever_copied - kept


blocks = st.lists(st.integers(1, 6), min_size=1, max_size=3)


def layout_of(counts, epoch=1):
    first, made = 0, []
    for number, count in enumerate(counts):
        made.append(Block(link=f"link-{number}", first=first, count=count))
        first += count
    return Layout(source="east", epoch=epoch, state="stable", blocks=tuple(made), total=first)


@settings(max_examples=60)
@given(blocks, blocks, st.dictionaries(st.sampled_from(NAMES), partitions), st.data())
def test_checkpoints_end_in_their_new_lane_once_with_nothing_lost(before, after, sizes, data):
    old, new = layout_of(before), layout_of(after)
    links = {name: f"link-{data.draw(st.integers(0, len(after) - 1))}" for name in sizes}
    stored = {number: {} for number in range(max(old.total, new.total))}
    wanted = {}
    for name, count in sizes.items():
        block = old.blocks[data.draw(st.integers(0, len(before) - 1))]
        for number in range(count):
            checkpoint = Checkpoint(name, number, offset=data.draw(st.integers(0, 99)))
            stored[lane_in(block, name, number)][checkpoint.key()] = checkpoint.value()
            wanted[checkpoint.key()] = (name, number, checkpoint.value())
    for _ in range(2):  # doing it twice equals once
        for move in plan_moves(stored, new, links):
            if move.value is None:
                stored[move.partition].pop(move.key, None)
            else:
                stored[move.partition][move.key] = move.value
    for key, (name, number, value) in wanted.items():
        lane = lane_in(new.block(links[name]), name, number)
        assert [place for place, records in stored.items() if key in records] == [lane]
        assert stored[lane][key] == value
    assert plan_moves(stored, new, links) == ()


@st.composite
def changes(draw):
    """One thing that may change between two rounds, as a function of snapshots."""
    names = st.sampled_from(NAMES)
    match draw(st.integers(0, 7)):
        case 0:
            later = draw(topics)
            return lambda seen: replace(seen, source=view_of(later, seen.source))
        case 1:
            later = draw(topics)
            return lambda seen: replace(seen, target=view_of(later, seen.target))
        case 2:
            pause = Pause(flow="east->west", topic=draw(names), at_ms=1, by="t")
            return lambda seen: replace(seen, control=seen.control.fold([pause.encode()]))
        case 3:
            found = (Problem("GROUP_REFUSED", "group:g", "refused", "look"),)
            return lambda seen: replace(seen, task_problems=found)
        case 4:
            refused = Problem("TARGET_REFUSES", "orders", "no", "look")
            keys = [f"create:west:{draw(names)}", f"delete:west:east.{draw(names)}"]
            return lambda seen: replace(seen, refusals=dict.fromkeys(keys, refused))
        case 5:
            created = frozenset({draw(names), f"east.{draw(names)}"})
            return lambda seen: replace(seen, just_created=created, refusals={})
        case 6:
            name = draw(names)
            other = TopicRecord(
                source="north", link="other", topic=name, target=name, topic_id="x",
                partitions=1, target_partitions=1, max_message_bytes=1, state="active",
                activated=True, at_ms=1,
            )  # fmt: skip
            entry = draw(st.sampled_from([other.encode(), other.tombstone()]))
            return lambda seen: replace(seen, control=seen.control.fold([entry]))
        case _:
            later_ms = draw(st.sampled_from([5_000, 40_000]))
            return lambda seen: replace(seen, at_ms=seen.at_ms + later_ms)


@given(pairs(), topics, topics, st.lists(st.tuples(changes(), st.booleans()), max_size=8))
def test_a_decision_from_changes_equals_one_from_scratch(pair, source, target, rounds):
    snapshot = observed(source, target)
    reconciler = Reconciler(TopicSelector(pair, snapshot.aliases))
    for change, do in rounds:
        decision = reconcile(pair, snapshot)
        assert reconciler.decide(snapshot) == decision
        assert reconciler.decide(replace(snapshot)) == decision
        if do:
            snapshot = done(snapshot, decision.cluster_actions or decision.actions)
            assert reconciler.decide(snapshot) == reconcile(pair, snapshot)
        snapshot = change(snapshot)
    assert reconciler.decide(snapshot) == reconcile(pair, snapshot)


class Unread(dict):
    """Facts that nobody may ask for."""

    def get(self, name):
        raise AssertionError(f"{name} is decided about again")


@given(pairs(), topics, topics)
def test_nothing_is_decided_again_where_nothing_changed(pair, source, target):
    snapshot = settled(pair, observed(source, target))
    reconciler = Reconciler(TopicSelector(pair, snapshot.aliases))
    reconciler.decide(snapshot)
    unread = replace(snapshot.target, topics=Unread())
    reconciler.decide(replace(snapshot, target=unread, at_ms=snapshot.at_ms + 5_000))
