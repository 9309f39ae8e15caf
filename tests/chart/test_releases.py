"""Releases of the chart by Helm's own commands on a real API server: what rendering alone cannot show."""

import shutil

import pytest
import yaml
from api_server import ApiServer, running_api_server
from chart_engine import CHART, ci_values

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOOK, SET = "replicator-validate", "replicator-all"
SEED = {"name": "seed", "command": "bulk-sync", "flow": "east->west", "topics": ["orders"]}
MINIMAL = ci_values("minimal")
WITH_SEED = {**MINIMAL, "spark": {"mode": "job", "jobs": [SEED]}}
HPA = {**MINIMAL, "worker": {"autoscaling": {"kind": "hpa", "minReplicas": 1, "maxReplicas": 6}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        yield server


@pytest.fixture
def space(server: ApiServer, unique):
    server.namespace(unique)
    return unique


def install(server, space, values=MINIMAL, *, name="replicator", verb="install", **options):
    hook = HOOK if name == "replicator" else f"{name}-{HOOK}"
    return server.helm(verb, name, str(CHART), namespace=space, values=values, hook=hook, **options)


def uid(found):
    return found["metadata"]["uid"]


def test_a_release_is_installed_changed_rolled_back_and_removed(server, space):
    done = install(server, space, WITH_SEED)
    assert done.code == 0, done.said
    assert "would violate PodSecurity" not in done.said
    before = server.get("statefulsets", space)[SET]["spec"]
    assert HOOK not in server.get("jobs", space), "a hook that succeeded leaves nothing"

    changed = {
        **WITH_SEED,
        "workers": [{"name": "all", "replicas": 5}],
        "pods": {"podLabels": {"team": "a"}},
    }
    done = install(server, space, changed, verb="upgrade")
    assert done.code == 0, done.said
    now = server.get("statefulsets", space)[SET]["spec"]
    assert now["replicas"] == 5
    assert now["template"]["metadata"]["labels"]["team"] == "a"

    done = server.helm("rollback", "replicator", namespace=space)
    assert done.code == 0, done.said
    assert server.get("statefulsets", space)[SET]["spec"] == before
    done = server.helm("uninstall", "replicator", namespace=space)
    assert done.code == 0, done.said
    for kind in ("statefulsets", "jobs", "services", "secrets", "configmaps", "serviceaccounts", "poddisruptionbudgets"):  # fmt: skip
        left = set(server.get(kind, space)) - {"kube-root-ca.crt"}
        assert not left, f"{kind} that stay: {left}"


def test_an_upgrade_runs_no_job_on_history_twice(server, space):
    assert install(server, space, WITH_SEED).code == 0
    (first,) = server.get("jobs", space).values()
    server.end_job(first["metadata"]["name"], space)
    changed = {**WITH_SEED, "workers": [{"name": "all", "replicas": 4}]}
    done = install(server, space, changed, verb="upgrade")
    assert done.code == 0, done.said
    assert [uid(each) for each in server.get("jobs", space).values()] == [uid(first)]
    assert server.helm("rollback", "replicator", namespace=space).code == 0
    assert [uid(each) for each in server.get("jobs", space).values()] == [uid(first)]


def test_a_hook_that_fails_stops_the_release_and_leaves_the_running_one(server, space):
    done = install(server, space, passes=False)
    assert done.code != 0
    assert HOOK in done.said or "pre-install" in done.said
    assert server.get("statefulsets", space) == {}
    hook = server.get("jobs", space)[HOOK]
    assert hook["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] == "hook-failed", (
        "it stays, to be looked at, and Helm prints its log"
    )

    done = install(server, space, verb="upgrade")
    assert done.code == 0, (
        f"a first installation that failed is repeated as an upgrade\n{done.said}"
    )
    before = server.get("statefulsets", space)[SET]
    done = install(server, space, {**MINIMAL, "workers": [{"name": "all", "replicas": 9}]}, verb="upgrade", passes=False)  # fmt: skip
    assert done.code != 0
    assert server.get("statefulsets", space)[SET]["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]  # fmt: skip


def workers(server, space):
    """The only set of workers: its name, how many it has, and its label of a team."""
    ((name, found),) = server.get("statefulsets", space).items()
    labels = found["spec"]["template"]["metadata"]["labels"]
    return name, found["spec"]["replicas"], labels.get("team")


def test_neither_an_upgrade_nor_a_rollback_changes_the_autoscalers_number_of_workers(server, space):
    assert install(server, space, HPA).code == 0
    name, _, _ = workers(server, space)
    server.kubectl("scale", "statefulset", name, "--replicas=4", "-n", space)
    done = install(server, space, {**HPA, "pods": {"podLabels": {"team": "a"}}}, verb="upgrade")
    assert done.code == 0, done.said
    assert workers(server, space) == (name, 4, "a")
    done = server.helm("rollback", "replicator", namespace=space)
    assert done.code == 0, done.said
    assert workers(server, space) == (name, 4, None)


def test_a_set_that_gets_an_autoscaler_keeps_the_workers_that_run(server, space):
    three = {**MINIMAL, "workers": [{"name": "all", "replicas": 3}]}
    assert install(server, space, three).code == 0
    autoscaled = {**three, "worker": HPA["worker"]}
    for team in ("a", "b"):
        labelled = {**autoscaled, "pods": {"podLabels": {"team": team}}}
        done = install(server, space, labelled, verb="upgrade")
        assert done.code == 0, done.said
        assert workers(server, space)[1:] == (3, team)
    done = install(server, space, {**three, "workers": [{"name": "all", "replicas": 2}]}, verb="upgrade")  # fmt: skip
    assert done.code == 0, done.said
    assert workers(server, space)[1:] == (2, None)


def test_what_platforms_give_is_taken_by_helm_and_by_the_api_server(server, space):
    """Names with dots, a user of a small number, no workers of a set, shares, and a topology that is null."""
    values = {
        "topology": None,
        "topologyText": yaml.safe_dump(MINIMAL["topology"]),
        "podSecurity": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
        "imagePullSecrets": [{"name": "registry.example.com"}],
        "secretMounts": [{"existingSecret": "kafka.east.v2", "mountPath": "/etc/replicator/secrets/east"}],
        "http": {"token": {"existingSecret": "replicator.api"}, "tls": {"existingSecret": "replicator.tls"}},
        "workers": [{"name": "none", "replicas": 0},
                    {"name": "some", "replicas": 5, "podDisruptionBudget": {"maxUnavailable": "40%"}}],
    }  # fmt: skip
    done = install(server, space, values)
    assert done.code == 0, done.said
    found = server.get("statefulsets", space)
    assert {each["spec"]["replicas"] for each in found.values()} == {0, 5}
    spec = found["replicator-some"]["spec"]["template"]["spec"]
    secrets = {each["secret"]["secretName"] for each in spec["volumes"] if "secret" in each}
    assert secrets == {"kafka.east.v2", "replicator.api", "replicator.tls"}
    (budget,) = server.get("poddisruptionbudgets", space).values()
    assert budget["spec"]["maxUnavailable"] == "40%"


def test_the_longest_names_are_taken_by_the_api_server(server, space):
    spark = ci_values("spark")
    values = {
        **spark,
        "workers": [{"name": "w" * 20, "replicas": 2}],
        "drills": [{**spark["drills"][0], "name": "d" * 24}],
        "spark": {**spark["spark"], "jobs": [{**each, "name": f"{each['name']}-{'j' * 24}"[:24]} for each in spark["spark"]["jobs"]]},
    }  # fmt: skip
    name = f"replicator-{'r' * 42}"
    hook = f"{name[:31]}-validate"
    done = server.helm("install", name, str(CHART), namespace=space, values=values, hook=hook)
    assert done.code == 0, done.said
    (found,) = server.get("statefulsets", space)
    assert len(found) == 52
    assert max(map(len, server.get("cronjobs", space))) == 52


def test_two_releases_exist_side_by_side(server, space):
    other = yaml.safe_load(yaml.safe_dump(MINIMAL))
    other["topology"]["metadata"]["name"] = "other"
    assert install(server, space).code == 0
    done = install(server, space, other, name="second")
    assert done.code == 0, done.said
    assert len(server.get("statefulsets", space)) == 2
    assert server.helm("uninstall", "second", namespace=space).code == 0
    assert set(server.get("statefulsets", space)) == {SET}


def test_it_is_a_part_of_another_chart_that_may_switch_it_off(server, space, tmp_path):
    parent = tmp_path / "platform"
    shutil.copytree(CHART, parent / "charts/replicator")
    (parent / "Chart.yaml").write_text(yaml.safe_dump({
        "apiVersion": "v2", "name": "platform", "version": "1.0.0",
        "dependencies": [{"name": "replicator", "version": "*", "condition": "replicator.enabled"}],
    }))  # fmt: skip
    values = {"global": {"imageRegistry": "registry.example.com"}, "replicator": MINIMAL}
    done = server.helm(
        "install", "platform", str(parent), namespace=space, values=values,
        hook="platform-replicator-validate",
    )  # fmt: skip
    assert done.code == 0, done.said
    (found,) = server.get("statefulsets", space).values()
    image = found["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.startswith("registry.example.com/")
    off = {"replicator": {**MINIMAL, "enabled": False}}
    done = server.helm("upgrade", "platform", str(parent), namespace=space, values=off)
    assert done.code == 0, done.said
    assert server.get("statefulsets", space) == {}
