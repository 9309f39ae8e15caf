"""Argo CD and Flux: their objects install what the page says, and what they render again changes nothing."""

import copy
import json
import shutil
import subprocess

import pytest
import yaml
from api_server import running_api_server
from chart_engine import ROOT, ci_values, render

EXAMPLES = ROOT / "deploy/examples"
VALUES = yaml.safe_load((EXAMPLES / "values.yaml").read_text())
CHART = yaml.safe_load((ROOT / "helm/replicator/Chart.yaml").read_text())
RELEASES = {"bank": VALUES, **{name: ci_values(name) for name in ("all-on", "ha", "keda", "spark")}}

CHANGEABLE = {
    "StatefulSet": {
        "replicas", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "ordinals",
    },
    "Job": {"parallelism", "suspend", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"},
    "PersistentVolumeClaim": {"resources"},
}  # fmt: skip
"""All that Kubernetes lets an update change in the spec of a kind; of other kinds it lets nearly everything."""


def documents(name):
    return {each["kind"]: each for each in yaml.safe_load_all((EXAMPLES / name).read_text())}


def as_argo(values):
    """Argo CD runs `helm template`: no cluster to look things up in, and neither install nor upgrade known."""
    return render(values, release="replicator", namespace="replication")


def changed(values):
    """The next release of the same values: everything that people change."""
    found = copy.deepcopy(values)
    found["image"] = {**found.get("image", {}), "digest": f"sha256:{'f' * 64}"}
    found["pods"] = {**found.get("pods", {}), "podLabels": {"team": "another"}}
    found["commonLabels"] = {"example.com/owner": "another"}
    for entry in found.get("workers", []):
        entry["replicas"] = entry.get("replicas", 1) + 1
    for drill in found.get("drills", []):
        drill["schedule"] = "1 1 1 * *"
    return found


def kept(each):
    """What an update of the object must not change."""
    spec = each.get("spec", {})
    found = {
        field: value for field, value in spec.items()
        if field not in CHANGEABLE.get(each["kind"], spec)
    }  # fmt: skip
    if each["kind"] == "Service":
        found["clusterIP"] = spec.get("clusterIP")
    if each["kind"] == "RoleBinding":
        found["roleRef"] = each["roleRef"]
    if each["kind"] in {"ConfigMap", "Secret"} and each.get("immutable"):
        found["data"] = each["data"]
    return found


def by_name(rendered):
    """The objects that stay between two synchronisations: hooks are made anew."""
    return {
        (each["kind"], each["metadata"]["name"]): each for each in rendered.objects
        if "helm.sh/hook" not in each["metadata"].get("annotations", {})
    }  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_the_same_values_render_the_same_objects_again(name):
    first = as_argo(RELEASES[name])
    assert as_argo(RELEASES[name]).texts == first.texts
    assert render(RELEASES[name], upgrade=True, release="replicator", namespace="replication").objects == first.objects  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_other_values_change_no_field_that_kubernetes_keeps(name):
    before, after = (by_name(as_argo(each)) for each in (RELEASES[name], changed(RELEASES[name])))
    same = before.keys() & after.keys()
    assert before != after
    assert {key for key in same if kept(before[key]) != kept(after[key])} == set()
    gone = {
        key for key in before.keys() ^ after.keys() if key[0] not in {"Job", "SparkApplication"}
    }
    assert gone == set(), "only jobs are named by what they do"


def test_argo_cd_installs_the_chart_from_the_registry_and_hides_no_change():
    argo = documents("argocd.yaml")["Application"]["spec"]
    from_registry, from_git = argo["sources"]
    assert (from_registry["chart"], from_registry["targetRevision"]) == (CHART["name"], CHART["version"])  # fmt: skip
    assert from_registry["helm"]["valueFiles"][0].split("/")[0] == f"${from_git['ref']}"
    assert from_registry["helm"]["releaseName"] == "replicator"
    # A difference that is ignored would keep a new number of workers from being applied.
    assert "ignoreDifferences" not in argo
    assert "RespectIgnoreDifferences=true" not in argo["syncPolicy"]["syncOptions"]


def test_without_a_cluster_to_look_into_a_set_with_an_autoscaler_has_no_number_of_workers():
    for each in as_argo(ci_values("keda")).kind("StatefulSet"):
        assert "replicas" not in each["spec"]
    for each in as_argo(VALUES).kind("StatefulSet"):
        assert each["spec"]["replicas"] == 3


def test_hooks_are_of_kinds_that_argo_cd_knows_or_leaves_alone():
    """It takes pre-install and pre-upgrade for PreSync, in order of weight, and runs no tests of Helm."""
    for each in as_argo(RELEASES["all-on"]).objects:
        hooks = each["metadata"].get("annotations", {}).get("helm.sh/hook", "test")
        assert hooks in {"pre-install,pre-upgrade", "test"}
        assert "argocd.argoproj.io/hook" not in each["metadata"].get("annotations", {})


def test_flux_installs_the_same_chart_under_the_same_name():
    flux = documents("flux.yaml")
    release, argo = flux["HelmRelease"]["spec"], documents("argocd.yaml")["Application"]["spec"]
    assert (release["chart"]["spec"]["chart"], release["chart"]["spec"]["version"]) == (CHART["name"], CHART["version"])  # fmt: skip
    assert release["releaseName"] == "replicator"
    assert flux["HelmRepository"]["spec"]["url"] == f"oci://{argo['sources'][0]['repoURL']}"
    assert release["test"]["enable"] is True


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
def test_what_flux_applies_holds_the_values_and_the_release_that_names_them():
    built = subprocess.run(
        ["kubectl", "kustomize", EXAMPLES], capture_output=True, text=True, check=True
    ).stdout
    found = {each["kind"]: each for each in yaml.safe_load_all(built)}
    release = found["HelmRelease"]["spec"]
    (origin,) = release["valuesFrom"]
    assert found[origin["kind"]]["metadata"]["name"] == origin["name"]
    assert yaml.safe_load(found["ConfigMap"]["data"]["values.yaml"]) == VALUES
    source = release["chart"]["spec"]["sourceRef"]
    assert found[source["kind"]]["metadata"]["name"] == source["name"]
    assert len({each["metadata"]["namespace"] for each in found.values()}) == 1


OPERATORS = (
    "certificates.cert-manager.io", "podmonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com",
    "scaledobjects.keda.sh", "scheduledsparkapplications.sparkoperator.k8s.io", "servicemonitors.monitoring.coreos.com",
    "sparkapplications.sparkoperator.k8s.io",
)  # fmt: skip
MANAGER = "--field-manager=argocd-controller"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        server.define(*OPERATORS)
        yield server


@pytest.fixture
def applied(server, unique, tmp_path):
    """Applies values as Argo CD does: Helm's template, hooks apart, server-side; gives what every object then is."""
    server.namespace(unique)

    def run(values, verb="apply", *options):
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        template = ("helm", "template", "replicator", str(ROOT / "helm/replicator"), "-n", unique)
        done = server.run(*template, "-f", "values.yaml", folder=tmp_path, streams="out")
        assert done.code == 0, done.said
        objects = [
            each for each in yaml.safe_load_all(done.said)
            if each and "helm.sh/hook" not in each["metadata"].get("annotations", {})
        ]  # fmt: skip
        text = yaml.safe_dump_all(objects)
        server.kubectl(verb, "--server-side", MANAGER, "-n", unique, "-f", "-", *options, text=text)
        found = json.loads(server.kubectl("get", "-n", unique, "-f", "-", "-o", "json", text=text))
        items = found.get("items", [found])
        for each in items:  # the version of a claim rises though nothing of it has changed
            del each["metadata"]["resourceVersion"]
        return {(each["kind"], each["metadata"]["name"]): each for each in items}

    return run


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RELEASES)
def test_the_api_server_takes_every_object_and_the_second_time_nothing_differs(applied, name):
    """By the operators' own definitions, too; `diff` ends with 1 where anything differs."""
    first = applied(RELEASES[name])
    assert len(first) > 5
    assert applied(RELEASES[name], "diff") == first
    assert applied(RELEASES[name]) == first
    after = applied(changed(RELEASES[name]))
    assert any(after[key] != first[key] for key in first.keys() & after.keys())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_release_no_longer_has_is_pruned_and_nothing_else(
    applied, server, unique, monkeypatch
):
    monkeypatch.setenv("KUBECTL_APPLYSET", "true")
    prune = ("--prune", "--applyset=configmap/applied")
    values = ci_values("all-on") | {"drill": {}}  # a claim waits for its controller
    first = applied(values, "apply", *prune)
    del values["drills"]
    values["workers"] = values["workers"][:2]
    after = applied(values, "apply", *prune)
    gone = {key for key in first if key not in after}
    assert {kind for kind, _ in gone} == {"ConfigMap", "CronJob", "PodDisruptionBudget", "ScaledObject", "StatefulSet"}  # fmt: skip
    for kind, name in gone:
        assert name not in server.get(kind.lower(), unique)
    assert set(server.get("statefulsets", unique)) == {name for kind, name in after if kind == "StatefulSet"}  # fmt: skip
