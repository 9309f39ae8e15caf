"""Roles that turn while Spark has a link's history, and Spark's commands on a link that was turned."""

import json
import threading
import time

import pytest
from role_changes import Operator

from replicator.cli.main import run_command
from replicator.clock import SystemClock
from replicator.control.backfill.handover import (
    read_control_past_open_transactions,
    take_from_lanes,
)
from replicator.control.roles.read import in_force
from replicator.errors import ReplicatorError
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.bulk.run import run_bulk
from replicator.spark.copy.bulk_plan import declarations, orders, survey
from replicator.spark.copy.task import copy_order
from replicator.spark.copy.tasks import SparkTasks
from replicator.testing import wait_until
from replicator.topology.file.load import require_plan

FLOW = "east->west"
BACK = "west->east"


def declared(plan, pair):
    """What a driver does before its tasks; it is gone afterwards."""
    found = survey(plan, pair)
    at_ms = round(time.time() * 1000)
    seeds = declarations(found, run="job.1", by="test", at_ms=at_ms)
    take_from_lanes(plan, pair, seeds, clock=SystemClock())
    return found, orders(plan, pair, found.ranges, run="job.1", at_once=1)


def states(plan, pair):
    control = read_control_past_open_transactions(plan, pair)
    return {seed.state for seed in control.seeds(pair.source.alias)}


def printed(capsys, *command):
    """The exit code of a command and what it says as JSON."""
    capsys.readouterr()
    code = run_command([*command, "-o", "json"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out.strip() else told.err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_switchover_waits_for_history_and_history_follows_the_link_when_it_turned(
    spark, east, west, scene, capsys
):
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.writer(east, rate=None, max_records=2_000).join()
    file = scene.topology()
    assert run_command(["apply", "-f", str(file), "--yes"]) == 0
    plan = require_plan(file)
    declared(plan, plan.pairs[0])
    scene.worker()  # for the group of workers that a switchover asks for; it leaves history alone
    operator = Operator(scene)
    refused = operator.run("switchover", to="west", manual_fence=True)
    assert refused.outcome == "refused"
    assert "Spark still copies" in str(refused)

    found = survey(plan, plan.pairs[0])
    outcome = run_bulk(
        SparkTasks(spark),
        plan,
        found,
        topology_file=file,
        by="test",
        clock=SystemClock(),
        shown=False,
    )
    assert outcome.manifest["records"] == 2_000
    writer = scene.writer(east, rate=300)
    scene.copying(FLOW)
    operator.on = {("fence", "began"): writer.stop}
    assert operator.run("switchover", to="west", manual_fence=True).outcome == "done"
    scene.expect(BACK)
    later = scene.writer(west, rate=300)
    later.wait_acked(500)
    scene.copying(BACK)
    later.stop()

    common = ("-f", str(file), "--flow")
    wait_until(
        lambda: printed(capsys, "verify", *common, BACK)[1]["total"]["compared"] >= later.acked,
        timeout_seconds=90,
        describe="a comparison of what was written after the turn",
    )
    code, told = printed(capsys, "verify", *common, BACK)
    assert (code, told["flow"], told["clean"]) == (0, BACK, True), told
    code, told = printed(capsys, "audit", *common, BACK)
    assert (code, told["complete"]) == (0, True), told
    code, told = printed(capsys, "bulk-sync", *common, BACK, "--yes")
    assert (code, told["unfinished"]) == (0, 0)
    for command in ("verify", "audit", "bulk-sync"):
        code, told = printed(capsys, command, *common, FLOW)
        assert code == 2, (command, told)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_failover_fences_the_tasks_of_a_copy(spark, east, west, scene):
    scene.active_passive(
        east, west, fencing={"method": "manual"}, throttle={"recordsPerSecond": 400}
    )
    scene.writer(east, rate=None, max_records=20_000).join()
    file = scene.topology()
    assert run_command(["apply", "-f", str(file), "--yes"]) == 0
    plan = require_plan(file)
    pair = plan.pairs[0]
    _, wanted = declared(plan, pair)
    ended: list[str] = []

    def task(order) -> None:
        try:
            copy_order(order)
            ended.append("done")
        except ReplicatorError as error:
            ended.append(error.code)

    tasks = [threading.Thread(target=task, args=(order,), daemon=True) for order in wanted]
    for each in tasks:
        each.start()
    wait_until(
        lambda: len(read_checkpoints(plan.topology, pair, client_id="test")) == len(wanted),
        timeout_seconds=60,
        describe="tasks that copy",
    )
    scene.worker()
    operator = Operator(scene)
    report = operator.run("failover", to="west", accept_loss=True, manual_fence=True)
    assert report.outcome == "done", report
    ends = scene.ends(west)
    assert states(plan, pair) == {"done"}
    for each in tasks:
        each.join(120)
    assert ended
    assert set(ended) <= {"FENCED", "REFUSED"}
    assert len(ended) == len(wanted)
    assert scene.ends(west) == ends, "a task wrote after the failover"
    assert not any(flow.id == FLOW for flow in in_force(plan).flows)
