"""Drills in containers: on a real link as the chart's CronJob runs them, and in the sandbox."""

import json
import shutil

import pytest
import yaml
from pods import pod_of

from replicator import __version__
from replicator.testing.cluster.brokers.class_archive import class_archive_flags
from replicator.testing.cluster.brokers.jars import broker_jars

FLOW = "east->west"
PLATFORM_CHOOSES = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
DRILL_SECONDS = 240.0


def drill(link, kind):
    return {
        "apiVersion": "replicator/v1", "kind": "Drill", "metadata": {"name": "rehearsal"},
        "spec": {
            "link": link, "kind": kind, "load": {"recordsPerSecond": 100, "before": "1s", "after": "1s"},
            "limits": {"maxRtoSeconds": 120, "maxLostRecords": 0},
        },
    }  # fmt: skip


@pytest.mark.parametrize("security", [{}, PLATFORM_CHOOSES], ids=["as-shipped", "any-user"])
def test_the_charts_drill_runs_on_a_real_link(east, west, scene, kubelet, security):
    scene.clusters(east, west, topic_on=[east])
    topics = {"include": [scene.topic, "replicator-drill.*"]}
    scene.link(
        "active-passive", active="east", passive="west", flows=[FLOW], topics=topics,
        fencing={"method": "manual"},
    )  # fmt: skip
    scene.worker()
    scene.writer(east, rate=100)
    scene.copying(FLOW)
    scene.stop_writing()  # applications of a link whose fence is a word are stopped by somebody
    values = {
        "topologyText": scene.topology().read_text(),
        "podSecurity": security,
        "drills": [{"name": "m", "schedule": "0 6 1 * *", "drill": drill("link-0", "switchover")}],
    }
    run = kubelet(values)
    pod = pod_of(run.rendered, "CronJob", "-drill-m")
    code, said = run.finish(pod, name="drill", seconds=DRILL_SECONDS)
    assert code == 0, said
    assert "PASSED" in said
    reports = [path for path in run.folder.rglob("*.json") if "reports" in str(path)]
    assert [json.loads(path.read_text())["verdict"] for path in reports] == ["pass"]


def test_a_drill_in_the_sandbox_needs_no_more_than_the_spark_image_and_kafkas_jars(
    images, tmp_path
):
    """Java is in that image; the jars come from a cache that any user may write to."""
    class_archive_flags(broker_jars())
    cache = tmp_path / "cache"
    home = broker_jars().directory.parent
    shutil.copytree(home / "broker", cache / home.name / "broker")
    tmp_path.chmod(0o755)
    for each in (cache, *cache.rglob("*")):
        each.chmod(0o777)
    file = tmp_path / "drill.yaml"
    file.write_text(yaml.safe_dump(drill("plain", "worker-crash")))
    file.chmod(0o644)
    done = images.confined(
        f"replicator/spark:{__version__}",
        "drill", "run", "/drill.yaml", "--sandbox", "--reports=/tmp/reports",
        user="1000690000:0", check=False, timeout=DRILL_SECONDS,
        flags=("--env=REPLICATOR_CACHE=/cache", f"--volume={cache}:/cache",
               f"--volume={file}:/drill.yaml:ro"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
