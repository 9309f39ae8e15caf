"""Partitions are shared out among a broker's connections, and stay where they are."""

from collections import Counter

from replicator.batches.copy.source_reader import SourceReader
from replicator.batches.network.brokers import broker_of, connection_to
from replicator.batches.network.io_loop import IoLoop
from replicator.batches.network.leaders import LeadersSeen
from replicator.clock import SystemClock
from replicator.topology.plan import ClusterPlan


def reader(connections, *, partitions):
    made = SourceReader(
        ClusterPlan("east", ("127.0.0.1:1",)),
        IoLoop(SystemClock()),
        client_id="test",
        rack="",
        connections=connections,
    )
    made.brokers.leaders.seen = LeadersSeen(
        {("t", n): (7, 1) for n in range(partitions)}, {7: ("h", 1)}
    )
    for partition in range(partitions):
        made.read_from(("t", partition), 0, -1)
    return made


def shared_out(made):
    return {
        node: sorted(each.key[1] for each in found) for node, found in made._by_node(0.0).items()
    }


def test_one_connection_is_the_broker_itself():
    assert shared_out(reader(1, partitions=5)) == {7: [0, 1, 2, 3, 4]}


def test_several_connections_share_partitions_evenly():
    found = shared_out(reader(4, partitions=10))
    assert {broker_of(node) for node in found} == {7}
    assert Counter(map(len, found.values())) == {3: 2, 2: 2}
    assert found[connection_to(7, 1)] == [1, 5, 9]


def test_a_partition_that_is_read_anew_keeps_its_connection():
    made = reader(3, partitions=4)
    before = shared_out(made)
    made.read_from(("t", 2), 100, 1)
    assert shared_out(made) == before


def test_a_replica_near_by_is_read_over_as_many_connections_and_given_up_with_its_own():
    made = reader(2, partitions=2)
    for partition in (0, 1):
        made.prefer(made.reading(("t", partition)), 9, 0.0)
    assert shared_out(made) == {9: [0], connection_to(9, 1): [1]}
    made.on_lost(connection_to(9, 1))
    assert shared_out(made) == {9: [0], connection_to(7, 1): [1]}
