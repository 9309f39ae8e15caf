"""Flux's own controllers install, change, take back and remove the release of deploy/examples, from an OCI registry.

They run against a real API server. There are no nodes: hooks, tests and workers end and get ready as a test says.
"""

import json
import subprocess

import pytest
import yaml
from api_server import ApiServer, definition_file, find_programs, running_api_server
from chart_engine import CHART, ROOT

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.testing.kit.ports import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPACE = "replication"
SOURCES = ("helmrepositories", "helmcharts", "ocirepositories", "gitrepositories", "buckets", "externalartifacts")  # fmt: skip
DEFINITIONS = (
    *(f"{plural}.source.toolkit.fluxcd.io" for plural in SOURCES),
    "helmreleases.helm.toolkit.fluxcd.io",
    "podmonitors.monitoring.coreos.com",
    "prometheusrules.monitoring.coreos.com",
)
FLUX_SECONDS = 180.0
HOOK = "replicator-validate"


@pytest.fixture(scope="module")
def flux(tmp_path_factory):
    """An API server, a registry that holds the chart, and Flux: the server and the registry's address."""
    folder = tmp_path_factory.mktemp("flux")
    programs = find_programs("crane", "source-controller", "helm-controller")
    for kind in DEFINITIONS:
        definition_file(kind)
    children = []

    def start(name, *arguments, **environment):
        children.append(start_child([programs[name], *arguments], output=folder / f"{name}.log", environment=environment))  # fmt: skip

    with running_api_server(folder) as server:
        server.define(*DEFINITIONS)
        ports = iter(f"127.0.0.1:{port}" for port in free_ports(6))
        registry, storage = next(ports), next(ports)
        try:
            start("crane", "registry", "serve", "--address", registry)
            push_chart(server, registry, folder)
            config = server.environment("admin")["KUBECONFIG"]
            for name, more in (
                ("source-controller", [f"--storage-path={folder}", f"--storage-addr={storage}", f"--storage-adv-addr={storage}"]),
                ("helm-controller", []),
            ):  # fmt: skip
                listen = [f"--metrics-addr={next(ports)}", f"--health-addr={next(ports)}"]
                start(name, "--watch-all-namespaces", *listen, *more, KUBECONFIG=config, RUNTIME_NAMESPACE="flux-system")  # fmt: skip
            yield server, registry
        finally:
            for child in children:
                child.kill()


def push_chart(server: ApiServer, registry, folder):
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    assert server.run("helm", "package", str(CHART), folder=folder).code == 0

    def pushed():
        push = ("helm", "push", f"replicator-{version}.tgz", f"oci://{registry}/charts", "--plain-http")  # fmt: skip
        return server.run(*push, folder=folder).code == 0

    wait_until(pushed, timeout_seconds=30.0, interval_seconds=0.5, describe="the registry")


def examples(registry):
    """The objects of deploy/examples, in which the registry alone is another, without a certificate."""
    built = subprocess.run(
        ["kubectl", "kustomize", ROOT / "deploy/examples"], capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    objects = {each["kind"]: each for each in yaml.safe_load_all(built)}
    repository = objects["HelmRepository"]["spec"]
    repository["url"] = repository["url"].replace("registry.example.com", registry)
    repository["insecure"] = True
    return objects


def apply(server, objects):
    server.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(objects.values()))


def change(objects, **values):
    """Other values in the ConfigMap that the release reads."""
    data = objects["ConfigMap"]["data"]
    data["values.yaml"] = yaml.safe_dump({**yaml.safe_load(data["values.yaml"]), **values})


def until(server, there, *, failing=""):
    """Until something is so; hooks and tests pass meanwhile, but the one that is named."""

    def played():
        server.play(SPACE, failing=failing)
        return there()

    wait_until(
        played, timeout_seconds=FLUX_SECONDS, interval_seconds=1.0,
        describe=lambda: json.dumps(release(server)["status"], indent=1),
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
    server, registry = flux
    server.namespace(SPACE)
    server.kubectl("create", "priorityclass", "platform-critical", "--value=1000")
    server.kubectl(
        "create", "secret", "docker-registry", "registry", "-n", SPACE, f"--docker-server={registry}",
        "--docker-username=replicator", "--docker-password=unused",
    )  # fmt: skip
    objects = examples(registry)
    apply(server, objects)
    until(server, lambda: true_of(server).keys() >= {"Ready", "TestSuccess"})
    assert workers(server)[0] == 3
    before = workers(server)

    asked = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}}
    server.kubectl("patch", "helmrelease", "replicator", "-n", SPACE, "--type=merge", "-p", json.dumps(asked))  # fmt: skip
    until(server, lambda: release(server)["status"].get("lastHandledReconcileAt") == "now")
    assert workers(server) == before, "the same values change nothing"
    assert len(release(server)["status"]["history"]) == 1

    change(objects, workers=[{"cluster": "west", "replicas": 4}])
    apply(server, objects)
    until(server, lambda: workers(server)[0] == 4)
    until(server, lambda: true_of(server).get("Ready") == "TestSucceeded")

    change(objects, workers=[{"cluster": "west", "replicas": 9}])
    apply(server, objects)
    until(server, lambda: "Remediated" in true_of(server), failing=HOOK)
    assert true_of(server)["Remediated"] == "RollbackSucceeded"
    assert workers(server)[0] == 4

    server.kubectl("delete", "helmrelease", "replicator", "-n", SPACE, "--timeout=50s")
    assert server.get("statefulsets", SPACE) == {}
