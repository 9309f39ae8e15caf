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


def test_a_release_is_installed_changed_taken_back_and_removed(server, space):
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
    assert HOOK in server.get("jobs", space), "it stays, to be looked at"

    done = install(server, space, verb="upgrade")
    assert done.code == 0, (
        f"a first installation that failed is repeated as an upgrade\n{done.said}"
    )
    before = server.get("statefulsets", space)[SET]
    done = install(server, space, {**MINIMAL, "workers": [{"name": "all", "replicas": 9}]}, verb="upgrade", passes=False)  # fmt: skip
    assert done.code != 0
    assert server.get("statefulsets", space)[SET]["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]  # fmt: skip


def test_an_upgrade_keeps_the_autoscalers_number_of_workers(server, space):
    assert install(server, space, HPA).code == 0
    (name,) = server.get("statefulsets", space)
    server.kubectl("scale", "statefulset", name, "--replicas=4", "-n", space)
    done = install(server, space, {**HPA, "pods": {"podLabels": {"team": "a"}}}, verb="upgrade")
    assert done.code == 0, done.said
    found = server.get("statefulsets", space)[name]["spec"]
    assert (found["replicas"], found["template"]["metadata"]["labels"]["team"]) == (4, "a")


def test_two_releases_stand_side_by_side(server, space):
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
