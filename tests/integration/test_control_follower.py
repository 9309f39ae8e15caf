"""The followed control topic on a real broker: never older than the question, never guessed at."""

import threading

import pytest

from replicator.control.store.follower import ControlFollower
from replicator.control.store.read import read_control
from replicator.control.store.records import Pause
from replicator.errors import StoredFormatError
from replicator.identifiers import control_topic
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.compacted_topic import ensure_compacted_topic
from replicator.kafka.log_writer import LogWriter
from replicator.kafka.wire_json import encode_key, encode_value
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
        follower = ControlFollower(
            unique, cluster, client_id="test",
            on_news=lambda: heard.append("news"), on_trouble=heard.append,
        )  # fmt: skip
        follower.begin()
        yield admin, writer, follower, heard
        follower.close()


def paused(topic):
    return Pause(flow="east->west", topic=topic, at_ms=1, by="test")


def test_a_read_holds_everything_that_was_written_before_it(followed):
    admin, writer, follower, heard = followed
    for number in range(30):  # with whole reads in between
        writer.write([paused(f"t{number}").encode()])
        pauses = follower.read(admin).pauses("east->west")
        assert len(pauses) == number + 1
    assert heard


def test_a_topic_made_anew_is_read_from_its_start(followed, west, unique, monkeypatch):
    admin, writer, follower, _ = followed
    writer.write([paused(f"t{number}").encode() for number in range(5)])
    assert len(follower.read(admin).pauses("east->west")) == 5
    still = threading.Event()

    def stand_still(_):
        still.set()
        follower._closing.wait(0.1)
        return []

    # Once it has followed the new topic as far as the old one went, only a whole read can tell.
    monkeypatch.setattr(follower._tail, "poll", stand_still)
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


def test_a_decision_of_an_unknown_version_is_refused_by_everybody_who_asks(followed):
    admin, writer, follower, _ = followed
    key = encode_key({"kind": "pause", "v": 9, "flow": "east->west"})
    writer.write([(key, encode_value({"v": 9}))])
    with pytest.raises(StoredFormatError):
        follower.read(admin)
    with pytest.raises(StoredFormatError):
        _ = follower.state
