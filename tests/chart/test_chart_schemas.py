"""Level 2: every object passes the strict schemas of the oldest and the newest Kubernetes."""

import copy

import pytest
import yaml
from chart_engine import CHART, render_file
from object_schemas import CRD_KINDS, NEWEST, OLDEST, SPARK_KINDS, pod_problem, problem


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_objects_pass_strict_schemas(rendered, version):
    problems = {
        f"{each['kind']}/{each['metadata']['name']}": found
        for each in rendered.objects
        if (found := problem(each, version))
    }
    assert not problems


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_pods_inside_objects_of_operators_pass_too(version):
    pods = [
        (name, pod)
        for file in ("all-on", "spark")
        for name, pod in render_file(file).pods()
        if name.startswith(("Spark", "Scheduled", "ConfigMap"))
    ]
    assert len(pods) == 5
    assert not {name: found for name, pod in pods if (found := pod_problem(pod, version))}


def test_the_oldest_kubernetes_is_the_one_the_chart_asks_for():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"


def test_every_kind_of_operators_is_rendered_and_a_mistake_in_it_is_seen():
    objects = {
        each["kind"]: each
        for file in ("all-on", "keda", "ha")
        for each in render_file(file).objects
    }
    assert objects.keys() >= CRD_KINDS | SPARK_KINDS
    broken = {
        "PodMonitor": ("podMetricsEndpoints", "http"),
        "ServiceMonitor": ("endpoints", "http"),
        "PrometheusRule": ("groups", [{"name": 1}]),
        "ScaledObject": ("triggers", [{"type": "prometheus", "metadata": {"threshold": 5}}]),
        "SparkApplication": ("drivre", {}),
        "ScheduledSparkApplication": ("crontab", ""),
    }
    for kind, (field, value) in broken.items():
        each = copy.deepcopy(objects[kind])
        each["spec"][field] = value
        assert problem(each, NEWEST), kind
    misspelt = copy.deepcopy(objects["StatefulSet"])
    misspelt["spec"]["template"]["spec"]["termnationGracePeriodSeconds"] = 1
    assert "termnationGracePeriodSeconds" in problem(misspelt, NEWEST)
