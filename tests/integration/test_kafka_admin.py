"""The admin room against a real broker."""

import time

import pytest
from confluent_kafka import Consumer

from replicator.errors import (
    AlreadyExistsError,
    BrokerRefusedError,
    NotFoundError,
    UnreachableError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.offsets import list_offsets
from replicator.kafka.admin.session import AdminSession
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.kafka.clients.client import open_consumer
from replicator.kafka.clients.settings import consumer_config
from replicator.testing import LocalCluster, wait_until
from replicator.topology.plan import ClusterPlan


def plan(cluster: LocalCluster) -> ClusterPlan:
    return ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))


def told(answers):
    """What is said about the only group; raised where it is an error."""
    (answer,) = answers.values()
    if isinstance(answer, Exception):
        raise answer
    return answer


@pytest.fixture
def admin(east):
    with ClusterAdmin(plan(east), client_id="test") as admin:
        yield admin


@pytest.fixture
def make(admin):
    """Creates a topic and waits until the broker itself knows what the controller has agreed to."""

    def create(name: str, partitions: int, *configs: tuple[str, str]) -> None:
        assert admin.create_topics([NewTopicSpec(name, partitions, 1, configs)]) == {name: None}

        def ready() -> bool:
            topic = admin.describe_topics([name]).get(name)
            return topic is not None and not topic.leaderless

        wait_until(ready, timeout_seconds=20, describe=f"{name} to have its leaders")

    return create


def test_a_cluster_describes_itself(admin, east):
    described = admin.describe_cluster()

    assert admin.cluster_id() == described.cluster_id == east.cluster_id
    assert [f"{each.host}:{each.port}" for each in described.brokers] == east.bootstrap_servers
    assert described.controller == described.brokers[0].id
    assert "CREATE" in described.authorized_operations


def test_each_topic_gets_its_own_answer(admin, unique):
    good, twice = NewTopicSpec(unique, 3, 1), NewTopicSpec(f"{unique}.twice", 1, 1)
    assert admin.create_topics([good, twice]) == {unique: None, f"{unique}.twice": None}

    answers = admin.create_topics(
        [
            twice,
            NewTopicSpec(f"{unique}.wide", 1, 7),
            NewTopicSpec(f"{unique}.odd", 1, 1, (("no.such.setting", "1"),)),
        ]
    )

    assert isinstance(answers[f"{unique}.twice"], AlreadyExistsError)
    assert isinstance(answers[f"{unique}.wide"], BrokerRefusedError)
    assert "replication factor" in answers[f"{unique}.wide"].message
    assert isinstance(answers[f"{unique}.odd"], BrokerRefusedError)
    wait_until(
        lambda: admin.topic_partitions().get(unique) == 3,
        timeout_seconds=10,
        describe="3 partitions",
    )


def test_topics_are_described_and_missing_ones_are_absent(admin, make, unique):
    make(unique, 2)

    described = admin.describe_topics([unique, f"{unique}.missing"])

    assert list(described) == [unique]
    topic = described[unique]
    assert (topic.partitions, topic.replication_factor, topic.leaderless) == (2, 1, ())
    assert {"READ", "WRITE"} <= topic.authorized_operations
    assert len(topic.topic_id) == 22


def test_a_recreated_topic_has_another_id(admin, make, unique):
    make(unique, 1)
    before = admin.describe_topics([unique])[unique].topic_id

    deleted = admin.delete_topics([unique, f"{unique}.missing"])
    wait_until(
        lambda: unique not in admin.topic_partitions(), timeout_seconds=30, describe="it to be gone"
    )
    make(unique, 1)

    assert deleted[unique] is None
    assert isinstance(deleted[f"{unique}.missing"], NotFoundError)
    assert admin.describe_topics([unique])[unique].topic_id != before


def test_settings_change_one_by_one_and_can_be_reverted(admin, make, unique):
    make(unique, 1, ("retention.ms", "100000"))

    changed = admin.alter_topic_configs(
        {
            unique: {"retention.ms": None, "segment.bytes": "20000000"},
            f"{unique}.missing": {"retention.ms": "1"},
        }
    )

    assert changed[unique] is None
    assert isinstance(changed[f"{unique}.missing"], NotFoundError)
    assert list(admin.topic_configs([unique, f"{unique}.missing"])) == [unique]

    def own():
        found = admin.topic_configs([unique])[unique]
        return {name for name, setting in found.items() if not setting.is_default}

    wait_until(
        lambda: own() == {"segment.bytes"}, timeout_seconds=30, describe="the settings to be known"
    )
    configs = admin.topic_configs([unique])
    assert configs[unique]["retention.ms"].value == "604800000"


def test_topics_with_equal_settings_have_them_once_however_they_are_asked_for(admin, make, unique):
    """Ten thousand topics have one set of settings or two; each would take 8 KB, and for each way to ask."""
    names = [f"{unique}.{number}" for number in range(6)]
    for name in names[:5]:
        make(name, 1)
    make(names[5], 1, ("retention.ms", "100000"))
    together = admin.topic_configs(names)
    alone = [admin.topic_configs(names[at : at + 2]) for at in range(5)]
    held = [settings for found in (together, *alone) for settings in found.values()]
    assert len(held) == 16
    assert len({id(settings) for settings in held}) == 2
    assert together[names[5]]["retention.ms"].value == "100000"
    assert not together[names[5]]["retention.ms"].is_default


def test_topics_grow_but_never_shrink(admin, make, unique):
    make(unique, 1)

    assert admin.create_partitions({unique: 4}) == {unique: None}
    wait_until(
        lambda: admin.topic_partitions()[unique] == 4,
        timeout_seconds=30,
        describe="growth to be known",
    )
    assert isinstance(admin.create_partitions({unique: 2})[unique], BrokerRefusedError)


def test_offsets_of_many_partitions_come_at_once(admin, east, make, unique):
    make(unique, 20)
    wanted = [(unique, number) for number in range(20)]
    missing = (f"{unique}.missing", 0)
    session = AdminSession(plan(east), client_id="test", timeout_seconds=10, chunk_size=7)

    def ends() -> dict:
        return list_offsets(session, [*wanted, missing], "latest")

    # A broker that has just become a leader may still say that it is not.
    wait_until(
        lambda: list(ends().values())[:-1] == [0] * 20, timeout_seconds=10, describe="all ends"
    )
    assert isinstance(ends()[missing], NotFoundError)
    assert admin.offsets(wanted[:2], 0) == {wanted[0]: -1, wanted[1]: -1}
    assert admin.offsets(wanted[:1], "earliest") == {wanted[0]: 0}


def test_a_group_that_never_existed_is_dead_and_has_no_position(admin, make, unique):
    group = admin.describe_group(unique)

    assert (group.state, group.members, group.active) == ("DEAD", (), False)
    make(unique, 1)
    assert admin.committed_offsets([unique]) == {unique: {}}


def test_positions_of_an_idle_group_are_set_and_read(admin, make, unique):
    make(unique, 2)

    done = admin.commit_offsets({unique: {(unique, 0): (7, "from east"), (unique, 1): (0, "")}})[
        unique
    ]

    assert set(done.values()) == {None}
    positions = admin.committed_offsets([unique])[unique]
    assert (positions[unique, 0].offset, positions[unique, 0].metadata) == (7, "from east")
    assert positions[unique, 1].offset == 0
    assert unique in admin.list_groups()
    assert admin.describe_group(unique).state == "EMPTY"
    assert admin.delete_groups([unique]) == {unique: None}


def test_a_group_with_members_keeps_its_own_positions(admin, east, make, unique):
    make(unique, 2)
    consumer = open_consumer(consumer_config(plan(east), client_id="reader", group_id=unique))
    consumer.subscribe([unique])
    wait_until(
        lambda: consumer.poll(0.05) is not None and len(consumer.assignment()) == 2,
        timeout_seconds=20,
        describe="the consumer to have both partitions",
    )

    group = admin.describe_group(unique)
    refused = admin.commit_offsets({unique: {(unique, 0): (1, "")}})[unique]

    assert group.active
    assert group.state == "STABLE"
    assert group.members[0].client_id == "reader"
    assert group.members[0].partitions == ((unique, 0), (unique, 1))
    assert isinstance(refused[unique, 0], BrokerRefusedError)
    assert "in use" in refused[unique, 0].message
    consumer.close()


def test_a_group_of_the_newer_protocol_is_active_while_a_member_is_in_it(admin, east, make, unique):
    make(unique, 1)
    consumer = Consumer(
        {**east.client_settings(), "group.id": unique, "group.protocol": "consumer"}
    )
    consumer.subscribe([unique])
    wait_until(
        lambda: consumer.poll(0.05) is None and consumer.assignment(),
        timeout_seconds=30,
        describe="the consumer to have the partition",
    )

    group = admin.describe_group(unique)
    assert (group.state, group.protocol, group.active) == ("STABLE", "CONSUMER", True)
    consumer.close()
    wait_until(
        lambda: not admin.describe_group(unique).active, timeout_seconds=30, describe="an end"
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.cluster_id(),
        lambda admin: admin.topic_partitions(),
        lambda admin: admin.describe_topics(["a"]),
        lambda admin: told(admin.committed_offsets(["g"])),
        lambda admin: told(admin.commit_offsets({"g": {("a", 0): (1, "")}})),
    ],
    ids=["cluster", "topics", "describe", "committed", "commit"],
)
def test_a_cluster_that_is_not_there_is_unreachable_in_time(call):
    nowhere = ClusterPlan("nowhere", ("127.0.0.1:1",))
    begun = time.monotonic()
    with (
        ClusterAdmin(nowhere, client_id="test", timeout_seconds=1.5) as admin,
        pytest.raises(UnreachableError) as raised,
    ):
        call(admin)
    assert time.monotonic() - begun < 8
    assert raised.value.subject in {"cluster:nowhere", "group:g"}
    assert "bootstrapServers" in raised.value.remedy


def test_offsets_are_found_again_under_a_new_leader_epoch(clusters, unique):
    (solo,) = clusters("solo")
    solo.create_topic(unique, partitions=2)
    keys = [(unique, 0), (unique, 1)]
    with ClusterAdmin(plan(solo), client_id="test") as admin:
        assert admin.offsets(keys, "latest") == dict.fromkeys(keys, 0)
        solo.kill()  # its partitions get leaders of a newer epoch, which this client was never told
        solo.restart()
        wait_until(
            lambda: admin.offsets(keys, "latest") == dict.fromkeys(keys, 0),
            timeout_seconds=20,
            describe=lambda: f"offsets, but: {admin.offsets(keys, 'latest')}",
        )
