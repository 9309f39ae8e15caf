"""Flux's helm-controller installs, tests, changes, takes back and removes the release of deploy/examples.

It runs against a real API server. There are no nodes: hooks, tests and workers end and get ready as a test says. And
there is no source-controller: the test says where the chart's package is, as that would once it has fetched it.
"""

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from api_server import ApiServer, definition_file, find_programs, running_api_server
from chart_engine import CHART, ROOT

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.testing.kit.ports import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPACE = "replication"
DEFINITIONS = (
    *(f"{plural}.source.toolkit.fluxcd.io" for plural in ("helmrepositories", "helmcharts", "ocirepositories")),
    "helmreleases.helm.toolkit.fluxcd.io",
    "podmonitors.monitoring.coreos.com",
    "prometheusrules.monitoring.coreos.com",
)  # fmt: skip
FLUX_SECONDS = 180.0
HOOK = "replicator-validate"
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]


@dataclass(frozen=True)
class Flux:
    """An API server with Flux's helm-controller, and where the chart's package is."""

    server: ApiServer
    package: Path
    address: str
    log: Path

    def fetch(self) -> None:
        """Tells of each HelmChart where its package is, as the source-controller does."""
        digest = hashlib.sha256(self.package.read_bytes()).hexdigest()
        now, url = "2026-01-01T00:00:00Z", f"http://{self.address}/{self.package.name}"
        for name, chart in self.server.get("helmcharts", SPACE).items():
            if "artifact" in chart.get("status", {}):
                continue
            generation = chart["metadata"]["generation"]
            self.server.set_status("helmchart", name, SPACE, {
                "observedGeneration": generation, "url": url,
                "artifact": {
                    "digest": f"sha256:{digest}", "lastUpdateTime": now, "path": self.package.name,
                    "revision": VERSION, "url": url,
                },
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "ChartPullSucceeded", "message": "",
                    "lastTransitionTime": now, "observedGeneration": generation,
                }],
            })  # fmt: skip


@pytest.fixture(scope="module")
def flux(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flux")
    program = find_programs("helm-controller")["helm-controller"]
    for kind in DEFINITIONS:
        definition_file(kind)
    children = []
    with running_api_server(folder) as server:
        server.define(*DEFINITIONS)
        assert server.run("helm", "package", str(CHART), folder=folder).code == 0
        packages, *listen = (f"127.0.0.1:{port}" for port in free_ports(3))
        log = folder / "helm-controller.log"
        try:
            children.append(start_child(
                [sys.executable, "-m", "http.server", packages.split(":")[1], "--bind=127.0.0.1", f"--directory={folder}"],
                output=folder / "packages.log",
            ))  # fmt: skip
            children.append(start_child(
                [program, "--watch-all-namespaces", f"--metrics-addr={listen[0]}", f"--health-addr={listen[1]}"],
                output=log, environment={"KUBECONFIG": server.environment("admin")["KUBECONFIG"], "RUNTIME_NAMESPACE": "flux-system"},
            ))  # fmt: skip
            yield Flux(server, folder / f"replicator-{VERSION}.tgz", packages, log)
        finally:
            for child in children:
                child.kill()


def examples():
    """The objects of deploy/examples, as `kubectl apply -k` takes them."""
    built = subprocess.run(
        ["kubectl", "kustomize", ROOT / "deploy/examples"], capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    return {each["kind"]: each for each in yaml.safe_load_all(built)}


def apply(server, objects):
    server.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(objects.values()))


def change(objects, **values):
    """Other values in the ConfigMap that the release reads."""
    data = objects["ConfigMap"]["data"]
    data["values.yaml"] = yaml.safe_dump({**yaml.safe_load(data["values.yaml"]), **values})


def until(flux, there, *, failing=""):
    """Until something is so; hooks and tests pass meanwhile, but the one that is named."""

    def played():
        flux.fetch()
        flux.server.play(SPACE, failing=failing)
        return there()

    wait_until(
        played, timeout_seconds=FLUX_SECONDS, interval_seconds=1.0,
        describe=lambda: json.dumps(release(flux.server)["status"], indent=1) + flux.log.read_text()[-3000:],
    )  # fmt: skip


def release(server):
    return server.get("helmreleases", SPACE)["replicator"]


def true_of(server):
    """Conditions of the release that hold, with their reasons."""
    told = release(server)["status"].get("conditions", [])
    return {each["type"]: each["reason"] for each in told if each["status"] == "True"}


def workers(server):
    """Workers that the set should have, and the version of that object."""
    (found,) = server.get("statefulsets", SPACE).values() or [{"spec": {"replicas": 0}, "metadata": {}}]  # fmt: skip
    return found["spec"]["replicas"], found["metadata"].get("resourceVersion")


def test_flux_installs_tests_changes_takes_back_and_removes_the_example(flux):
    server = flux.server
    server.namespace(SPACE)
    server.kubectl("create", "priorityclass", "platform-critical", "--value=1000")
    server.kubectl(
        "create", "secret", "docker-registry", "registry", "-n", SPACE, "--docker-server=registry.example.com",
        "--docker-username=replicator", "--docker-password=unused",
    )  # fmt: skip
    objects = examples()
    apply(server, objects)
    until(flux, lambda: true_of(server).keys() >= {"Ready", "TestSuccess"})
    assert workers(server)[0] == 3
    before = workers(server)

    asked = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}}
    server.kubectl("patch", "helmrelease", "replicator", "-n", SPACE, "--type=merge", "-p", json.dumps(asked))  # fmt: skip
    until(flux, lambda: release(server)["status"].get("lastHandledReconcileAt") == "now")
    assert workers(server) == before, "the same values change nothing"
    assert len(release(server)["status"]["history"]) == 1

    change(objects, workers=[{"cluster": "west", "replicas": 4}])
    apply(server, objects)
    until(flux, lambda: workers(server)[0] == 4)
    until(flux, lambda: true_of(server).get("Ready") == "TestSucceeded")

    change(objects, workers=[{"cluster": "west", "replicas": 9}])
    apply(server, objects)
    until(flux, lambda: "Remediated" in true_of(server), failing=HOOK)
    assert true_of(server)["Remediated"] == "RollbackSucceeded"
    assert workers(server)[0] == 4

    server.kubectl("delete", "helmrelease", "replicator", "-n", SPACE, "--timeout=50s")
    assert server.get("statefulsets", SPACE) == {}
    assert "panic" not in flux.log.read_text()
