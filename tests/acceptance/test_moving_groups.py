"""A consumer group that moves to the other cluster goes on exactly where it was."""

import json
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from replicator.cli.main import run_command
from replicator.testing import wait_until

FLOW = "east->west"
STALE_SECONDS = 6.0
"""By promise at most an interval and a second old, 2 s here; a look at them takes a moment as well."""

ROUND_SECONDS = 45.0
"""When a sync must be seen on a machine that other tests keep busy."""


def shown(scene, group, capsys):
    """What `groups` says of one group: its state and its partitions."""
    capsys.readouterr()
    code = run_command(["groups", group, "-f", str(scene.topology()), "-o", "json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)["groups"] if code == 0 else []
    return found[0] if found else {"state": "", "partitions": [], "said": captured.err}


def synced(scene, group, capsys):
    """Waits until the group stands on the target where it stands on the source."""

    def there():
        each = shown(scene, group, capsys)
        return each["state"] == "synced" and all(
            one["recordsReread"] == 0 and one["grade"] == "exact" for one in each["partitions"]
        )

    wait_until(there, timeout_seconds=ROUND_SECONDS, describe=lambda: shown(scene, group, capsys))


def other(now, before):
    """The positions, once they are others."""
    return None if now == before else now


def positions(cluster, group):
    """Committed positions by partition."""
    asked = cluster.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(20).topic_partitions
    return {place.partition: place.offset for place in found if place.offset >= 0}


@pytest.fixture
def group(east, west, scene):
    """A group of the topic, which a worker copies while it is written."""
    scene.active_passive(east, west, sync={"groups": {"interval": "1s"}})
    scene.worker()
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    return f"{scene.name}-billing"


def test_a_consumer_moves_over_under_load_skips_nothing_and_reads_nothing_again(
    east, west, scene, group, capsys
):
    reader = scene.reader(east, group)
    reader.wait_delivered(1_500)
    reader.stop()
    synced(scene, group, capsys)
    moved = scene.reader(west, group)
    moved.wait_delivered(1_000)
    moved.stop()
    report = scene.settled()
    assert report.counts["deliveries"] >= 2_500, report.paragraph()


def test_positions_on_the_target_follow_a_busy_group_and_never_go_back(
    east, west, scene, group, capsys
):
    reader = scene.reader(east, group)
    reader.wait_delivered(1_000)
    wait_until(
        lambda: len(positions(west, group)) == 4,
        timeout_seconds=ROUND_SECONDS,
        describe="positions on the target",
    )
    last = positions(west, group)
    ages = []
    for _ in range(4):
        began = time.monotonic()
        now = wait_until(
            lambda before=last: other(positions(west, group), before),
            timeout_seconds=ROUND_SECONDS,
            describe=f"positions other than {last}",
        )
        ages.append(time.monotonic() - began)
        assert all(now[number] >= offset for number, offset in last.items())
        last = now
    assert sorted(ages)[1] < STALE_SECONDS, ages  # half of them at least
    reader.stop(commit=False)  # a crash: what was processed and not committed is read again
    synced(scene, group, capsys)
    moved = scene.reader(west, group)
    moved.wait_delivered(500)
    moved.stop()
    report = scene.settled()
    assert report.counts["deliveries"] >= 1_500, report.paragraph()


def test_a_group_at_work_on_the_target_keeps_its_own_position(east, west, scene, group, capsys):
    reader = scene.reader(east, group)
    reader.wait_delivered(500)
    reader.stop()
    synced(scene, group, capsys)
    moved = scene.reader(west, group)
    moved.wait_delivered(300)
    wait_until(
        lambda: shown(scene, group, capsys)["state"] == "active-on-target",
        timeout_seconds=ROUND_SECONDS,
        describe=lambda: shown(scene, group, capsys),
    )
    moved.stop()
    scene.settled()
