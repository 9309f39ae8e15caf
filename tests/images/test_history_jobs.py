"""Jobs on history in the Spark image: each as the chart's own manifest calls it, between real brokers."""

import json

import pytest
from pods import pod_of
from producing import produce
from topology_files import active_passive, topology_text
from whole_topic import read_topic

JOB_SECONDS = 300.0
RECORDS = 2000
PLATFORM_CHOOSES = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}


@pytest.fixture(params=[{}, PLATFORM_CHOOSES], ids=["as-shipped", "any-user"])
def release(request, east, west, unique, kubelet):
    """A release with a seed, a comparison and an archive of one topic with records."""
    topic = f"t.{unique}"
    east.create_topic(topic, partitions=3)
    produce(east, topic, ({"key": b"k%d" % n, "value": b"v%d" % n} for n in range(RECORDS)))
    claim = {"name": "reports", "persistentVolumeClaim": {"claimName": "reports"}}
    return topic, kubelet(
        {
            "topologyText": topology_text(unique, (east, west), [active_passive([topic])]),
            "podSecurity": request.param,
            "spark": {
                "mode": "job",
                "master": "local[2]",
                "jobs": [
                    {"name": "seed", "command": "bulk-sync", "flow": "east->west", "topics": [topic]},
                    {
                        "name": "compare", "command": "verify", "flow": "east->west", "topics": [topic],
                        "schedule": "0 3 * * *", "args": ["--report=/var/reports/verify"],
                    },
                    {
                        "name": "keep", "command": "archive", "cluster": "east", "topics": [topic],
                        "archive": "/var/reports/archive", "schedule": "30 * * * *",
                    },
                ],
                "extraVolumes": [claim],
                "extraVolumeMounts": [{"name": "reports", "mountPath": "/var/reports"}],
            },
        }
    )  # fmt: skip


def test_a_seed_a_comparison_and_an_archive_run_as_the_chart_calls_them(release, west, unique):
    topic, run = release
    seed = next(
        each for each in run.rendered.kind("Job") if "-seed" in each["metadata"]["name"]
    )  # fmt: skip
    code, said = run.finish(seed["spec"]["template"], name="seed", seconds=JOB_SECONDS)
    assert code == 0, said
    assert len(read_topic(west, topic)) == RECORDS

    compare = pod_of(run.rendered, "CronJob", "-compare")
    code, said = run.finish(compare, name="compare", seconds=JOB_SECONDS)
    assert code == 0, said
    assert list((run.folder / "claims/reports/verify").iterdir())

    keep = pod_of(run.rendered, "CronJob", "-keep")
    code, said = run.finish(keep, name="keep", seconds=JOB_SECONDS)
    assert code == 0, said
    manifests = list((run.folder / "claims/reports/archive").rglob("*.json"))
    assert manifests
    assert all(json.loads(each.read_text()) for each in manifests)
