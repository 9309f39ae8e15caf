"""Topics are listed anew when something about them has changed, and only then."""

from replicator.control.observe.cluster_reader import WARY_LOOKS, ClusterReader
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.testing import LocalCluster, wait_until
from replicator.topology.plan import ClusterPlan


def open_reader(cluster: LocalCluster):
    plan = ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))
    admin = ClusterAdmin(plan, client_id="reader")
    return admin, ClusterReader(admin, client_id="reader")


def settle(reader: ClusterReader) -> int:
    """Looks until two looks in a row showed no change; what earlier tests left may still go on."""

    def rests() -> bool:
        before = reader.revision
        for _ in range(WARY_LOOKS + 1):
            reader.look(surely=False)
        return reader.revision == before

    wait_until(rests, timeout_seconds=30, describe="a cluster in which nothing changes")
    return reader.revision


def create(admin, reader, topic):
    """Makes a topic of one partition, and waits until the reader sees it."""
    admin.create_topics([NewTopicSpec(topic, 1, 1)])
    wait_until(
        lambda: topic in reader.look(surely=True).sizes, timeout_seconds=10, describe="the topic"
    )


def test_what_changes_is_seen_at_the_next_look(east, unique):
    admin, reader = open_reader(east)
    with admin:
        rest = settle(reader)
        assert reader.look(surely=True).sizes.keys() == admin.topic_partitions().keys()
        assert reader.revision == rest

        admin.create_topics([NewTopicSpec(unique, 1, 1)])
        wait_until(
            lambda: reader.look(surely=False).sizes.get(unique) == 1,
            timeout_seconds=10,
            describe="the created topic",
        )
        made = settle(reader)
        assert made > rest

        admin.create_partitions({unique: 3})
        wait_until(
            lambda: reader.look(surely=False).sizes.get(unique) == 3,
            timeout_seconds=10,
            describe="more partitions",
        )
        grown = settle(reader)
        assert grown > made

        admin.delete_topics([unique])
        wait_until(
            lambda: unique not in reader.look(surely=False).sizes,
            timeout_seconds=10,
            describe="a topic that is gone",
        )
        reader.close()


def test_a_recreated_topic_of_the_same_shape_is_a_change(east, unique):
    admin, reader = open_reader(east)
    with admin:
        create(admin, reader, unique)
        before = settle(reader)
        admin.delete_topics([unique])
        wait_until(
            lambda: unique not in admin.topic_partitions(), timeout_seconds=10, describe="no topic"
        )
        admin.create_topics([NewTopicSpec(unique, 1, 1)])
        wait_until(
            lambda: reader.look(surely=False).sizes.get(unique) == 1 and reader.revision > before,
            timeout_seconds=10,
            describe="the new life of the topic",
        )
        reader.close()


def test_a_connection_that_was_lost_costs_a_list(proxied):
    admin, reader = open_reader(proxied)
    with admin:
        rest = settle(reader)
        proxied.proxy.cut()
        proxied.proxy.heal()
        wait_until(
            lambda: reader.look(surely=False).sizes is not None and reader.revision > rest,
            timeout_seconds=30,
            describe="topics listed again",
        )
        settle(reader)
        reader.close()


def test_facts_of_followed_topics_are_read_once_and_again_where_they_changed(east, unique):
    admin, reader = open_reader(east)
    with admin:
        create(admin, reader, unique)
        reader.follow(frozenset({unique}))
        wait_until(
            lambda: unique in reader.describe(anew=False, settings=frozenset()).topics,
            timeout_seconds=10,
            describe="its facts",
        )
        first = reader.view
        assert first.topics[unique].configs is not None
        assert reader.describe(anew=False, settings=frozenset()) is first
        assert reader.describe(anew=True, settings=frozenset({unique})) is first

        admin.create_partitions({unique: 3})

        def grown() -> bool:
            reader.look(surely=False)
            return reader.describe(anew=False, settings=frozenset()).topics[unique].partitions == 3

        wait_until(grown, timeout_seconds=10, describe="its new size")
        assert unique in reader.view.changed_since(first.version)
        reader.follow(frozenset())
        assert reader.view.topics == {}
        reader.close()
