"""What the chart relies on: workers as pods of a StatefulSet, restarted, starved of a cluster, edited."""

import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from acceptance_worker import GRACE_SECONDS, WorkerProcess
from named_workers import ready, sharing

from replicator.testing import wait_until

FLOW = "east->west"
MOVES = {"lanes assigned", "lanes given up", "lanes lost"}
ATTEMPTS = 3
KEPT_SECONDS = 3.0
"""A restart that takes longer than the group's session of 6 s shares lanes anew, as it should, and a busy
machine can make it that long. Nobody takes them sooner: the session counts from the last heartbeat."""


@pytest.mark.slow
def test_a_pod_that_restarts_gets_its_lanes_back_and_moves_no_others(east, west, scene):
    scene.active_passive(east, west)
    stays, restarts = (scene.worker("--worker-id", name) for name in ("w-0", "w-1"))
    scene.writer(east, rate=500)
    for _ in range(ATTEMPTS):
        before = sharing(scene, west, "w-0", "w-1")
        scene.copying(FLOW)
        told = len(moves_of(stays))
        restarts.terminate()
        assert restarts.exit_code(timeout_seconds=GRACE_SECONDS) == 0
        left_at = time.time()
        restarts = scene.worker("--worker-id", "w-1")
        ready(restarts, True)
        after = sharing(scene, west, "w-0", "w-1")
        moved = moves_of(stays)[told:]
        if not moved:
            assert after == before
            break
        taken_at = datetime.fromisoformat(moved[0]["at"]).timestamp()
        assert moved[0]["event"] == "lanes assigned", "lanes of the pod that stayed have moved"
        assert taken_at - left_at > KEPT_SECONDS, "its lanes were not kept for it"
    scene.copying(FLOW)
    scene.settled()


@pytest.mark.slow
def test_readiness_and_check_follow_a_cluster_that_goes_and_comes(clusters, scene):
    east, west = clusters("east", "west")
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east)
    scene.copying(FLOW)
    ready(worker, True)
    code, told = check(worker, timeout_seconds=60)
    assert code == 0, told
    assert told["links"][0]["canaries"] > 0
    assert told["links"][0]["lost"] == 0

    west.kill()
    reasons = ready(worker, False)
    assert any("'west'" in reason for reason in reasons), reasons
    assert worker.get("/livez")["ok"], "a restart of the pod would mend nothing"
    code, told = check(worker, timeout_seconds=1)
    assert code == 1
    assert any("'west'" in problem for problem in told["problems"]), told

    west.restart()
    ready(worker, True)
    scene.copying(FLOW)
    scene.settled()


def test_a_topology_is_followed_when_the_kubelet_swaps_the_link_to_it(east, west, scene, tmp_path):
    scene.active_passive(east, west)
    mount = tmp_path / "mount"
    mount.mkdir()
    document = json.loads(scene.topology().read_text())
    as_kubelet(mount, document)
    worker = WorkerProcess(
        mount / "topology.yaml", log=tmp_path / "pod.log", options=("--processes", "1")
    )
    scene.workers.append(worker)
    scene.writer(east)
    scene.copying(FLOW)
    lane_processes = worker.lane_pids()

    document["spec"]["links"][0]["filters"] = [{"dropIf": {"keyPrefix": "never-there"}}]
    as_kubelet(mount, document)
    wait_until(
        lambda: any(line["event"] == "topology reloaded" for line in worker.log_lines()),
        timeout_seconds=20.0,
        describe="the edited topology to be taken",
    )
    (link,) = worker.get("/api/v1/topology")["links"]
    assert "never-there" in json.dumps(link)
    scene.copying(FLOW)
    assert worker.lane_pids() == lane_processes, "nothing was restarted"
    scene.settled()


def test_an_edit_is_not_followed_where_pods_are_rolled_instead(east, west, scene, tmp_path):
    """`reload: restart`: beside a worker that has followed the edit, one with `--no-watch` has not."""
    scene.active_passive(east, west)
    mount = tmp_path / "mount"
    mount.mkdir()
    document = json.loads(scene.topology().read_text())
    as_kubelet(mount, document)
    told, rolled = (
        WorkerProcess(mount / "topology.yaml", log=tmp_path / f"{name}.log", options=options)
        for name, options in (
            ("watch", ("--processes", "1")),
            ("restart", ("--processes", "1", "--no-watch")),
        )
    )
    scene.workers += [told, rolled]
    for worker in (told, rolled):
        ready(worker, True)

    document["spec"]["links"][0]["filters"] = [{"dropIf": {"keyPrefix": "never-there"}}]
    as_kubelet(mount, document)
    wait_until(
        lambda: any(line["event"] == "topology reloaded" for line in told.log_lines()),
        timeout_seconds=20.0,
        describe="the edited topology to be taken",
    )
    assert "never-there" in json.dumps(told.get("/api/v1/topology")["links"])
    assert "never-there" not in json.dumps(rolled.get("/api/v1/topology")["links"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_rolling_restart_of_three_workers_under_load_costs_nothing(east, west, scene):
    scene.active_passive(east, west)
    names = [f"w-{number}" for number in range(3)]
    pods = {name: scene.worker("--worker-id", name) for name in names}
    sharing(scene, west, *names)
    scene.writer(east, rate=2_000)
    scene.copying(FLOW)
    for name in reversed(
        names
    ):  # as a StatefulSet does it, one after the other, waiting for readiness
        pods[name].terminate()
        assert pods[name].exit_code(timeout_seconds=GRACE_SECONDS) == 0
        pods[name] = scene.worker("--worker-id", name)
        ready(pods[name], True)
        scene.copying(FLOW)
    sharing(scene, west, *names)
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_at_full_load_a_worker_drains_within_its_grace_period(east, west, scene):
    scene.active_passive(east, west)
    first = scene.worker("--worker-id", "w-0")
    sharing(scene, west, "w-0")
    for _ in range(2):
        scene.writer(east, rate=None)  # as fast as it goes, until the worker is gone
    scene.copying(FLOW)
    first.terminate()
    assert first.exit_code(timeout_seconds=GRACE_SECONDS) == 0
    assert not first.group_pids()
    scene.stop_writing()
    scene.worker("--worker-id", "w-0")
    scene.settled(timeout_seconds=240.0)


# -- steps --------------------------------------------------------------------------------------


def moves_of(worker) -> list[dict]:
    """What a worker says of lanes that came to it or left it."""
    return [line for line in worker.log_lines() if line["event"] in MOVES and line["lanes"]]


def check(worker, *, timeout_seconds: float):
    """What `replicator check` says of the worker, as `helm test` runs it."""
    done = subprocess.run(
        [
            sys.executable, "-m", "replicator", "check", "--url", worker.url(),
            "--timeout", f"{timeout_seconds:g}", "-o", "json",
        ],
        capture_output=True, text=True, check=False, timeout=timeout_seconds + 60,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


def as_kubelet(mount: Path, document: dict) -> None:
    """Writes a ConfigMap as the kubelet does: a new directory, and one link swapped to it."""
    number = len(list(mount.glob("..20*")))
    fresh = mount / f"..2026_{number:04}"
    fresh.mkdir()
    (fresh / "topology.yaml").write_text(json.dumps(document))
    link = mount / "..data_tmp"
    link.symlink_to(fresh.name)
    link.rename(mount / "..data")
    if number:
        old = mount / f"..2026_{number - 1:04}"
        (old / "topology.yaml").unlink()
        old.rename(mount / f"..2026_{number - 1:04}-gone")
    else:
        (mount / "topology.yaml").symlink_to("..data/topology.yaml")
