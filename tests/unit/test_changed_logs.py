"""A unit is not stored where the target's logs are no longer those that the lane looked at."""

import pytest

from replicator.batches.network.leaders import Leaders, LeadersSeen
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import LogChangedError
from replicator.formats.checkpoint import TargetClaim
from replicator.kafka.clients.metadata_log import MetadataLog
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.topology.plan import ClusterPlan

ID = "ZEbE3opuR9a-jNBd_yyicg"


def state(*, epoch=3, topic_id=ID, partition=0):
    made = PartitionState(
        PartitionWork("orders", partition, "copies", ""), source_alias="east", provenance="full"
    )
    made.target.adopt(TargetClaim(topic_id, 100, epoch, 40))
    return made


def told(*lines):
    log = MetadataLog()
    for line in lines:
        log.take(line)
    return log


def leader(epoch, partition=0):
    return f"[thrd:main]: Topic copies [{partition}] Leader 1 Epoch {epoch}"


@pytest.mark.parametrize(
    ("held", "lines", "why"),
    [
        (state(), [leader(4)], "has another leader now"),
        (state(), ["Topic copies changed id from AA to other"], "is another topic now"),
    ],
)
def test_a_changed_log_ends_the_session_once(held, lines, why):
    changed, now = ChangedLogs(), told(*lines)
    with pytest.raises(LogChangedError, match=f"copies/0 of the target {why}: the lane looks"):
        changed.confirm([held], now)
    # Where the lane looks the cluster may say something else for good, and it has looked.
    changed.confirm([held], now)
    now.take(leader(9))
    with pytest.raises(LogChangedError):
        changed.confirm([held], now)


@pytest.mark.parametrize(
    ("held", "lines"),
    [
        (state(), []),
        (state(), [leader(3), "Topic copies changed id from AA to ZEbE3opuR9a+jNBd/yyicg"]),
        (state(), [leader(2)]),
        (state(epoch=-1), [leader(4)]),
        (state(topic_id=""), ["Topic copies changed id from AA to other"]),
        (state(), [leader(4, partition=1)]),
        (state(), ["Topic copies [0] Leader -1 Epoch -1", "3 brokers, 1 topics"]),
    ],
)
def test_what_did_not_change_or_is_not_known_is_stored(held, lines):
    ChangedLogs().confirm([held], told(*lines))


def test_all_changed_partitions_are_looked_at_together():
    states = [state(partition=number) for number in range(3)]
    changed, now = ChangedLogs(), told(*(leader(4, number) for number in range(3)))
    with pytest.raises(LogChangedError, match=r"copies/0 .*, and 2 more changed"):
        changed.confirm(states, now)
    changed.confirm(states, now)


def test_the_watched_producer_hears_of_leaders():
    metadata = MetadataLog()
    watch = CoordinatorWatch(metadata=metadata)
    watch.log(10, "%s [%s] %s", "METADATA", "producer", leader(7))
    assert metadata.epoch(("copies", 0)) == 7
    assert watch.settings() == {"logger": watch, "debug": "metadata", "log_level": 7}


def test_whole_batches_know_it_from_their_own_questions():
    leaders = Leaders(ClusterPlan("west", ("west:9092",)), client_id="test")
    assert (leaders.epoch(("copies", 0)), leaders.topic_id("copies")) == (-1, "")
    leaders.seen = LeadersSeen({("copies", 0): (1, 4)}, {}, {"copies": bytes(15) + b"\x01"})
    assert leaders.epoch(("copies", 0)) == 4
    assert leaders.topic_id("copies") == "AAAAAAAAAAAAAAAAAAAAAQ"
    leaders.seen = LeadersSeen({}, {}, {"copies": bytes(16)})
    assert leaders.topic_id("copies") == "", "a broker without ids"


def test_what_a_session_was_ended_for_and_what_a_look_showed_is_known():
    changed, place = ChangedLogs(), ("copies", 0)
    assert changed.met(place) == (-1, "")
    with pytest.raises(LogChangedError):
        changed.confirm([state()], told(leader(4)))
    assert changed.met(place)[0] == 4
    changed.looked(place, 5, ID)
    assert changed.met(place) == (5, ID)
    changed.forget(place)
    assert changed.met(place) == (-1, "")
