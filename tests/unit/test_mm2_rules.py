"""Names in MirrorMaker 2's way, what is worth a record, and whose topics heartbeats are."""

import pytest

from replicator.clock import SystemClock
from replicator.control.tasks.registry import tasks_of
from replicator.control.tasks.sync.mm2_heartbeats import mm2_heartbeat_task
from replicator.control.tasks.sync.mm2_offsets import checkpoints_of, syncs_of
from replicator.control.tasks.task import TaskContext
from replicator.mm2.topics.due import checkpoints_due, syncs_due
from replicator.mm2.topics.formats import Checkpoint, OffsetSync
from replicator.mm2.topics.names import (
    checkpoints_topic,
    offset_syncs_topic,
    onward_heartbeats,
    remote_topic,
)
from replicator.observability.snapshot import TaskMetrics
from replicator.offsets.groups.group_decision import GroupOutcomeDraft
from replicator.offsets.groups.group_report import GroupOutcome, PartitionOutcome, SyncReport
from replicator.offsets.index.index import OffsetIndex
from replicator.offsets.index.stored import StoredPartitions
from replicator.policy.copies.selection import is_internal_topic, select_topics
from replicator.topology.file.load import load_text

ALIASES = ("east", "west", "north")
FILE = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    east: {bootstrapServers: [east:9092]}
    west: {bootstrapServers: [west:9092]}
    north: {bootstrapServers: [north:9092]}
  links:
  - {name: l, shape: active-passive, active: east, passive: west, topics: {include: ['*']}, MORE}
  - {name: m, shape: active-passive, active: west, passive: north, topics: {include: ['*']}}
"""


def syncs(*pairs):
    return [OffsetSync("t", 0, *pair) for pair in pairs]


# Names


def test_internal_topics_are_named_as_mirrormaker_names_them():
    assert checkpoints_topic("east") == "east.checkpoints.internal"
    assert offset_syncs_topic("west") == "mm2-offset-syncs.west.internal"
    assert all(map(is_internal_topic, (checkpoints_topic("east"), offset_syncs_topic("west"))))


def test_remote_topics_follow_the_policy_and_heartbeats_are_always_prefixed():
    assert remote_topic("default", "east", "orders") == "east.orders"
    assert remote_topic("identity", "east", "orders") == "orders"
    for policy in ("default", "identity"):
        assert remote_topic(policy, "east", "heartbeats") == "east.heartbeats"


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("heartbeats", "east.heartbeats"),
        ("north.heartbeats", "east.north.heartbeats"),
        ("west.heartbeats", None),
        ("north.west.heartbeats", None),
        ("device.heartbeats", None),
        ("my-heartbeats", None),
        ("heartbeats.eu", None),
    ],
)
def test_heartbeats_go_on_hop_by_hop_and_never_back(topic, name):
    assert onward_heartbeats(topic, source="east", target="west", aliases=ALIASES) == name


def test_heartbeats_take_no_detour_to_a_cluster_they_reach_in_one_hop():
    ends = {"source": "east", "target": "west", "aliases": ALIASES}
    assert onward_heartbeats("north.heartbeats", **ends, direct=["east", "north"]) is None
    assert onward_heartbeats("north.heartbeats", **ends, direct=["east"]) is not None
    assert onward_heartbeats("heartbeats", **ends, direct=["east", "north"]) == "east.heartbeats"


# What is worth a record


def test_a_checkpoint_is_written_when_it_says_something_new():
    first = Checkpoint("g", "t", 0, 10, 12)
    other = Checkpoint("g", "t", 1, 10, 12)
    written = {first.key(): first}
    assert checkpoints_due([first, other], written) == [other]
    back = Checkpoint("g", "t", 0, 5, 6)
    assert checkpoints_due([back], written) == [back]


def test_offset_syncs_continue_where_the_topic_ends():
    known = syncs((0, 0), (10, 11), (20, 22), (30, 33), (40, 44))
    assert syncs_due([], None) == []
    assert syncs_due(known, None) == known[-3:]
    assert syncs_due(known, known[-1]) == []
    assert syncs_due(known, known[2]) == known[3:]
    assert syncs_due(known, known[0]) == known[-3:], "the newest are enough"


def test_a_source_that_was_recreated_is_recognised_by_one_lower_sync():
    known = syncs((0, 100), (10, 110))
    assert syncs_due(known, OffsetSync("t", 0, 5000, 90)) == known[-1:]
    assert syncs_due(known, OffsetSync("t", 0, 5, 900)) == known[-1:]


def test_positions_of_a_survey_become_checkpoints_where_they_could_be_translated():
    def part(partition, right):
        keep = GroupOutcomeDraft("keep")
        return PartitionOutcome(
            "orders", "east.orders", partition, 50, None, right, "exact", 0, 0, 0, 0, keep, "", "m"
        )

    report = SyncReport(
        "east", "east->west", 1,
        (
            GroupOutcome("g", "l", "pending", (part(0, 60), part(1, None))),
            GroupOutcome("h", "l", "failed", reason="no answer"),
        ),
    )  # fmt: skip
    assert checkpoints_of(report) == [Checkpoint("g", "east.orders", 0, 50, 60, "m")]


def test_the_index_of_a_partition_is_read_as_offset_syncs():
    index, stored = OffsetIndex("t", 0), StoredPartitions()
    for number in range(3):
        stored.fold(0, index.note(number * 10, number * 11, now=number * 2.0, at_ms=number))
    assert syncs_of(stored, "t", 0) == syncs((0, 0), (10, 11), (20, 22))
    assert syncs_of(stored, "t", 1) == []


# Who writes them


def tasks(more, pair):
    plan = load_text(FILE.replace("MORE", more)).plan
    chosen = next(each for each in plan.pairs if each.id == pair)
    figures = {flow.link: TaskMetrics() for flow in chosen.flows}
    context = TaskContext(plan, chosen, SystemClock(), "test", None, None, figures)
    built = tasks_of(context)
    for task in built:
        task.close()
    return {task.name: task for task in built if "MirrorMaker" in task.name}


def test_only_pairs_with_a_link_that_asks_for_it_speak_mirrormaker():
    asked = "mm2Compatibility: true, sync: {groups: {enabled: false, interval: 7s}}"
    found = tasks(asked, "east->west")
    assert {name: task.interval_seconds for name, task in found.items()} == {
        "MirrorMaker 2 heartbeats": 1.0,
        "MirrorMaker 2 checkpoints": 7.0,
    }
    assert tasks(asked, "west->north") == {}
    assert tasks("mm2Compatibility: false", "east->west") == {}


def test_two_ways_between_clusters_beat_once_on_each():
    both = (
        "  - {name: n, shape: active-active, clusters: [east, west], topics: {include: [t]}, MM2}\n"
    )
    head = FILE[: FILE.index("  - {name: l")]
    plan = load_text(head + both.replace("MM2", "mm2Compatibility: true")).plan
    for pair in plan.pairs:
        task = mm2_heartbeat_task(TaskContext(plan, pair, SystemClock(), "test", None, None, {}))
        (beat,) = task._heartbeats._beats
        assert beat[1:] == (pair.target.alias, pair.source.alias), "the way back's, on the source"
        task.close()


# Whose topics they are

NAMES = ("heartbeats", "west.heartbeats", "device.heartbeats", "orders")


def selected(more, link):
    plan = load_text(FILE.replace("MORE", more)).plan
    flow = next(flow for flow in plan.flows if flow.link == link)
    return select_topics(flow.policy, NAMES, blocked=flow.blocked, aliases=ALIASES)


@pytest.mark.parametrize("link", ["l", "m"])
def test_no_link_copies_heartbeats_where_any_link_writes_them(link):
    assert selected("mm2Compatibility: true", link) == ("device.heartbeats", "orders")


def test_heartbeats_are_a_topic_like_any_other_where_no_link_writes_them():
    assert selected("mm2Compatibility: false", "l") == tuple(sorted(NAMES))


def test_heartbeats_cannot_be_asked_for_by_name_where_they_are_mirrormakers():
    text = FILE.replace("MORE", "mm2Compatibility: true").replace("['*']}}", "[heartbeats]}}")
    result = load_text(text)
    assert [(p.path, "MirrorMaker 2's own topic" in p.message) for p in result.errors] == [
        ("spec.links[1].topics.include[0]", True)
    ]
