"""MirrorMaker 2's own Java client and formatters, on clusters that only the replicator has touched."""

import re
import shutil

import pytest
from confluent_kafka import Consumer, TopicPartition
from mm2_chain import GROUP, IDENTITY, RECORDS
from whole_topic import read_topic

from replicator.mm2.topics.formats import Checkpoint
from replicator.testing import commit_positions

pytestmark = pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")


def test_the_client_gets_our_exact_translation_and_counts_one_hop(chain):
    wanted = {
        "east.orders-0": [chain.translated("east->west", "orders", 0, 100), 'a "note"'],
        "east.orders-1": [chain.translated("east->west", "orders", 1, RECORDS), 'a "note"'],
    }
    told = {}

    def checkpoints_there():
        told.update(chain.ask(chain.west, "east"))
        return told["offsets"] == wanted and all_beat(told, clusters=1)

    chain.worker.until(checkpoints_there, f"{wanted} from the Java client")
    assert told["again"] == wanted
    assert told["hops"] == {"east": 1, "nowhere": -1}
    assert told["upstream"] == ["east"]
    assert told["heartbeats"] == ["east.heartbeats", "heartbeats"]
    assert told["checkpoints"] == ["east.checkpoints.internal"]
    assert told["remoteTopics"] == told["remoteTopicsOf"] == ["east.heartbeats", "east.orders"]
    assert chain.ask(chain.west, "east", group="nobody")["offsets"] == {}


def test_under_the_identity_policy_a_chain_counts_two_hops(chain):
    group = "onward"
    commit_positions(chain.west, group, {("east.orders", 0): 50})
    wanted = {"east.orders-0": [chain.translated("west->north", "east.orders", 0, 50), ""]}
    settings = (f"replication.policy.class={IDENTITY}", "source.cluster.alias=west")
    told = {}

    def checkpoints_there():
        told.update(chain.ask(chain.north, "west", *settings, group=group))
        return told["offsets"] == wanted and all_beat(told, clusters=2)

    chain.worker.until(checkpoints_there, f"{wanted} from the Java client")
    assert told["hops"] == {"west": 1, "east": 2, "nowhere": -1}
    assert told["upstream"] == ["east", "west"]
    assert told["heartbeats"] == ["heartbeats", "west.east.heartbeats", "west.heartbeats"]
    assert "east.orders" in told["remoteTopicsOf"]
    assert committed(chain.north, group) < 0, "the link carries no positions over"


def test_the_console_formatters_print_what_we_wrote(chain):
    beat = re.compile(
        r"Heartbeat\{sourceClusterAlias=(\w+), targetClusterAlias=(\w+), timestamp=(\d+)\}"
    )
    # As MirrorMaker 2 has it: a connector beats on its target, so what comes over is the way back's.
    # Two write into the first one, of which one may have begun some seconds before the other.
    for cluster, topic, count, ends in (
        (chain.west, "heartbeats", 40, {("east", "west"), ("north", "west")}),
        (chain.west, "east.heartbeats", 8, {("west", "east")}),
        (chain.north, "west.east.heartbeats", 8, {("west", "east")}),
    ):
        lines = chain.printed(cluster, topic, "HeartbeatFormatter", count)
        found = [beat.fullmatch(line) for line in lines]
        assert all(found), lines
        assert {match.groups()[:2] for match in found} == ends
        times = [int(match[3]) for match in found]
        assert max(times) - min(times) >= 1000, "they go on"
    followed(chain, 100, metadata='a "note"')
    # A position that is found before its records are copied is written low, and again when they are.
    written = len(read_topic(chain.west, "east.checkpoints.internal"))
    lines = chain.printed(chain.west, "east.checkpoints.internal", "CheckpointFormatter", written)
    position = chain.translated("east->west", "orders", 0, 100)
    assert [line for line in lines if "east.orders-0" in line][-1] == (
        f"Checkpoint{{consumerGroupId={GROUP}, topicPartition=east.orders-0, "
        f'upstreamOffset=100, downstreamOffset={position}, metadata=a "note"}}'
    )
    sync = re.compile(
        r"OffsetSync\{topicPartition=(\S+), upstreamOffset=(\d+), downstreamOffset=(\d+)\}"
    )
    lines = chain.printed(chain.east, "mm2-offset-syncs.west.internal", "OffsetSyncFormatter", 2)
    found = [sync.fullmatch(line) for line in lines]
    assert all(found), lines
    for topic_partition, upstream, downstream in (match.groups() for match in found):
        assert (int(upstream), int(downstream)) in chain.syncs()[topic_partition]


def test_offset_syncs_name_the_same_record_on_both_sides(chain):
    syncs = chain.worker.until(
        lambda: (found := chain.syncs()).keys() == {"orders-0", "orders-1"} and found,
        "offset syncs of both partitions",
    )
    for place, pairs in syncs.items():
        partition = int(place.rsplit("-", 1)[1])
        for upstream, downstream in pairs:
            assert downstream == chain.translated("east->west", "orders", partition, upstream)


def test_a_group_that_moves_is_followed_forward_and_back_and_over_a_restart(chain):
    seen = chain.syncs()
    for offset in (120, 30):
        commit_positions(chain.east, GROUP, {("orders", 0): offset})
        followed(chain, offset)
    chain.worker.stop()
    commit_positions(chain.east, GROUP, {("orders", 0): 140})
    chain.write(50)
    chain.worker.start()
    chain.arrived(RECORDS + 50)
    followed(chain, 140)
    answer = chain.ask(chain.west, "east")["offsets"]["east.orders-0"]
    assert answer == [chain.translated("east->west", "orders", 0, 140), ""]
    more = chain.worker.until(lambda: newer(chain.syncs(), seen), "newer offset syncs")
    for pairs in more.values():
        assert pairs == sorted(set(pairs)), "readers take a lower one for a rewind"


def test_none_of_these_topics_is_replicated(chain):
    inner = {
        "east": {"mm2-offset-syncs.west.internal", "heartbeats"},
        "west": {
            "east.checkpoints.internal", "mm2-offset-syncs.north.internal", "heartbeats",
            "east.heartbeats",
        },
        "north": {
            "west.checkpoints.internal", "heartbeats", "west.heartbeats", "west.east.heartbeats"
        },
    }  # fmt: skip
    data = {"east": {"orders"}, "west": {"east.orders"}, "north": {"east.orders"}}
    for cluster in (chain.east, chain.west, chain.north):
        names = cluster.admin().list_topics(timeout=20).topics
        found = {name for name in names if not name.startswith("__")}
        assert found == inner[cluster.name] | data[cluster.name]
    for flow in ("east->west", "west->north"):
        chain.worker.until(lambda flow=flow: not chain.worker.problems(flow), f"{flow} all right")
    assert "unexpectedly" not in chain.worker.log_text()


def all_beat(told, *, clusters):
    # The client asks for the clusters first: a topic may appear between its questions.
    return len(told["upstream"]) == clusters and len(told["heartbeats"]) == clusters + 1


def followed(chain, offset, *, metadata=""):
    downstream = chain.translated("east->west", "orders", 0, offset)
    wanted = Checkpoint(GROUP, "east.orders", 0, offset, downstream, metadata)
    chain.worker.until(lambda: chain.checkpoint(0) == wanted, f"{wanted}")


def newer(found, seen):
    later = [found[place][-1] > seen[place][-1] for place in seen]
    return found if all(later) else None


def committed(cluster, group):
    consumer = Consumer({**cluster.client_settings(), "group.id": group})
    (position,) = consumer.committed([TopicPartition("east.orders", 0)], timeout=20)
    consumer.close()
    return position.offset
