"""A target of several brokers: its coordinator hears of a transaction's partitions from the lane."""

import pytest
from proxied_lab import ProxiedLab

from replicator.dataplane.transport.spec import lane_client_id
from replicator.testing import ProtocolProxy
from replicator.testing.faults.protocol_rules import Api

PARTITIONS, ROUNDS = 6, 8


@pytest.mark.slow
def test_the_coordinator_hears_of_partitions_before_their_brokers_do(clusters, east, unique):
    (west,) = clusters("west", brokers=3)
    with ProtocolProxy(west.bootstrap_servers) as proxy:
        lab = ProxiedLab(east, west, name=unique).through(proxy)
        topic = lab.topic(partitions=PARTITIONS)
        try:
            lane = lab.lane(topic, engine="batches", provenance="path")
            for number in range(ROUNDS):
                for partition in range(PARTITIONS):
                    lab.numbered(topic, [number], partition=partition)
                lab.caught_up(lane)
            asked = [
                request
                for request in proxy.requests
                if request.client_id == lane_client_id(lane.spec)
            ]
        finally:
            lab.close()
    assert lab.values(topic) == [b"%d" % number for number in range(ROUNDS)] * PARTITIONS
    transactions: list[list[int]] = [[]]
    for request in asked:
        if request.api == Api.END_TXN:
            transactions.append([])
        elif request.api in {Api.ADD_PARTITIONS_TO_TXN, Api.PRODUCE}:
            transactions[-1].append(request.api)
    # Until it has written to several brokers, a lane does not know that it will.
    written = [each for each in transactions[1:] if Api.PRODUCE in each]
    assert len(written) >= ROUNDS - 1
    assert {kinds[0] for kinds in written} == {Api.ADD_PARTITIONS_TO_TXN}
