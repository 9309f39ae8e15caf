"""SIGKILL to the driver in the middle of a copy, again and again, while writers write."""

import json
import sys

import pytest

from replicator.control.backfill.handover import read_control_past_open_transactions
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.topology.file.load import require_plan

FLOW = "east->west"
RECORDS = 2_000_000


class Driver:
    """``replicator bulk-sync`` as people start it."""

    def __init__(self, file, folder, number):
        self.manifest = folder / f"manifest-{number}.json"
        self.log = folder / f"driver-{number}.log"
        self._child = start_child(
            [
                sys.executable, "-m", "replicator", "bulk-sync", "-f", file, "--flow", FLOW,
                "--yes", "--master", "local[2]", "--manifest", self.manifest,
            ],
            output=self.log,
        )  # fmt: skip

    def kill(self):
        assert self._child.exit_code() is None, self.log.read_text()
        self._child.kill()

    def ended(self, timeout_seconds):
        self._child.wait(timeout_seconds)
        assert self._child.exit_code() == 0, self.log.read_text()
        return json.loads(self.manifest.read_text())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("records", [20_000, RECORDS])
def test_a_copy_whose_driver_is_killed_twice_is_finished_exactly_once(
    east, west, scene, tmp_path, records
):
    # A budget makes sure that the copy is not over before the driver can be killed.
    scene.active_passive(east, west, throttle={"recordsPerSecond": records // 20})
    scene.writer(east, rate=None, max_records=records)
    scene.written(records, timeout_seconds=1800)
    scene.writer(east, rate=50)
    file = scene.topology()
    plan = require_plan(file)
    pair = plan.pairs[0]

    def copied() -> int:
        return sum(
            each.offset for each in read_checkpoints(plan.topology, pair, client_id="test").values()
        )

    before = 0
    for number in (1, 2):
        driver = Driver(file, tmp_path, number)
        wait_until(
            lambda before=before: copied() > before + records // 20,
            timeout_seconds=900,
            interval_seconds=0.3,
            describe=lambda driver=driver: f"a driver that copies: {driver.log.read_text()}",
        )
        driver.kill()
        assert {
            seed.state for seed in read_control_past_open_transactions(plan, pair).seeds("east")
        } == {"seeding"}
        before = copied()
        if number == 1:
            scene.worker()  # its lanes must leave alone what a dead driver holds
    assert scene.asked().status()[FLOW]["state"] == "seeding"
    told = Driver(file, tmp_path, 3).ended(2400)
    assert sum(each["end"] - each["start"] for each in told["ranges"]) >= records
    scene.copying(FLOW)
    report = scene.settled(timeout_seconds=900)
    assert report.counts["acknowledged"] > records
