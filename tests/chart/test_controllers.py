"""What Kubernetes' own controllers make of the chart: drills, budgets, the console, and hooks that cannot run.

There are no nodes: a test says how the containers of a pod ended or that they are ready, as a kubelet would.
"""

import json
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from api_server import ApiServer, running_api_server
from chart_engine import CHART, ROOT, ci_values

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONTROLLERS = (
    "statefulset-controller", "job-controller", "cronjob-controller", "disruption-controller",
    "endpointslice-controller",
)  # fmt: skip
SOON_SECONDS = 90.0
MINIMAL = ci_values("minimal")
DRILL = ci_values("spark")["drills"][0]
CRON_JOB = "replicator-drill-monthly"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_api_server(tmp_path_factory.mktemp("kubernetes"), *CONTROLLERS) as server:
        yield server


@pytest.fixture
def space(server: ApiServer, unique):
    server.namespace(unique)
    return unique


@pytest.fixture
def install(server, space, tmp_path):
    """Runs Helm as a user does, while its hooks' pods end with the exit code that is given; ``None``: none starts."""

    def run(values, *, verb=("install",), code=0):
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        log = tmp_path / "helm.log"
        command = [*verb, "replicator", str(CHART), "-n", space, "-f", str(file), "--timeout=60s"]  # fmt: skip
        child = start_child(
            [server.programs["helm"], *command], output=log,
            environment=server.environment("installer"),
        )  # fmt: skip

        def ended():
            for name, pod in server.get("pods", space).items():
                component = pod["metadata"]["labels"].get("app.kubernetes.io/component")
                if code is not None and component == "validation" and not finished(pod):
                    end_pod(server, space, name, code)
            return child.exit_code() is not None

        try:
            wait_until(
                ended, timeout_seconds=SOON_SECONDS, interval_seconds=0.5, describe=log.read_text
            )
        finally:
            child.kill()
        return child.exit_code(), log.read_text()

    return run


def finished(pod):
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def end_pod(server, space, name, code):
    """As a kubelet tells that the containers of a pod have ended."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    containers = server.get("pods", space)[name]["spec"]["containers"]
    ended = {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now, "reason": "Error" if code else "Completed"}}  # fmt: skip
    server.set_status("pod", name, space, {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [
            {"name": each["name"], "image": each["image"], "imageID": "", "ready": False, "restartCount": 0, "state": ended}
            for each in containers
        ],
    })  # fmt: skip


def start_pod(server, space, name, *, number, ready):
    """As a kubelet tells that a pod runs under an address."""
    server.set_status("pod", name, space, {
        "phase": "Running", "podIP": f"10.1.0.{number}", "podIPs": [{"ip": f"10.1.0.{number}"}],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    })  # fmt: skip


def soon(condition, described):
    return wait_until(condition, timeout_seconds=SOON_SECONDS, describe=described)


def jobs_of(server, space, name):
    """Jobs that a CronJob has made."""
    return [
        each for each in server.get("jobs", space).values()
        if [o["name"] for o in each["metadata"].get("ownerReferences", [])] == [name]
    ]  # fmt: skip


def test_a_drill_that_is_let_go_too_late_waits_for_its_next_date(server, space, install):
    """Beside it, one without the chart's `startingDeadlineSeconds` makes up for the date that was missed."""
    missed = (datetime.now(UTC) + timedelta(seconds=45)).replace(second=0) + timedelta(minutes=1)
    drill = {**DRILL, "schedule": f"{missed.minute} {missed.hour} * * *"}
    code, said = install({**ci_values("spark"), "drills": [drill], "drill": {"startingDeadlineSeconds": 10}})  # fmt: skip
    assert code == 0, said
    ours = server.get("cronjobs", space)[CRON_JOB]
    assert ours["spec"]["suspend"] is True
    other = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "other"}, "spec": dict(ours["spec"])}  # fmt: skip
    del other["spec"]["startingDeadlineSeconds"]
    server.kubectl("create", "-n", space, "-f", "-", text=json.dumps(other))

    wait_until(
        lambda: datetime.now(UTC) > missed + timedelta(seconds=12), timeout_seconds=180.0,
        describe="the date to have passed",
    )  # fmt: skip
    assert jobs_of(server, space, CRON_JOB) == jobs_of(server, space, "other") == []
    for name in (CRON_JOB, "other"):
        server.kubectl("patch", "cronjob", name, "-n", space, "-p", '{"spec": {"suspend": false}}')
    soon(lambda: jobs_of(server, space, "other"), "the other to make up for it")
    assert jobs_of(server, space, CRON_JOB) == []


def test_a_drill_that_failed_runs_once_and_its_exit_code_is_seen(server, space, install):
    values = {**ci_values("spark"), "drills": [DRILL]}
    assert install(values)[0] == 0
    server.kubectl("create", "job", "drill-now", f"--from=cronjob/{CRON_JOB}", "-n", space)

    def pods():
        return {
            name: pod for name, pod in server.get("pods", space).items()
            if pod["metadata"]["labels"].get("job-name") == "drill-now"
        }  # fmt: skip

    (name,) = soon(pods, "the pod of the drill")
    end_pod(server, space, name, 1)
    soon(
        lambda: conditions(server.get("jobs", space)["drill-now"]).get("Failed"),
        lambda: f"the drill to have failed: {server.get('jobs', space)['drill-now']['status']}",
    )
    told = server.kubectl("get", "job", "drill-now", "-n", space, "-o", 'jsonpath={.status.conditions[?(@.type=="Failed")].message}')  # fmt: skip
    assert "drill" in told
    assert "exit code 1" in told
    assert set(pods()) == {name}, "it stays with its log, and no second one has run"


def conditions(found):
    return {
        each["type"]: each["reason"] for each in found["status"].get("conditions", [])
        if each["status"] == "True"
    }  # fmt: skip


def test_a_share_of_the_workers_may_be_taken_and_no_more_and_the_console_shows_those_that_wait(
    server, space, install
):
    set_of = {"name": "all", "replicas": 5, "podDisruptionBudget": {"maxUnavailable": "40%"}}
    values = {**MINIMAL, "workers": [set_of], "service": {"enabled": True}}
    assert install(values)[0] == 0
    names = [f"replicator-all-{number}" for number in range(5)]
    soon(lambda: set(names) <= set(server.get("pods", space)), "five workers")
    for number, name in enumerate(names):
        start_pod(server, space, name, number=number + 1, ready=False)

    def addresses():
        slices = server.get("endpointslices", space).values()
        return {
            address for each in slices
            if each["metadata"]["labels"]["kubernetes.io/service-name"] == "replicator"
            for endpoint in each["endpoints"] or [] if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        }  # fmt: skip

    every = {f"10.1.0.{number + 1}" for number in range(5)}
    soon(lambda: addresses() == every, lambda: f"the console to lead to all: {addresses()}")
    for number, name in enumerate(names):
        start_pod(server, space, name, number=number + 1, ready=True)

    def allowed():
        (budget,) = server.get("poddisruptionbudgets", space).values()
        return budget["status"].get("disruptionsAllowed")

    soon(lambda: allowed() == 2, lambda: f"two of five: {allowed()}")
    for left, name in ((1, names[0]), (0, names[1])):
        assert evict(server, space, name) == 0
        soon(lambda left=left: allowed() == left, lambda: f"fewer than before: {allowed()}")
    assert evict(server, space, names[2]) != 0


def evict(server, space, name):
    """As a node that is drained does; its exit code."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": space}}  # fmt: skip
    return subprocess.run(
        [server.programs["kubectl"], "create", "--raw", f"/api/v1/namespaces/{space}/pods/{name}/eviction", "-f", "-"],
        input=json.dumps(eviction), capture_output=True, text=True, check=False,
        env=server.environment("admin"), timeout=60,
    ).returncode  # fmt: skip


def test_a_hook_whose_pod_is_refused_ends_in_time_and_the_documented_command_shows_why(
    server, space, install
):
    """A first installation that failed is then mended by an upgrade, as the chart's page says."""
    values = {**MINIMAL, "pods": {"priorityClassName": "of-nobody"}, "validation": {"timeoutSeconds": 10}}  # fmt: skip
    code, said = install(values, code=None)
    assert code != 0
    assert "DeadlineExceeded" in said
    (command,) = (
        line.removeprefix("$ ") for line in (ROOT / "helm/replicator/README.md").read_text().splitlines()
        if line.startswith("$ kubectl get events")
    )  # fmt: skip
    found = subprocess.run(
        ["bash", "-c", command.replace("-n replication", f"-n {space}")], capture_output=True, text=True,
        check=False, env=server.environment("admin"), timeout=60,
    )  # fmt: skip
    assert "no PriorityClass with name of-nobody was found" in found.stdout
    assert server.get("statefulsets", space) == {}

    code, said = install(MINIMAL, verb=("upgrade", "--install"))
    assert code == 0, said
    assert set(server.get("statefulsets", space)) == {"replicator-all"}


def test_what_is_left_on_kafka_is_removed_by_a_copy_of_a_workers_pod(server, space, install):
    """The commands of the chart's page: the copy has the file and the logins, and outlives the release."""
    assert install(ci_values("spark"))[0] == 0
    first = "replicator-all-0"
    soon(lambda: first in server.get("pods", space), "a worker")
    command = next(
        line.removeprefix("$ ") for line in (ROOT / "helm/replicator/README.md").read_text().splitlines()
        if line.startswith("$ kubectl debug")
    )  # fmt: skip
    done = server.run(*command.replace("replication", space).split(), folder=ROOT)
    assert done.code == 0, done.said
    worker, copy = (server.get("pods", space)[name]["spec"] for name in (first, "cleanup"))
    (container,) = copy["containers"]
    assert container["command"] == ["sleep", "infinity"]
    assert "livenessProbe" not in container
    assert copy["volumes"] == worker["volumes"]
    assert copy["securityContext"] == worker["securityContext"]
    for field in ("volumeMounts", "env"):
        assert container[field] == worker["containers"][0][field]
