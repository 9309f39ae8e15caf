"""A switchover waits for groups that still work on the old cluster, whichever protocol their members speak."""

import pytest
from confluent_kafka import Consumer

from replicator.clock import SystemClock
from replicator.failover.clusters.groups_move import GroupMove
from replicator.testing import wait_until


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_waited_for_while_a_member_has_records_to_read(link, unique, protocol):
    lab = link()
    lab.apply({0: 0}, partitions=1, records=20)
    group = f"{unique}-billing"
    member = Consumer(
        {**lab.east.client_settings(), "group.id": group, "group.protocol": protocol,
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    member.subscribe([lab.topic])

    def reads(count):
        """The next records, committed."""
        read = [member.poll(30) for _ in range(count)]
        assert all(message is not None and message.error() is None for message in read), read
        member.commit(message=read[-1], asynchronous=False)

    reads(5)
    with lab.clusters() as clusters:
        move = GroupMove(clusters, clock=SystemClock())
        try:
            seen = move.round(commit=False)
            assert (seen.ready, seen.unread) == (False, {group: 15})
            reads(15)
            seen = move.round(commit=False)
            assert (seen.ready, seen.evidence()[group]["unread"]) == (True, 0)
            lab.write(lab.east, 3)
            assert move.round(commit=False).unread == {group: 3}
            member.close()  # nobody commits any more: what it has not read it reads over there
            wait_until(
                lambda: move.round(commit=False).ready, timeout_seconds=30, describe="an end of it"
            )
        finally:
            move.close()
