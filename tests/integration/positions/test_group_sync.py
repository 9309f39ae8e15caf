"""Group positions carried over between real clusters."""

import asyncio
import json
import time

import pytest
from confluent_kafka import Consumer
from producing import produce

from replicator.clock import SystemClock
from replicator.control.records.pair_records import QuarantineOutcome
from replicator.control.status.translator import open_translator
from replicator.identifiers import control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.log_writer import LogWriter
from replicator.offsets.groups.group_sync import GroupSync
from replicator.policy import values
from replicator.testing import commit_positions


@pytest.fixture
def syncing():
    """Syncs of the plan's pairs, each remembering its rounds; ``sync("east->west")`` runs one."""
    opened = []

    def start(plan):
        syncs = {}
        for pair in plan.pairs:
            translator = open_translator(plan, client_id="test-groups")
            opened.append(translator)
            syncs[pair.id] = GroupSync(plan, pair, translator=translator, clock=SystemClock())

        def sync(flow, **options):
            report = asyncio.run(syncs[flow].run_once(**options))
            return {group.group: group for group in report.groups}

        return sync

    yield start
    for translator in opened:
        translator.close()


def copies(log):
    return [(at, int(last.rsplit("/", 1)[1])) for at, last in log if last is not None]


def group_plan(pair, **link):
    return pair.topology(groups={"include": [f"{pair.name}*"]}, **link)


def test_a_group_that_moves_over_skips_nothing_and_reads_nothing_again(
    pair, replicating, syncing, run
):
    plan = group_plan(pair)
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 200)
    pair.write_transactions(pair.east, [50, -10, 50])
    replicating(expect={(pair.west, pair.topic, 0): 300})
    own = copies(pair.log_of(pair.west)[0])
    group = f"{pair.name}-billing"
    sync = syncing(plan)
    commit_positions(pair.east, group, {(pair.topic, 0): 120}, metadata="my note")
    code, text, errors = run("groups", "-f", pair.file, "-o", "json")
    assert code == 0, errors
    assert json.loads(text)["groups"][0]["state"] == "pending"
    found = sync("east->west")[group]
    assert (found.state, found.partitions[0].grade) == ("synced", "exact")
    truth = next(at for at, source in own if source >= 120)
    assert pair.committed(pair.west, group) == (truth, "my note")
    commit_positions(pair.east, group, {(pair.topic, 0): 230})
    assert sync("east->west")[group].partitions[0].outcome.action == "commit"
    moved = next(at for at, source in own if source >= 230)
    assert pair.committed(pair.west, group)[0] == moved
    assert sync("east->west")[group].partitions[0].outcome.action == "keep"
    code, text, _ = run("groups", "-f", pair.file, "-o", "json")
    shown = json.loads(text)["groups"][0]["partitions"][0]
    assert (shown["sourceOffset"], shown["targetOffset"]) == (230, moved)
    assert (shown["grade"], shown["recordsReread"], shown["refused"]) == ("exact", 0, None)
    assert "synced" in run("groups", group, "-f", pair.file)[1]


def test_records_put_back_from_quarantine_do_not_move_groups_past_others(
    pair, replicating, syncing
):
    plan = group_plan(pair)
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 300)
    replicating(expect={(pair.west, pair.topic, 0): 300})
    own = {source: at for at, source in copies(pair.log_of(pair.west)[0])}
    group = f"{pair.name}-billing"
    sync = syncing(plan)
    commit_positions(pair.east, group, {(pair.topic, 0): 100})
    sync("east->west")

    origin = ("replicator-hops", f"east/{pair.topic}/0/119".encode())
    produce(pair.west, pair.topic, [{"value": b"put back", "headers": [origin]}], partition=0)
    commit_positions(pair.east, group, {(pair.topic, 0): 60})
    sync("east->west")  # a round that sees the record, and does not know yet that it was put back
    outcome = QuarantineOutcome(
        id="one", source="east", topic=pair.topic, partition=0, offset=119, outcome="replayed",
        at_ms=1, by="me",
    )  # fmt: skip
    with LogWriter(plan.cluster("west"), control_topic(plan.topology), client_id="test") as control:
        control.write([outcome.encode()])
    commit_positions(pair.east, group, {(pair.topic, 0): 120})

    assert sync("east->west")[group].partitions[0].grade == "exact"
    assert pair.committed(pair.west, group)[0] == own[120]


def test_positions_never_move_back_unless_the_policy_says_so(pair, replicating, syncing):
    plan = group_plan(pair, sync={"groups": {"rewind": "follow"}})
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 100)
    replicating(expect={(pair.west, pair.topic, 0): 100})
    own = {source: at for at, source in copies(pair.log_of(pair.west)[0])}
    follow, never = syncing(plan), syncing(group_plan(pair))
    group = f"{pair.name}-billing"
    commit_positions(pair.east, group, {(pair.topic, 0): 80})
    for sync in (follow, never):
        sync("east->west")
    commit_positions(pair.east, group, {(pair.topic, 0): 30})
    refused = never("east->west")[group]
    assert refused.state == "refused"
    assert "rewind is 'never'" in refused.partitions[0].refused
    assert pair.committed(pair.west, group)[0] == own[80]
    follow("east->west")
    assert pair.committed(pair.west, group)[0] == own[30]


def test_an_active_group_is_left_alone_and_a_deleted_one_is_named(pair, replicating, syncing):
    plan = group_plan(pair)
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 50)
    replicating(expect={(pair.west, pair.topic, 0): 50})
    active, gone = f"{pair.name}-active", f"{pair.name}-gone"
    sync = syncing(plan)
    for group in (active, gone):
        commit_positions(pair.east, group, {(pair.topic, 0): 20})
    consumer = Consumer(
        {**pair.west.client_settings(), "group.id": active, "auto.offset.reset": "earliest",
         "enable.auto.commit": False}
    )  # fmt: skip
    consumer.subscribe([pair.topic])
    assert consumer.poll(30) is not None
    found = sync("east->west")
    assert found[active].state == "active-on-target"
    assert found[active].partitions[0].refused == "the group is active on the target"
    assert found[gone].state == "synced"
    consumer.close()
    assert sync("east->west")[active].state == "synced"
    pair.east.admin().delete_consumer_groups([gone])[gone].result(20)
    assert sync("east->west")[gone].state == "deleted"
    assert pair.committed(pair.west, gone)[0] >= 0
    assert gone not in sync("east->west"), "told once, or the list would grow without end"


def test_both_directions_settle_without_an_echo(pair, replicating, syncing):
    plan = group_plan(pair, shape="active-active", naming="identity")
    for cluster in (pair.east, pair.west):
        cluster.create_topic(pair.topic)
        pair.write(cluster, 60)
    replicating(expect={(pair.west, pair.topic, 0): 60, (pair.east, pair.topic, 0): 60})
    sync = syncing(plan)
    group = f"{pair.name}-billing"
    commit_positions(pair.east, group, {(pair.topic, 0): 45})
    sync("east->west")
    there = pair.committed(pair.west, group)[0]
    for _ in range(3):
        sync("west->east")
        sync("east->west")
    assert pair.committed(pair.east, group)[0] == 45
    assert pair.committed(pair.west, group)[0] == there
    _, end = pair.log_of(pair.west)
    commit_positions(pair.west, group, {(pair.topic, 0): end})  # it moved, and read everything
    sync("west->east")
    east = pair.committed(pair.east, group)[0]
    assert east > 45
    for _ in range(2):
        sync("east->west")
        sync("west->east")
    assert pair.committed(pair.east, group)[0] == east
    assert pair.committed(pair.west, group)[0] == end


def test_a_group_on_prefixed_copies_goes_to_the_original_and_the_other_way_round(
    pair, replicating, syncing
):
    plan = group_plan(pair, shape="active-active", naming="prefix")
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 90)
    copy = f"east.{pair.topic}"
    replicating(expect={(pair.west, copy, 0): 90})
    own = copies(pair.log_of(pair.west, copy)[0])
    sync = syncing(plan)
    home, away = f"{pair.name}-home", f"{pair.name}-away"
    commit_positions(pair.east, home, {(pair.topic, 0): 33})
    commit_positions(pair.west, away, {(copy, 0): own[70][0]})
    sync("east->west")
    sync("west->east")
    assert pair.committed(pair.west, home, copy)[0] == own[33][0]
    assert pair.committed(pair.east, away, pair.topic)[0] == 70


def new_protocol_member(cluster, group, topic):
    consumer = Consumer(
        {**cluster.client_settings(), "group.id": group, "group.protocol": "consumer",
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    consumer.subscribe([topic])
    return consumer


def test_a_group_of_the_new_protocol_moves_over_and_is_left_alone_while_it_works(
    pair, replicating, syncing
):
    plan = group_plan(pair)
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 50)
    replicating(expect={(pair.west, pair.topic, 0): 50})
    own = {source: at for at, source in copies(pair.log_of(pair.west)[0])}
    group = f"{pair.name}-billing"
    sync = syncing(plan)
    here = new_protocol_member(pair.east, group, pair.topic)
    read = [here.poll(30) for _ in range(20)]
    assert all(message is not None and message.error() is None for message in read)
    here.commit(message=read[-1], asynchronous=False)
    assert sync("east->west")[group].state == "synced"  # also while it works on the source
    here.close()
    assert pair.committed(pair.west, group)[0] == own[20]
    there = new_protocol_member(pair.west, group, pair.topic)
    first = there.poll(30)
    assert first is not None
    assert first.offset() == own[20]
    assert sync("east->west")[group].state == "active-on-target"
    there.close()


def test_hundreds_of_groups_that_all_moved_are_carried_over_within_an_interval(
    pair, replicating, syncing
):
    plan = group_plan(pair)
    partitions, names = 4, [f"{pair.name}-{number:03d}" for number in range(300)]
    pair.east.create_topic(pair.topic, partitions=partitions)
    for number in range(partitions):
        pair.write(pair.east, 100, partition=number)
    replicating(expect={(pair.west, pair.topic, number): 100 for number in range(partitions)})
    sync = syncing(plan)
    with ClusterAdmin(plan.cluster("east"), client_id="test") as east:
        for offset in (20, 60):
            places = {(pair.topic, number): (offset, "") for number in range(partitions)}
            east.commit_offsets(dict.fromkeys(names, places))
            begun = time.monotonic()
            found = sync("east->west")
            assert time.monotonic() - begun < values.GroupSync().interval_seconds
            assert {found[name].state for name in names} == {"synced"}
    with ClusterAdmin(plan.cluster("west"), client_id="test") as west:
        stands = west.committed_offsets(names)
    for number in range(partitions):
        # Lanes commit where they like, so a marker may stand before the record in one partition only.
        own = {source: at for at, source in copies(pair.log_of(pair.west, partition=number)[0])}
        at = {stands[name][pair.topic, number].offset for name in names}
        assert len(at) == 1
        assert own[59] < at.pop() <= own[60]
