"""Every pod of the chart obeys the shared settings and those of its own kind; subcharts obey their parent."""

import copy
import shutil
import subprocess

import pytest
import yaml
from chart_engine import ci_values, render, render_file
from ruamel.yaml import YAML

KINDS = ("worker", "validation", "tests", "drill", "spark")
COMPONENT_OF = {
    "worker": "worker",
    "validation": "validation",
    "tests": "test",
    "drill": "drill",
    "spark": "spark",
}
SECURE = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def settings(mark):
    return {
        "podLabels": {f"example.com/{mark}": "{{ .Release.Name }}"},
        "podAnnotations": {f"example.com/{mark}": "yes"},
        "nodeSelector": {f"example.com/{mark}": "yes"},
        "tolerations": [{"key": mark, "operator": "Exists"}],
        "extraEnv": [{"name": f"OF_{mark.upper()}", "value": "{{ .Release.Namespace }}"},
                     {"name": "BOTH", "value": mark}],
        "extraEnvFrom": [{"configMapRef": {"name": mark}}],
        "extraVolumes": [{"name": mark, "configMap": {"name": mark}}],
        "extraVolumeMounts": [{"name": mark, "mountPath": f"/opt/{mark}", "readOnly": True}],
        "initContainers": [{"name": f"first-{mark}", "image": "busybox:1.37", "securityContext": SECURE}],
        "sidecars": [{"name": f"beside-{mark}", "image": "busybox:1.37", "securityContext": SECURE}],
    }  # fmt: skip


def everything(**more):
    values = copy.deepcopy(ci_values("spark"))
    values |= {"pods": {**settings("shared"), "priorityClassName": "shared"}}
    for kind in KINDS:
        own = settings(kind) | ({"priorityClassName": kind} if kind == "spark" else {})
        values[kind] = {**values.get(kind, {}), **own}
    return {**values, **more}


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_has_what_is_shared_and_what_is_its_own(kind):
    rendered = render(everything())
    found = [
        (name, pod)
        for name, pod in rendered.pods()
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] == COMPONENT_OF[kind]
    ]
    assert found
    for name, pod in found:
        spec, metadata = pod["spec"], pod["metadata"]
        for mark in ("shared", kind):
            assert metadata["labels"][f"example.com/{mark}"] == "rel", name
            assert metadata["annotations"][f"example.com/{mark}"] == "yes", name
            assert spec["nodeSelector"][f"example.com/{mark}"] == "yes", name
            assert {"key": mark, "operator": "Exists"} in spec["tolerations"], name
            assert mark in {volume["name"] for volume in spec["volumes"]}, name
            assert f"first-{mark}" in {each["name"] for each in spec["initContainers"]}, name
            assert f"beside-{mark}" in {each["name"] for each in spec["containers"]}, name
            main = spec["containers"][0]
            variables = {each["name"]: each.get("value") for each in main["env"]}
            assert variables[f"OF_{mark.upper()}"] == "streams", name
            assert variables["BOTH"] == kind, "the pod's own wins"
            assert {"configMapRef": {"name": mark}} in main["envFrom"], name
            assert f"/opt/{mark}" in {each["mountPath"] for each in main["volumeMounts"]}, name
        assert spec["priorityClassName"] == ("spark" if kind == "spark" else "shared")


def test_hook_test_and_drills_take_the_shared_service_account_and_others_keep_theirs():
    rendered = render(everything(pods={"serviceAccountName": "streams-runner"}))
    accounts = {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["spec"].get("serviceAccountName")
        for name, pod in rendered.pods()
        if not name.startswith("ConfigMap/")
    }  # fmt: skip
    assert accounts == {
        "worker": "rel-replicator", "spark": "rel-replicator-spark", "validation": "streams-runner",
        "test": "streams-runner", "drill": "streams-runner",
    }  # fmt: skip


def test_no_mapping_has_a_key_twice_with_any_labels_and_variables(tmp_path):
    """As kustomize and strict parsers read it; what selectors need is never replaced."""
    labels = {"app.kubernetes.io/component": "mine", "app.kubernetes.io/name": "mine", "team": "a"}
    values = everything(commonLabels=labels)
    values["pods"]["podLabels"] |= labels
    values["secretEnv"] = [{"name": "BOTH", "existingSecret": "a.b", "key": "c"}]
    values["worker"]["podAnnotations"]["kubectl.kubernetes.io/default-container"] = "beside-worker"
    values["monitoring"] = {
        "podMonitor": {"enabled": True, "labels": labels},
        "prometheusRule": {"enabled": True, "labels": labels},
        "dashboards": {"enabled": True, "annotations": labels},
    }
    rendered = render(values)
    kustomized(rendered, tmp_path)
    strict = YAML(typ="safe")
    for path, text in rendered.texts.items():
        if path.endswith(".yaml"):
            list(strict.load_all(text))
    for name, container in rendered.containers():
        for field, key in (("env", "name"), ("volumeMounts", "mountPath")):
            names = [each[key] for each in container.get(field, [])]
            assert len(names) == len(set(names)), name
    for each in rendered.kind("StatefulSet"):
        wanted = each["spec"]["selector"]["matchLabels"].items()
        assert wanted <= each["spec"]["template"]["metadata"]["labels"].items()
        assert each["spec"]["template"]["metadata"]["labels"]["team"] == "a"


def kustomized(rendered, folder):
    """The objects as kustomize takes them, which refuses a key and an object that come twice."""
    texts = {path.replace("/", "-"): text for path, text in rendered.texts.items() if path.endswith(".yaml") and text.strip()}  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": sorted(texts)}))
    if shutil.which("kubectl") is None:  # a strict parser reads them all the same
        return
    done = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert len(list(yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))) == len(rendered.objects)


def test_a_parent_charts_registry_pull_secrets_and_storage_class_are_obeyed():
    values = everything(imagePullSecrets=[{"name": "mine"}, {"name": "theirs"}])
    values["image"] = {"registry": "docker.io"}
    values["drill"]["reports"] = {"create": True}
    values["global"] = {
        "imageRegistry": "registry.example.com", "imagePullSecrets": ["theirs", {"name": "others"}],
        "storageClass": "fast", "somethingOfAnotherChart": {"a": 1},
    }  # fmt: skip
    rendered = render(values)
    for name, container in rendered.containers():
        if "replicator/" in container.get("image", ""):
            assert container["image"].startswith("registry.example.com/replicator/"), name
    for name, pod in rendered.pods():
        secrets = [each["name"] for each in pod["spec"]["imagePullSecrets"]]
        assert secrets == ["theirs", "others", "mine"], name
    (claim,) = rendered.kind("PersistentVolumeClaim")
    assert claim["spec"]["storageClassName"] == "fast"


def test_a_parent_chart_may_switch_it_off():
    values = {**ci_values("all-on"), "enabled": False}
    assert render(values).objects == []
    assert "switched off" in render(values).notes


@pytest.mark.parametrize("reports", [{"create": True}, {"existingClaim": "claim.of-mine"}, {"volume": {"csi": {"driver": "s3.csi.example.com"}}}, {}])  # fmt: skip
def test_reports_of_drills_go_where_the_values_say(reports):
    values = everything()
    values["drill"]["reports"] = reports
    rendered = render(values)
    (drill,) = (e for e in rendered.kind("CronJob") if "-drill-" in e["metadata"]["name"])
    spec = drill["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (volume,) = (v for v in spec["volumes"] if v["name"] == "reports")
    claims = rendered.kind("PersistentVolumeClaim")
    if reports.get("create"):
        assert volume["persistentVolumeClaim"]["claimName"] == claims[0]["metadata"]["name"]
        assert claims[0]["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    else:
        assert not claims
        expected = {"existingClaim": "persistentVolumeClaim", "volume": "csi"}
        assert expected.get(next(iter(reports), ""), "emptyDir") in volume


def test_a_drill_neither_makes_up_for_a_missed_run_nor_runs_twice_and_its_exit_code_is_seen():
    (drill,) = (
        e for e in render_file("spark").kind("CronJob") if "-drill-" in e["metadata"]["name"]
    )
    assert drill["spec"]["startingDeadlineSeconds"] <= 300
    job = drill["spec"]["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 0
    assert "activeDeadlineSeconds" not in job, "its pod, log and exit code would be deleted"
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob", "the Job's condition then tells the exit code"
    assert rule["onExitCodes"]["containerName"] == "drill"


def test_every_cron_job_says_how_late_it_may_start(rendered):
    for each in rendered.kind("CronJob"):
        assert each["spec"]["startingDeadlineSeconds"] >= 10, each["metadata"]["name"]


def test_values_that_platforms_give_are_taken():
    values = everything(topologyText=yaml.safe_dump(ci_values("spark")["topology"]), topology=None)
    values |= {
        "podSecurity": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
        "imagePullSecrets": [{"name": "registry.example.com"}],
        "secretMounts": [{"existingSecret": "kafka.east.v2", "mountPath": "/etc/replicator/secrets/east"}],
        "http": {"token": {"existingSecret": "replicator.api"}},
        "workers": [{"name": "none", "replicas": 0},
                    {"name": "some", "replicas": 5, "podDisruptionBudget": {"maxUnavailable": "40%"}}],
    }  # fmt: skip
    rendered = render(values)
    assert [each["spec"]["replicas"] for each in rendered.kind("StatefulSet")] == [0, 5]
    (budget,) = rendered.kind("PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == "40%"
    assert "flows stand still" in rendered.notes
    for _, pod in rendered.pods():
        assert pod["spec"]["securityContext"]["runAsUser"] == 1000


def test_the_console_answers_while_workers_are_not_ready():
    for each in render_file("all-on").kind("Service"):
        assert each["spec"]["publishNotReadyAddresses"] is True


def test_workers_of_another_namespace_or_site_never_have_the_same_name():
    def prefix(**more):
        (each,) = render({**ci_values("minimal"), **more}).kind("StatefulSet")
        (worker,) = each["spec"]["template"]["spec"]["containers"]
        env = worker["env"]
        names = [variable["name"] for variable in env]
        assert names.index("POD_NAME") < names.index("REPLICATOR_WORKER_ID"), "it is made of it"
        (name,) = (v["value"] for v in env if v["name"] == "REPLICATOR_WORKER_ID")
        return name

    assert prefix() == "streams.$(POD_NAME)"
    assert prefix(site="frankfurt") == "frankfurt.streams.$(POD_NAME)"


def test_keda_may_be_given_how_to_log_in_at_prometheus():
    (scaler,) = render_file("all-on").kind("ScaledObject")
    (trigger,) = scaler["spec"]["triggers"]
    assert trigger["authenticationRef"] == {"name": "prometheus", "kind": "TriggerAuthentication"}
    assert trigger["metadata"]["authModes"] == "bearer"
    (plain,) = render_file("keda").kind("ScaledObject")
    assert "authenticationRef" not in plain["spec"]["triggers"][0]


def test_the_notes_say_when_a_set_may_have_more_workers_than_lanes():
    values = ci_values("keda")
    values["workers"][0]["autoscaling"]["maxReplicas"] = 20
    assert "may have 20 workers" in render(values).notes
    assert "workers beyond the lanes" in render(values).notes
    assert "workers beyond the lanes" not in render(ci_values("minimal")).notes


def one_off_names(values, *, upgrade=False):
    return sorted(
        each["metadata"]["name"]
        for each in render(values, upgrade=upgrade).kind("Job")
        if each["metadata"]["labels"]["app.kubernetes.io/component"] == "spark"
    )


def test_a_job_that_runs_once_is_left_alone_by_an_upgrade_and_replaced_when_its_pod_changes():
    values = ci_values("spark")
    (before,) = one_off_names(values)
    assert one_off_names(values, upgrade=True) == [before]
    elsewhere = copy.deepcopy(values) | {
        "workers": [{"name": "all", "replicas": 5}],
        "commonLabels": {},
    }
    elsewhere["spark"]["jobs"][1]["schedule"] = "0 4 * * *"
    assert one_off_names(elsewhere) == [before], "nothing of it has changed"
    changes = [
        {"topics": ["orders", "more"]},
        {"run": 2},
        {"args": ["--max-rate=10MB"]},
    ]
    for change in changes:
        changed = copy.deepcopy(values)
        changed["spark"]["jobs"][0] |= change
        assert one_off_names(changed) != [before], change
    assert one_off_names({**values, "image": {"tag": "9.9.9"}}) == [before], "not its image"
    assert one_off_names({**values, "spark": {**values["spark"], "image": {"tag": "9.9.9"}}}) != [
        before
    ]


def test_a_job_that_has_run_stays_or_the_next_upgrade_would_run_it_again():
    for each in render_file("spark").kind("Job"):
        assert "ttlSecondsAfterFinished" not in each["spec"]


@pytest.mark.parametrize(
    ("resources", "master", "expected"),
    [
        ({"requests": {"cpu": "1500m"}, "limits": {"memory": "3Gi", "cpu": None}}, "local[*]", "local[2]"),
        ({"requests": {"cpu": 1}, "limits": {"memory": "3Gi", "cpu": 4}}, "local[*]", "local[4]"),
        ({"requests": {"cpu": 1}, "limits": {"memory": "3Gi", "cpu": 4}}, "local[3]", "local[3]"),
        ({"requests": {"cpu": 1}, "limits": {"memory": "3Gi", "cpu": 4}}, "local", "local[1]"),
    ],
)  # fmt: skip
def test_spark_has_as_many_threads_as_its_pod_has_cores(resources, master, expected):
    values = ci_values("spark")
    values["spark"] |= {"master": master, "resources": resources}
    for name, container in render(values).containers():
        if name.endswith("container spark"):
            assert f"--master={expected}" in container["args"], name


@pytest.mark.parametrize(
    ("tls", "secret"),
    [
        ({"existingSecret": "http.certificate"}, "http.certificate"),
        ({"certManager": {"enabled": True, "issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}}, "rel-replicator-http-tls"),
    ],
)  # fmt: skip
def test_with_a_certificate_everybody_speaks_https(tls, secret):
    values = everything(http={"tls": tls}, monitoring={"podMonitor": {"enabled": True}})
    rendered = render(values)
    (workers,) = rendered.kind("StatefulSet")
    spec = workers["spec"]["template"]["spec"]
    worker = spec["containers"][0]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert worker[probe]["httpGet"]["scheme"] == "HTTPS"
    (volume,) = (v["secret"] for v in spec["volumes"] if v["name"] == "http-tls")
    assert volume["secretName"] == secret
    (mount,) = (m for m in worker["volumeMounts"] if m["name"] == "http-tls")
    assert "subPath" not in mount, "it would never change"
    files = {f"{mount['mountPath']}/{item['path']}" for item in volume["items"]}
    given = {a.partition("=")[2] for a in worker["args"] if a.startswith("--http-tls-")}
    assert given == files
    (test,) = (pod["spec"] for name, pod in rendered.pods() if name.startswith("Pod/"))
    assert f"--url=https://{spec_name(workers)}:8080" in test["containers"][0]["args"]
    (ca,) = (v["secret"] for v in test["volumes"] if v["name"] == "http-tls")
    assert [item["key"] for item in ca["items"]] == ["ca.crt"], "the test has no use for the key"
    (monitor,) = rendered.kind("PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["serverName"] == spec_name(workers)
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": secret, "key": "ca.crt"}
    for certificate in rendered.kind("Certificate"):
        assert certificate["spec"]["secretName"] == secret
        assert spec_name(workers) in certificate["spec"]["dnsNames"]
    assert "https://127.0.0.1" in rendered.notes


def spec_name(workers):
    """The Service of the workers, by whose name they are asked."""
    return workers["spec"]["serviceName"]
