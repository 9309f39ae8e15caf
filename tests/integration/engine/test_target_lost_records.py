"""A target that lost what it had acknowledged gets it again: nothing is lost, nothing is doubled, told once."""

import os
import shutil
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from lane_lab import LaneLab, numbers, recreate
from producing import produce
from transaction_versions import use_transaction_version

from replicator.dataplane.lane import periodic_checks
from replicator.dataplane.takeover.lane_records import read_lane_records
from replicator.identifiers import HOPS_HEADER, checkpoints_topic, lane_transactional_id
from replicator.offsets.index import index
from replicator.policy.values import StartFrom

BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
LOST = "target lost records, they are copied again"
LARGE = b"x" * 4000


def losses(lane) -> list[str]:
    return [line.fields["detail"] for line in lane.log if line.event == LOST]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_copy_deleted_and_created_again_is_copied_again_from_the_start(lab, delivery):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(topic, range(300))
    lab.numbered(other, range(10))
    lab.copied(topic, other, delivery=delivery)
    recreate(lab.target, topic)
    lab.numbered(topic, range(300, 400))
    lane = lab.lane(topic, other, delivery=delivery)
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(400))
    assert lab.values(other) == numbers(range(10))
    assert len(losses(lane)) == 1
    assert "source offsets 0 to 299 are copied again" in losses(lane)[0]
    lane.stop()
    again = lab.copied(topic, other, delivery=delivery)
    assert losses(again) == []
    assert lab.checkpoints()[topic, 0].target_loss.count == 1


def put_back(lab, topic, copies):
    """Writes copies once more, as somebody who has saved them would."""
    records = ({"value": each.value, "headers": list(each.headers)} for each in copies)
    produce(lab.target, topic, records, partition=0)


def test_a_copy_created_again_under_a_running_lane_is_whole_once_more(lab):
    topic = lab.topic()
    lab.numbered(topic, range(300))
    lane = lab.lane(topic)
    lab.caught_up(lane)
    recreate(lab.target, topic)
    for start in range(300, 400, 10):
        lab.numbered(topic, range(start, start + 10))
    lab.until(lambda: lab.values(topic) == numbers(range(400)), "the copy, whole", lane)

    assert len(losses(lane)) == 1


def test_a_loss_is_told_once_where_a_session_ends_before_it_is_stored(lab):
    topic = lab.topic()
    lab.produce(topic, {"value": LARGE})
    lab.numbered(topic, range(300))
    lab.copied(topic)
    recreate(lab.target, topic, {"max.message.bytes": "3000"})
    lane = lab.lane(topic)  # its first session ends with the record that is too large by now
    lab.caught_up(lane)

    lab.until(lambda: lane.stats.aborts, "the abort in its figures", lane)
    assert lab.values(topic) == numbers(range(300))
    assert len(lab.quarantined()) == 1
    assert len(losses(lane)) == 1
    assert lab.checkpoints()[topic, 0].target_loss.count == 1


def test_a_quiet_lane_notices_that_its_copy_is_gone(lab, monkeypatch):
    monkeypatch.setattr(periodic_checks, "CHECK_TARGETS_SECONDS", 0.5)
    topic, late = lab.topic(), lab.topic()
    lab.numbered(late, range(50))
    lab.numbered(topic, range(20))
    lane = lab.lane(topic, late, start_from=StartFrom("latest"))
    lab.caught_up(lane)
    lab.numbered(topic, range(20, 40))
    lab.numbered(late, range(50, 60))
    lab.caught_up(lane)
    recreate(lab.target, late)
    lab.until(lambda: losses(lane), "the report", lane)
    lab.until(lambda: lab.values(late) == numbers(range(50, 60)), "the copy", lane)

    assert lab.values(topic) == numbers(range(20, 40))
    assert len(losses(lane)) == 1


def restore(lab, topic, copies):
    """Writes copies as a restore of the source's archive does: whatever made them, each names its place."""
    records = (
        {
            "value": each.value,
            "headers": [(HOPS_HEADER, b"east/%s/0/%d" % (topic.encode(), offset))],
        }
        for offset, each in enumerate(copies)
    )
    produce(lab.target, topic, records, partition=0)


@ENGINES
def test_a_topic_that_was_restored_goes_on_behind_the_last_copy_that_was_put_back(
    lab, engine, monkeypatch
):
    monkeypatch.setattr(index, "NOTE_SECONDS", 0.0)
    topic = lab.topic()
    lane = lab.lane(topic, **engine)
    for first in (0, 50):  # with a marker between, which no restore writes
        lab.numbered(topic, range(first, first + 50))
        lab.caught_up(lane)
    lane.stop()
    kept = lab.on_target(topic)[:60]
    recreate(lab.target, topic)
    restore(lab, topic, kept)
    lane = lab.lane(topic, **engine)
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(100))
    assert "source offsets 60 to 99 are copied again" in losses(lane)[0]
    lane.stop()
    # No entry of the offset map is left that says where copies stood before.
    copies = {seen.offset: seen.value for seen in lab.on_target(topic)}
    stored = index.decode_index(read_lane_records(lane.spec, client_id="lab"))[topic, 0]
    assert [copies[each.pair.target] for each in stored] == [
        b"%d" % each.pair.source for each in stored
    ]


def test_copies_that_carry_no_positions_stop_their_partition_instead_of_being_guessed(lab):
    topic = lab.topic()
    lab.numbered(topic, range(20))
    lab.copied(topic, provenance="path")
    kept = lab.on_target(topic)[:5]
    recreate(lab.target, topic)
    put_back(lab, topic, kept)
    lane = lab.lane(topic, provenance="path")
    lab.until(lambda: lane.problem(topic) == "TARGET_REGRESSED", "the stop", lane)
    lab.numbered(topic, range(20, 30))
    lane.update(work=lab.work(topic, accept_gap="token-1"))
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(5), range(20, 30))
    assert len(lane.gaps) == 1


def test_a_copy_without_positions_that_was_recreated_empty_is_copied_from_the_start(
    lab, monkeypatch
):
    monkeypatch.setattr(periodic_checks, "CHECK_TARGETS_SECONDS", 1.0)
    topic = lab.topic()
    lab.numbered(topic, range(20))
    lab.copied(topic, provenance="path")
    kept = lab.on_target(topic)[:5]
    recreate(lab.target, topic)
    put_back(lab, topic, kept)
    lane = lab.lane(topic, provenance="path")
    lab.until(lambda: lane.problem(topic) == "TARGET_REGRESSED", "the stop", lane)
    recreate(lab.target, topic)  # as the problem's remedy says
    lab.until(lambda: not lane.problem(topic), "the end of the stop", lane)
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(20))
    assert not lane.gaps


@pytest.mark.slow
@ENGINES
def test_a_disk_restored_from_yesterday_gets_the_records_since(east, clusters, unique, engine):
    (west,) = clusters("west")
    lab = LaneLab(east, west, name=unique)
    topic = lab.topic()
    lab.numbered(topic, range(300))
    lab.copied(topic, **engine)
    data = west.brokers[0].data
    yesterday = data.parent / "yesterday"
    west.kill(0)
    shutil.copytree(data / f"{topic}-0", yesterday)
    west.restart(0)
    lab.numbered(topic, range(300, 600))
    lab.copied(topic, **engine)
    west.kill(0)
    shutil.rmtree(data / f"{topic}-0")
    shutil.copytree(yesterday, data / f"{topic}-0")
    west.restart(0)
    # Somebody else's records make the log as long as it was.
    produce(west, topic, [b"other"] * 400, partition=0)
    lab.numbered(topic, range(600, 700))
    lane = lab.lane(topic, **engine)
    try:
        lab.caught_up(lane)

        ours = [value for value in lab.values(topic) if value != b"other"]
        assert ours == numbers(range(700))
        assert "source offsets 300 to 599 are copied again" in losses(lane)[0]
    finally:
        lab.close()


@pytest.mark.slow
def test_a_disk_that_lost_every_copy_gets_all_of_them(east, clusters, unique):
    """Its log begins at 0, and its topic is not compacted: neither retention nor compaction took them."""
    (west,) = clusters("west")
    lab = LaneLab(east, west, name=unique)
    topic = lab.topic()
    data = west.brokers[0].data
    west.kill(0)
    shutil.copytree(data / f"{topic}-0", data.parent / "empty")
    west.restart(0)
    lab.numbered(topic, range(300))
    lab.copied(topic)
    west.kill(0)
    shutil.rmtree(data / f"{topic}-0")
    shutil.copytree(data.parent / "empty", data / f"{topic}-0")
    west.restart(0)
    produce(west, topic, [b"other"] * 400, partition=0)
    lane = lab.lane(topic)
    try:
        lab.caught_up(lane)
        ours = [value for value in lab.values(topic) if value != b"other"]
        assert ours == numbers(range(300))
        assert "source offsets 0 to 299 are copied again" in losses(lane)[0]
    finally:
        lab.close()


@pytest.mark.slow
@ENGINES
@pytest.mark.parametrize(
    ("kept", "others"), [(500, 0), (500, 800), (0, 1500)], ids=["", "others", "others alone"]
)
@pytest.mark.parametrize("running", [True, False])
def test_an_unclean_election_on_the_target_costs_nothing(  # noqa: PLR0917 - fixtures
    east, clusters, unique, running, kept, others, engine
):
    """With some of the lane's copies left or none, and with others who make the log as long as it was, or longer."""
    (west,) = clusters("west", brokers=3)
    lab = LaneLab(east, west, name=unique)
    topic = f"t.{unique}"
    leader, follower = 1, 2
    east.create_topic(topic)
    new = NewTopic(
        topic,
        num_partitions=1,
        replica_assignment=[[leader, follower]],
        config={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    west.admin().create_topics([new])[topic].result(30)
    lab.prepare()
    lab.numbered(topic, range(kept))
    lane = lab.lane(topic, **engine)
    lab.caught_up(lane)
    try:
        west.kill(follower)
        lab.numbered(topic, range(kept, 1000))  # known to the leader alone
        lab.caught_up(lane)
        if not running:
            lane.stop()
        west.kill(leader)
        west.restart(follower)
        # The log may be longer than before by the time that the lane writes into it again.
        produce(west, topic, [b"other"] * others, partition=0)
        lab.numbered(topic, range(1000, 1100))
        if not running:
            lane = lab.lane(topic, **engine)

        def ours():
            return [value for value in lab.values(topic) if value != b"other"]

        lab.until(lambda: ours() == numbers(range(1100)), "the whole copy", lane)
        assert len(losses(lane)) == 1
    finally:
        lab.close()


@pytest.mark.slow
@ENGINES
def test_a_lost_copy_of_records_that_several_leaders_wrote_is_made_anew(
    clusters, west, unique, engine
):
    (east,) = clusters("east")
    lab = LaneLab(east, west, name=unique)
    topic = lab.topic()
    for start in (0, 100):
        lab.numbered(topic, range(start, start + 100))
        lab.copied(topic, **engine)
        east.kill(0)
        east.restart(0)  # another leader epoch
    lab.numbered(topic, range(200, 210))
    lab.copied(topic, **engine)
    recreate(lab.target, topic)
    lane = lab.lane(topic, **engine)
    try:
        lab.caught_up(lane)
        assert lab.values(topic) == numbers(range(210))
        assert len(losses(lane)) == 1
    finally:
        lab.close()


def cut_before_marker(cluster, topic: str, *, number: int, partition: int = 0) -> None:
    """Cuts the log of a partition where the marker of its ``number``-th transaction begins; of the last with 0.

    As a new leader has it that had not yet fetched the marker when it was elected uncleanly.
    """
    cluster.kill(0)
    folder = cluster.brokers[0].data / f"{topic}-{partition}"
    segment = folder / f"{0:020}.log"
    data, start, markers = segment.read_bytes(), 0, []
    while start < len(data) and any(data[start : start + 12]):
        if data[start + 22] & 0x20:  # a control batch
            markers.append(start)
        start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
    segment.write_bytes(data[: markers[number - 1]])
    for state in folder.glob("*.snapshot"):
        state.unlink()  # what producers were known to have done
    cluster.restart(0)


@pytest.mark.slow
@pytest.mark.parametrize("others", ["nobody", "another writer"])
@pytest.mark.parametrize(("version", "marker"), [(2, 4), (1, 4), (2, 1)])
def test_whole_batches_whose_marker_was_lost_are_copied_again_once(  # noqa: PLR0917 - fixtures
    east, clusters, unique, version, marker, others
):
    (west,) = clusters("west")
    use_transaction_version(west, version)
    lab = LaneLab(east, west, name=unique)
    topic = lab.topic()
    for start in range(0, 300, 50):
        lab.numbered(topic, range(start, start + 50))
        lab.copied(topic, **BATCHES)
    cut_before_marker(west, topic, number=marker)
    producer = Producer({**west.client_settings(), "transactional.id": f"other-{unique}"})
    if others == "another writer":
        producer.init_transactions(30)
        producer.begin_transaction()
        # They make the log as long as it was, and nobody may read behind them until they are decided.
        for _ in range(400):
            producer.produce(topic, b"other", partition=0)
        producer.flush(30)
    lab.numbered(topic, range(300, 330))
    lane = lab.lane(topic, **BATCHES)
    try:
        lab.caught_up(lane)
        if others == "another writer":
            producer.abort_transaction(30)
        assert lab.values(topic) == numbers(range(330))
        assert len(losses(lane)) == 1
        assert "to 299 are copied again" in losses(lane)[0]
        lane.stop()
        again = lab.copied(topic, **BATCHES)
        assert losses(again) == []
        assert lab.values(topic) == numbers(range(330))
    finally:
        lab.close()


def aborted_by_last_owner(lab, topic: str, copied: range) -> None:
    """Copies and a checkpoint in an aborted transaction of the lane's id; returns once its markers are written."""
    own_id = lane_transactional_id(lab.name, "east", "west", 0)
    checkpoints = checkpoints_topic(lab.name, "east")
    stored = lab.checkpoints()[topic, 0]
    beyond = replace(stored, offset=copied.stop)
    ends = {name: lab.end(name, cluster=lab.target) for name in (topic, checkpoints)}
    producer = Producer({**lab.target.client_settings(), "transactional.id": own_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in copied:
        hop = f"east/{topic}/0/{number}".encode()
        producer.produce(topic, b"%d" % number, partition=0, headers=[(HOPS_HEADER, hop)])
    producer.produce(checkpoints, beyond.value(), beyond.key(), partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    for name, written in ((topic, len(copied)), (checkpoints, 1)):
        end = ends[name] + written + 1
        lab.until(lambda name=name, end=end: lab.end(name, cluster=lab.target) == end, "the marker")


@pytest.mark.slow
@ENGINES
@pytest.mark.parametrize("version", [2, 1])
@pytest.mark.parametrize("lost_in", ["checkpoints", "copies", "both"])
def test_a_transaction_that_its_coordinator_does_not_know_is_never_committed(  # noqa: PLR0917 - fixtures
    east, clusters, unique, engine, version, lost_in
):
    (west,) = clusters("west")
    use_transaction_version(west, version)
    lab = LaneLab(east, west, name=unique)
    topic = lab.topic()
    lab.numbered(topic, range(50))
    lab.copied(topic, **engine)
    lab.numbered(topic, range(50, 100))
    aborted_by_last_owner(lab, topic, range(50, 70))
    if lost_in != "copies":
        cut_before_marker(west, checkpoints_topic(unique, "east"), number=0)
    if lost_in != "checkpoints":
        cut_before_marker(west, topic, number=0)
    lane = lab.lane(topic, **engine)
    try:
        lab.caught_up(lane)
        assert lab.values(topic) == numbers(range(100))
        lane.stop()
        lab.numbered(topic, range(100, 110))
        again = lab.copied(topic, **engine)
        assert lab.values(topic) == numbers(range(110))
        assert losses(lane) == losses(again) == []
    finally:
        lab.close()


@pytest.mark.slow
def test_records_without_a_copy_make_no_other_copy_look_lost(east, clusters, unique, monkeypatch):
    monkeypatch.setattr(index, "NOTE_SECONDS", 3600.0)  # so that much is counted
    (west,) = clusters("west")
    lab = LaneLab(east, west, name=unique)
    refused, returned = lab.topic(target={"max.message.bytes": "20000"}), lab.topic()
    work = (*lab.work(refused, max_message_bytes=20_000), *lab.work(returned))
    settings = {**BATCHES, "returns": True, "blocked": ("west",)}
    lane = lab.lane(work=work, **settings)
    try:
        for topic in (refused, returned):
            lab.numbered(topic, range(100))
        lab.caught_up(lane)
        lab.produce(refused, {"value": os.urandom(50_000), "key": b"large"})
        hop = f"west/{returned}/0/7".encode()
        lab.produce(returned, {"value": b"came from there", "headers": [(HOPS_HEADER, hop)]})
        lab.numbered(returned, range(100, 120))
        lab.caught_up(lane)
        lab.until(lambda: len(lab.quarantined()) == 1, "the record in quarantine", lane)
        lane.stop()
        west.kill(0)
        west.restart(0)  # another leader epoch: the copies are counted
        lane = lab.lane(work=work, **settings)
        lab.caught_up(lane)
        lab.numbered(refused, range(100, 130))
        lab.numbered(returned, range(120, 130))
        lab.caught_up(lane)
        lane.stop()

        assert losses(lane) == []
        assert lab.values(refused) == lab.values(returned) == numbers(range(130))
        assert len(lab.quarantined()) == 1
    finally:
        lab.close()
