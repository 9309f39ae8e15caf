"""Topics are listed anew when something about them has changed, and only then."""

from replicator.control.observe.topic_sizes import WARY_LOOKS, TopicSizes
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.topics import NewTopicSpec
from replicator.testing import LocalCluster, wait_until
from replicator.topology.plan import ClusterPlan


def open_sizes(cluster: LocalCluster):
    plan = ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))
    admin = ClusterAdmin(plan, client_id="sizes")
    return admin, TopicSizes(admin, client_id="sizes")


def settle(sizes: TopicSizes) -> int:
    """Looks until two looks in a row showed no change; what earlier tests left may still go on."""

    def rests() -> bool:
        before = sizes.revision
        for _ in range(WARY_LOOKS + 1):
            sizes.read(surely=False)
        return sizes.revision == before

    wait_until(rests, timeout_seconds=30, describe="a cluster in which nothing changes")
    return sizes.revision


def test_what_changes_is_seen_at_the_next_look(east, unique):
    admin, sizes = open_sizes(east)
    with admin:
        rest = settle(sizes)
        assert sizes.read(surely=True).keys() == admin.topic_partitions().keys()
        assert sizes.revision == rest

        admin.create_topics([NewTopicSpec(unique, 1, 1)])
        wait_until(
            lambda: sizes.read(surely=False).get(unique) == 1,
            timeout_seconds=10,
            describe="the created topic",
        )
        made = settle(sizes)
        assert made > rest

        admin.create_partitions({unique: 3})
        wait_until(
            lambda: sizes.read(surely=False).get(unique) == 3,
            timeout_seconds=10,
            describe="more partitions",
        )
        grown = settle(sizes)
        assert grown > made

        admin.delete_topics([unique])
        wait_until(
            lambda: unique not in sizes.read(surely=False),
            timeout_seconds=10,
            describe="a topic that is gone",
        )
        sizes.close()


def test_a_recreated_topic_of_the_same_shape_is_a_change(east, unique):
    admin, sizes = open_sizes(east)
    with admin:
        admin.create_topics([NewTopicSpec(unique, 1, 1)])
        wait_until(
            lambda: unique in sizes.read(surely=True), timeout_seconds=10, describe="the topic"
        )
        before = settle(sizes)
        admin.delete_topics([unique])
        wait_until(
            lambda: unique not in admin.topic_partitions(), timeout_seconds=10, describe="no topic"
        )
        admin.create_topics([NewTopicSpec(unique, 1, 1)])
        wait_until(
            lambda: sizes.read(surely=False).get(unique) == 1 and sizes.revision > before,
            timeout_seconds=10,
            describe="the new life of the topic",
        )
        sizes.close()


def test_a_connection_that_was_lost_costs_a_list(clusters):
    (cluster,) = clusters("lost", proxied=True)
    admin, sizes = open_sizes(cluster)
    with admin:
        rest = settle(sizes)
        cluster.proxy.cut()
        cluster.proxy.heal()
        wait_until(
            lambda: sizes.read(surely=False) is not None and sizes.revision > rest,
            timeout_seconds=30,
            describe="topics listed again",
        )
        settle(sizes)
        sizes.close()
