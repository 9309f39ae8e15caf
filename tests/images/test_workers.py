"""Workers in containers as the chart runs them, between real brokers and under load."""

import time
from copy import deepcopy
from pathlib import Path

import pytest
from acceptance_worker import WorkerProcess
from pods import Kubelet, pod_of

from replicator.testing import wait_until
from replicator.testing.kit.ports import free_ports

FLOW = "east->west"
AT_WORK = 3
"""The exit code of a command that others at work hold up."""

PLATFORM_CHOOSES = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}


class WorkerPod(WorkerProcess):
    """The worker of a StatefulSet's pod; what a scene asks of a worker, it answers."""

    def __init__(self, kubelet: Kubelet, *, name: str, log: Path) -> None:
        self.log = log
        self._paused = False
        self._url = ""
        self.template = pod_of(kubelet.rendered, "StatefulSet", "-all")
        self.pod = kubelet.start(self.template, name=name, log=log)
        self._child = self.pod.child

    def terminate(self) -> None:
        self.pod.signal("TERM")

    def end(self) -> None:
        self.pod.end()


@pytest.mark.parametrize("security", [{}, PLATFORM_CHOOSES], ids=["as-shipped", "any-user"])
def test_a_worker_copies_under_load_is_checked_and_leaves_within_its_grace_period(
    east, west, scene, kubelet, security
):
    token = "a-token-of-this-test" if security else ""
    scene.active_passive(east, west)
    values = {
        "topologyText": scene.topology().read_text(),
        "http": {"port": free_ports(1)[0], "token": {"existingSecret": "api" if token else ""}},
        "podSecurity": security,
        "worker": {"processes": 1},
    }
    run = kubelet(values, secrets={"api": {"token": token}})

    def worker(number: int) -> WorkerPod:
        pod = WorkerPod(
            run, name="rel-replicator-all-0", log=scene.directory / f"worker-{number}.log"
        )
        pod.headers = {"Authorization": f"Bearer {token}"} if token else {}
        scene.workers.append(pod)
        return pod

    first = worker(1)
    scene.writer(east, rate=2000)
    scene.copying(FLOW)
    status = first.pod.inside("cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert ("Uid:\t1000690000" if security else "Uid:\t10001") in status
    # As kubelet does: lanes that are still taking over make the first answers a no.
    wait_until(
        lambda: first.get("/readyz")["ok"],
        timeout_seconds=60.0,
        describe=lambda: f"the worker to be ready, but: {first.get('/readyz')}",
    )
    code, said = run.finish(pod_of(run.rendered, "Pod", "-test"), name="test", seconds=180)
    assert code == 0, said
    assert "link-0" in said, "a canary of every link made its round trip"

    began = time.monotonic()
    first.terminate()
    (container,) = first.template["spec"]["containers"]
    (grace,) = (
        float(each.partition("=")[2]) for each in container["args"] if each.startswith("--grace=")
    )
    assert first.exit_code(timeout_seconds=grace) == 0, first.log_tail()
    assert time.monotonic() - began < grace

    worker(2)
    scene.copying(FLOW)
    scene.settled()

    scene.workers[-1].terminate()
    assert scene.workers[-1].exit_code(timeout_seconds=grace) == 0
    said = cleaned_up(run, first.template, "--dry-run")
    assert "Nothing is left" not in said
    cleaned_up(run, first.template, "--yes")
    assert "Nothing is left" in cleaned_up(run, first.template, "--dry-run")


def cleaned_up(run, template, *options):
    """What the command says in a copy of a worker's pod, as the chart's page keeps one; the group forgets workers first."""
    copy = deepcopy(template)
    (container,) = copy["spec"]["containers"]
    container["command"] = ["replicator", "cleanup", "--link", "link-0", *options]
    del container["args"]
    told = {}

    def done():
        told["code"], told["said"] = run.finish(copy, name="cleanup", seconds=120)
        return told["code"] != AT_WORK

    wait_until(done, timeout_seconds=60.0, describe=lambda: told["said"])
    assert told["code"] == 0, told["said"]
    return told["said"]
