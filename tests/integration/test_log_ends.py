"""Ends of logs on real brokers, asked again and again over kept connections."""

from producing import produce

from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.log_ends import LogEnds


def keys(topic):
    return [(topic, number) for number in range(3)]


def write(cluster, topic, partition, count):
    produce(cluster, topic, (b"v%d" % number for number in range(count)), partition=partition)


def test_what_is_written_shows_at_the_next_look(east, unique):
    east.create_topic(unique, partitions=3)
    ends = LogEnds(ClusterPlan("east", tuple(east.bootstrap_servers)), client_id="ends")
    assert ends.read(keys(unique)) == {(unique, 0): 0, (unique, 1): 0, (unique, 2): 0}
    write(east, unique, 1, 5)
    assert ends.read(keys(unique)) == {(unique, 0): 0, (unique, 1): 5, (unique, 2): 0}
    assert ends.read(keys(unique)[:1]) == {(unique, 0): 0}
    assert ends.read([]) == {}
    ends.close()
    assert ends.read(keys(unique))[unique, 1] == 5
    ends.close()


def test_a_lost_connection_and_a_topic_that_is_gone_are_survived(proxied, unique):
    proxied.create_topic(unique, partitions=3)
    plan = ClusterPlan("west", tuple(proxied.bootstrap_servers))
    ends = LogEnds(plan, client_id="ends")
    write(proxied, unique, 2, 3)
    assert ends.read(keys(unique))[unique, 2] == 3
    proxied.proxy.cut()
    proxied.proxy.heal()
    assert ends.read(keys(unique))[unique, 2] == 3

    with ClusterAdmin(plan, client_id="ends") as admin:
        admin.delete_topics([unique])
        wait_until(
            lambda: not ends.read(keys(unique)), timeout_seconds=30, describe="a topic that is gone"
        )
        admin.create_topics([NewTopicSpec(unique, 3, 1)])
        wait_until(
            lambda: ends.read(keys(unique)) == dict.fromkeys(keys(unique), 0),
            timeout_seconds=30,
            describe="the new topic, from its start",
        )
    ends.close()
