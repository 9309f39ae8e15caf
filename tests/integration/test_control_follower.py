"""The followed control topic on a real broker: never older than the question, never guessed at."""

import threading

import pytest

from replicator.control.records.pair_records import Pause
from replicator.control.store.followers import ControlFollowers
from replicator.control.store.read import read_control
from replicator.errors import StoredFormatError
from replicator.identifiers import control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.wire_json import encode_key, encode_value
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def followed(west, unique):
    """Admin, writer and a follower of an empty control topic; the follower's news and troubles."""
    cluster = ClusterPlan("west", tuple(west.bootstrap_servers))
    heard = []
    with (
        ClusterAdmin(cluster, client_id="test") as admin,
        LogWriter(cluster, control_topic(unique), client_id="test") as writer,
    ):
        ensure_compacted_topic(admin, control_topic(unique), partitions=1)
        followers = ControlFollowers("test")
        follower = followers.subscribe(
            unique, cluster, on_news=lambda: heard.append("news"), on_trouble=heard.append
        )
        follower.begin()
        yield admin, writer, follower, heard
        follower.close()
        followers.close()


def paused(topic):
    return Pause(flow="east->west", topic=topic, at_ms=1, by="test")


def test_a_read_holds_everything_that_was_written_before_it(followed):
    admin, writer, follower, heard = followed
    for number in range(30):  # with whole reads in between
        writer.write([paused(f"t{number}").encode()])
        pauses = follower.read(admin).pauses("east->west")
        assert len(pauses) == number + 1
    assert heard


def test_a_recreated_topic_is_read_from_its_start(followed, west, unique, monkeypatch):
    admin, writer, follower, _ = followed
    writer.write([paused(f"t{number}").encode() for number in range(5)])
    assert len(follower.read(admin).pauses("east->west")) == 5
    still = threading.Event()

    def stand_still(_tail, _seconds):
        still.set()
        threading.Event().wait(0.1)
        return []

    # Once it has followed the new topic as far as the old one went, only a whole read can tell.
    monkeypatch.setattr(LogTail, "poll", stand_still)
    assert still.wait(30)
    name = control_topic(unique)
    assert admin.delete_topics([name]) == {name: None}
    wait_until(
        lambda: name not in admin.topic_partitions(), timeout_seconds=30, describe="it is gone"
    )
    ensure_compacted_topic(admin, name, partitions=1)
    cluster = ClusterPlan("west", tuple(west.bootstrap_servers))
    with LogWriter(cluster, name, client_id="test") as again:
        again.write([paused("other").encode()])
    assert [pause.topic for pause in follower.read(admin).pauses("east->west")] == ["other"]
    assert [
        pause.topic for pause in read_control(unique, cluster, client_id="t").pauses("east->west")
    ] == ["other"]
    wait_until(
        lambda: [pause.topic for pause in follower.state.pauses("east->west")] == ["other"],
        timeout_seconds=30, describe="what was known of the topic before is forgotten",
    )  # fmt: skip


def test_a_decision_of_an_unknown_version_is_refused_by_everybody_who_asks(followed):
    admin, writer, follower, _ = followed
    key = encode_key({"kind": "pause", "v": 9, "flow": "east->west"})
    writer.write([(key, encode_value({"v": 9}))])
    with pytest.raises(StoredFormatError):
        follower.read(admin)
    with pytest.raises(StoredFormatError):
        _ = follower.state


def test_users_of_a_cluster_share_one_thread_and_each_has_the_state_at_once(west, unique):
    cluster = ClusterPlan("west", tuple(west.bootstrap_servers))
    followers, early, late = ControlFollowers("test"), threading.Event(), threading.Event()
    roles = followers.subscribe(unique, cluster, on_news=early.set, reads=False)
    roles.wait_until_looked(30)  # there is no topic yet
    assert followers.states(unique) == {}
    with (
        ClusterAdmin(cluster, client_id="test") as admin,
        LogWriter(cluster, control_topic(unique), client_id="test") as writer,
    ):
        ensure_compacted_topic(admin, control_topic(unique), partitions=1)
        writer.write([paused("first").encode()])
        pair = followers.subscribe(unique, cluster, on_news=late.set)
        pair.begin()
        assert len(pair.state.pauses("east->west")) == 1
        assert roles.readable is pair.state is followers.states(unique)["west"]
        assert sum(one.name == "control-west" for one in threading.enumerate()) == 1
        roles.close()
        early.clear()
        late.clear()
        writer.write([paused("second").encode()])
        assert len(pair.read(admin).pauses("east->west")) == 2
        assert late.wait(30)
        assert not early.is_set()
    pair.close()
    wait_until(
        lambda: all(one.name != "control-west" for one in threading.enumerate()),
        timeout_seconds=30, describe="the last user ends the thread",
    )  # fmt: skip


def test_after_a_refused_record_the_others_are_known_and_a_corrected_topic_is_followed(followed):
    admin, writer, follower, heard = followed
    key = encode_key({"kind": "pause", "v": 9, "flow": "east->west"})
    writer.write([(key, encode_value({"v": 9})), paused("after").encode()])
    with pytest.raises(StoredFormatError):
        follower.read(admin)
    wait_until(
        lambda: [one.topic for one in follower.readable.pauses("east->west")] == ["after"],
        timeout_seconds=30, describe="records beside the refused one are known",
    )  # fmt: skip
    with pytest.raises(StoredFormatError):
        follower.begin()
    writer.write([(key, None)])
    follower.begin()
    assert [one.topic for one in follower.read(admin).pauses("east->west")] == ["after"]
    assert None in heard


def test_an_unforeseen_error_is_reported_and_does_not_end_the_follower(west, unique):
    """Workers without the controller of a pair would follow it no more, and nobody would notice."""
    cluster = ClusterPlan("west", tuple(west.bootstrap_servers))
    heard = []

    def on_news():
        if not heard:
            raise KeyError("unforeseen")

    with (
        ClusterAdmin(cluster, client_id="test") as admin,
        LogWriter(cluster, control_topic(unique), client_id="test") as writer,
    ):
        ensure_compacted_topic(admin, control_topic(unique), partitions=1)
        writer.write([paused("before").encode()])
        followers = ControlFollowers("test")
        follower = followers.subscribe(
            unique, cluster, on_news=on_news, on_trouble=heard.append, reads=False
        )
        wait_until(lambda: heard, timeout_seconds=30, describe="the trouble")
        assert "unforeseen" in heard[0].message
        writer.write([paused("after").encode()])
        wait_until(
            lambda: len(follower.readable.pauses("east->west")) == 2,
            timeout_seconds=30, describe="what was written afterwards",
        )  # fmt: skip
        assert heard[1] is None
        follower.close()
        followers.close()
