"""Workers as the chart confines them: nothing to write to, nobody's user id, a limit of memory."""

import shutil
import tempfile
from pathlib import Path

import pytest
import yaml
from acceptance_worker import GRACE_SECONDS, WorkerProcess
from container import USER_ID, proportional_bytes, why_not

from replicator.testing import RecordStyle, wait_until

FLOW = "east->west"
ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024


@pytest.fixture
def scratch():
    """The one folder that can be written; not below the test's own, which nobody else may enter."""
    place = Path(tempfile.mkdtemp(prefix="replicator-scratch-"))
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_worker_needs_no_writable_root_and_no_known_user(east, west, scene, scratch, tmp_path):
    scene.active_passive(east, west)
    topology = scratch / "topology.yaml"
    topology.write_text(scene.topology().read_text())
    worker = WorkerProcess(
        topology, log=tmp_path / "worker.log", options=("--processes", "1"), container=scratch
    )
    scene.workers.append(worker)
    scene.writer(east)
    scene.copying(FLOW)
    for pid in worker.group_pids():
        status = Path(f"/proc/{pid}/status").read_text()
        assert f"Uid:\t{USER_ID}\t" in status
        assert "CapEff:\t0000000000000000" in status
    scene.stop_writing()
    worker.terminate()
    assert worker.exit_code(timeout_seconds=GRACE_SECONDS) == 0
    assert [path for path in scratch.iterdir() if path != topology] == [], "it left nothing behind"
    scene.worker()
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_stays_under_the_charts_default_limit_at_full_speed(east, west, scene, request):
    values = yaml.safe_load((ROOT / "helm/replicator/values.yaml").read_text())["worker"]
    limit = int(values["resources"]["limits"]["memory"].removesuffix("Gi")) * 1024 * MIB
    scene.active_passive(east, west)
    for _ in range(2):
        scene.writer(east, rate=None, max_records=40_000, style=RecordStyle(value_bytes=2_000))
    scene.written(75_000, timeout_seconds=240.0)
    worker = scene.worker("--processes", str(values["processes"]))
    ends = scene.source_ends(FLOW)
    highest = 0

    def caught_up() -> bool:
        nonlocal highest
        positions = scene.positions(
            FLOW
        )  # waits for the worker to answer; looked at before, it holds nothing
        highest = max(highest, sum(map(proportional_bytes, worker.group_pids())))
        return all(positions.get(partition, 0) >= end for partition, end in ends.items())

    wait_until(caught_up, timeout_seconds=240.0, interval_seconds=0.2, describe="all of it copied")
    request.node.user_properties.append(("highest_mib", round(highest / MIB)))
    assert 100 * MIB < highest < limit
    scene.settled(timeout_seconds=240.0)
