"""A consumer group that moves to the other cluster goes on exactly where it was."""

import json
import time

from confluent_kafka import ConsumerGroupTopicPartitions

from replicator.cli.main import run_command
from replicator.testing import wait_until

FLOW = "east->west"
STALE_SECONDS = 6.0
"""The promise: positions on the target are never older than this."""

ROUND_SECONDS = 15.0
"""A look at a group takes a moment itself, and the machine may be busy: when a sync must be seen."""


def shown(scene, group, capsys):
    """What `groups` says of one group: its state and its partitions."""
    capsys.readouterr()
    code = run_command(["groups", group, "-f", str(scene.topology()), "-o", "json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    found = json.loads(captured.out)["groups"]
    return found[0] if found else {"state": "", "partitions": []}


def synced(scene, group, capsys):
    """Waits until the group stands on the target where it stands on the source."""

    def there():
        each = shown(scene, group, capsys)
        return each["state"] == "synced" and all(
            one["recordsReread"] == 0 and one["grade"] == "exact" for one in each["partitions"]
        )

    wait_until(there, timeout_seconds=ROUND_SECONDS, describe=lambda: shown(scene, group, capsys))


def positions(cluster, group):
    """Committed positions by partition."""
    asked = cluster.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(20).topic_partitions
    return {place.partition: place.offset for place in found if place.offset >= 0}


def test_a_consumer_moves_over_under_load_skips_nothing_and_reads_nothing_again(
    east, west, scene, capsys
):
    scene.active_passive(east, west)
    group = f"{scene.name}-billing"
    scene.worker()
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    reader = scene.reader(east, group)
    reader.wait_delivered(1_500)
    reader.stop()
    synced(scene, group, capsys)
    moved = scene.reader(west, group)
    moved.wait_delivered(1_000)
    moved.stop()
    report = scene.settled()
    assert report.counts["deliveries"] >= 2_500, report.paragraph()


def test_positions_on_the_target_follow_a_busy_group_and_are_never_ahead_of_it(
    east, west, scene, capsys
):
    scene.active_passive(east, west)
    group = f"{scene.name}-billing"
    scene.worker()
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    reader = scene.reader(east, group)
    reader.wait_delivered(1_000)
    wait_until(
        lambda: len(positions(west, group)) == 4,
        timeout_seconds=ROUND_SECONDS,
        describe="positions on the target",
    )
    changes = []
    last = positions(west, group)
    began = time.monotonic()

    def has_moved_three_times():
        nonlocal last
        now = positions(west, group)
        if now != last:
            assert all(now[number] >= offset for number, offset in last.items())
            changes.append(time.monotonic())
            last = now
        return len(changes) >= 3

    wait_until(has_moved_three_times, timeout_seconds=60, describe=lambda: f"moves: {changes}")
    gaps = [after - before for before, after in zip([began, *changes], changes, strict=False)]
    reader.stop(commit=False)  # a crash: what was processed and not committed is read again
    synced(scene, group, capsys)
    moved = scene.reader(west, group)
    moved.wait_delivered(500)
    moved.stop()
    report = scene.settled()
    assert report.counts["deliveries"] >= 1_500, report.paragraph()
    assert sorted(gaps)[1] <= STALE_SECONDS + 4, gaps


def test_a_group_at_work_on_the_target_keeps_its_own_position(east, west, scene, capsys):
    scene.active_passive(east, west)
    group = f"{scene.name}-billing"
    scene.worker()
    scene.writer(east, rate=300)
    scene.copying(FLOW)
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
