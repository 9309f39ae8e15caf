"""Workers in containers as the chart runs them, between real brokers and under load."""

import time
from pathlib import Path

import pytest
from acceptance_worker import WorkerProcess
from pods import Kubelet, pod_of

from replicator.testing.kit.ports import free_ports

FLOW = "east->west"
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
def test_a_worker_copies_under_load_and_leaves_within_its_grace_period(
    east, west, scene, kubelet, security
):
    scene.active_passive(east, west)
    values = {
        "topologyText": scene.topology().read_text(),
        "http": {"port": free_ports(1)[0]},
        "podSecurity": security,
        "worker": {"processes": 1},
    }
    run = kubelet(values)

    def worker(number: int) -> WorkerPod:
        pod = WorkerPod(
            run, name="rel-replicator-all-0", log=scene.directory / f"worker-{number}.log"
        )
        scene.workers.append(pod)
        return pod

    first = worker(1)
    scene.writer(east, rate=2000)
    scene.copying(FLOW)
    status = first.pod.inside("cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert ("Uid:\t1000690000" if security else "Uid:\t10001") in status
    assert first.get("/readyz")["ok"]

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
