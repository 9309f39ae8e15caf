"""Level 3: what a platform team asks of every pod, and what objects owe each other."""

import re

import pytest
from chart_engine import ci_values, render

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def test_every_pod_fits_the_restricted_profile(rendered):
    """Pod Security Standards, restricted, as of Kubernetes 1.37."""
    volumes = {
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
        "projected", "secret",
    }  # fmt: skip
    for name, pod in rendered.pods():
        spec = pod["spec"]
        for field in ("hostNetwork", "hostPID", "hostIPC", "hostUsers"):
            assert field not in spec, name
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True, name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert security.get("runAsUser", 10001) >= 10000, name
        for volume in spec.get("volumes", []):
            assert set(volume) - {"name"} <= volumes, f"{name}: {volume}"
    for name, container in rendered.containers():
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, name
        assert security["readOnlyRootFilesystem"] is True, name
        assert security["capabilities"] == {"drop": ["ALL"]}, name
        assert not security.get("privileged"), name
        assert all("hostPort" not in port for port in container.get("ports", [])), name


def test_where_the_platform_chooses_ids_none_is_set():
    for _, pod in render(ci_values("locked-down")).pods():
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(pod["spec"]["securityContext"])


def test_only_drivers_of_spark_get_a_service_account_token(rendered):
    for name, pod in rendered.pods():
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        if pod["spec"]["automountServiceAccountToken"]:
            assert component == "spark", name
    for account in rendered.kind("ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
    for role in rendered.kind("Role"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"]
            assert "secrets" not in rule["resources"]
    assert not rendered.kind("ClusterRole", "ClusterRoleBinding")


def test_every_container_has_requests_and_limits_of_memory_and_disk(rendered):
    for name, container in rendered.containers():
        resources = container["resources"]
        assert resources["requests"]["cpu"], name
        assert resources["requests"]["memory"], name
        assert resources["limits"]["memory"], name
        if container["name"] not in {"wait", "tail"}:  # the user's own, of all-on
            assert resources["limits"]["ephemeral-storage"], name
        # Spark starts as many threads as it has cores; throttled lanes lag.
        assert ("cpu" in resources["limits"]) == ("container spark" in name), name


def test_workers_have_three_probes_of_which_two_differ(rendered):
    for each in rendered.kind("StatefulSet"):
        (worker,) = (
            c for c in each["spec"]["template"]["spec"]["containers"] if c["name"] == "worker"
        )
        paths = [worker[probe]["httpGet"]["path"] for probe in PROBES]
        assert paths == ["/livez", "/livez", "/readyz"]
        assert {worker[probe]["httpGet"]["port"] for probe in PROBES} == {"http"}
        assert [port["name"] for port in worker["ports"]] == ["http"]


def test_images_are_pinned(rendered):
    for name, container in rendered.containers():
        image = container.get("image")
        if image is None:  # Spark's own containers: the application names the image
            assert "spark-kubernetes-" in name
            continue
        assert re.search(r"(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$", image), image
        assert not image.endswith(":latest"), image


def test_selectors_find_their_pods_and_no_others(rendered):
    pods = rendered.pods()
    workers = {name for name, _ in pods if name.startswith("StatefulSet/")}
    for each in rendered.kind("StatefulSet"):
        labels = each["spec"]["selector"]["matchLabels"]
        name = f"StatefulSet/{each['metadata']['name']}"
        assert _chosen(labels, pods) == {name}
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & labels.keys()
    for each in rendered.kind("Service"):
        assert _chosen(each["spec"]["selector"], pods) == workers
    for each in rendered.kind("PodMonitor"):
        assert _chosen(each["spec"]["selector"]["matchLabels"], pods) == workers
    for each in rendered.kind("ServiceMonitor"):
        wanted = each["spec"]["selector"]["matchLabels"].items()
        found = [s for s in rendered.kind("Service") if wanted <= s["metadata"]["labels"].items()]
        assert len(found) == 1
    for each in rendered.kind("NetworkPolicy"):
        assert _chosen(each["spec"]["podSelector"]["matchLabels"], pods) == {n for n, _ in pods}
    for each in rendered.kind("PodDisruptionBudget"):
        chosen = _chosen(each["spec"]["selector"]["matchLabels"], pods)
        assert chosen == {f"StatefulSet/{each['metadata']['name']}"}


def _chosen(labels, pods):
    return {name for name, pod in pods if labels.items() <= pod["metadata"]["labels"].items()}


def test_spread_and_affinity_select_their_own_set(rendered):
    for each in rendered.kind("StatefulSet"):
        spec = each["spec"]["template"]["spec"]
        labels = each["spec"]["selector"]["matchLabels"]
        for constraint in spec["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"] == labels
        (term,) = spec["affinity"]["podAntiAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels


def test_a_disruption_budget_exists_where_a_pod_may_be_missing_and_can_be_met(rendered):
    budgets = {
        each["metadata"]["name"]: each["spec"] for each in rendered.kind("PodDisruptionBudget")
    }
    scalers = {
        each["metadata"]["name"]: (spec.get("minReplicas", spec.get("minReplicaCount")),
                                   spec.get("maxReplicas", spec.get("maxReplicaCount")))
        for each in rendered.kind("HorizontalPodAutoscaler", "ScaledObject")
        for spec in [each["spec"]]
    }  # fmt: skip
    for each in rendered.kind("StatefulSet"):
        name = each["metadata"]["name"]
        least, most = scalers.get(name, (each["spec"].get("replicas"),) * 2)
        assert ("replicas" in each["spec"]) != (name in scalers), (
            "an autoscaler owns replicas alone"
        )
        assert (name in budgets) == (most > 1), "also of a set that an autoscaler starts with one"
        if name in budgets:
            assert budgets[name].get("minAvailable", 0) < least
            assert budgets[name].get("maxUnavailable", 1) >= 1


def test_the_network_policy_leaves_open_what_the_release_needs(rendered):
    for policy in rendered.kind("NetworkPolicy"):
        spec = policy["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        (http,) = {port["port"] for rule in spec["ingress"] for port in rule.get("ports", [])}
        assert http == 8080
        dns = [
            rule
            for rule in spec["egress"]
            if {"port": 53, "protocol": "UDP"} in rule.get("ports", [])
        ]
        assert dns
        assert any("podSelector" in peer for rule in spec["egress"] for peer in rule.get("to", []))


def test_the_test_pod_reaches_the_workers_through_the_network_policy(rendered):
    (test,) = (pod for name, pod in rendered.pods() if name.startswith("Pod/"))
    labels = test["metadata"]["labels"].items()
    (policy,) = rendered.kind("NetworkPolicy")
    peers = [peer for rule in policy["spec"]["ingress"] for peer in rule["from"]]
    assert any(
        peer.get("podSelector", {}).get("matchLabels", {}).items() <= labels
        for peer in peers
        if "podSelector" in peer and "namespaceSelector" not in peer
    )


def test_no_object_holds_a_secret(rendered):
    assert not rendered.kind("Secret")
    for name, container in rendered.containers():
        for variable in container.get("env", []):
            if re.search("PASSWORD|SECRET|TOKEN", variable["name"], re.IGNORECASE):
                assert "value" not in variable, name


def test_every_mount_has_its_volume(rendered):
    for name, pod in rendered.pods():
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        mounts = {
            mount["name"]
            for field in ("initContainers", "containers")
            for container in pod["spec"].get(field, [])
            for mount in container.get("volumeMounts", [])
        }
        assert mounts <= volumes, name
        writable = [v for v in pod["spec"]["volumes"] if "emptyDir" in v]
        assert [v["name"] for v in writable] == ["tmp"], name
        assert writable[0]["emptyDir"]["sizeLimit"], name


def test_drills_are_suspended_unless_the_values_say_otherwise():
    drills = [
        each
        for each in render(ci_values("spark")).kind("CronJob")
        if "drill" in each["metadata"]["name"]
    ]
    assert [each["spec"]["suspend"] for each in drills] == [True]
    drills = [
        each
        for each in render(ci_values("all-on")).kind("CronJob")
        if "drill" in each["metadata"]["name"]
    ]
    assert [each["spec"]["suspend"] for each in drills] == [False]


@pytest.mark.parametrize(("mode", "expected"), [("watch", False), ("restart", True)])
def test_an_edited_topology_rolls_pods_only_where_that_was_asked_for(mode, expected):
    def annotations(**more):
        values = {**ci_values("minimal"), "reload": mode}
        values["topology"]["spec"]["links"][0].update(more)
        (each,) = render(values).kind("StatefulSet")
        return each["spec"]["template"]["metadata"]["annotations"]

    assert ("checksum/topology" in annotations()) == expected
    assert (annotations() != annotations(priority="bulk")) == expected
