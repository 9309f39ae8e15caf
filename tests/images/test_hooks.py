"""The hook that checks a topology before each install and upgrade, run as the chart's Job runs it."""

import json

import pytest
from chart_engine import ci_values
from pods import pod_of

BROKEN = {"apiVersion": "replicator/v1", "kind": "Topology", "metadata": {"name": "x"}, "spec": {"clusters": {}, "links": [{"name": "l", "shape": "ring"}]}}  # fmt: skip


def test_a_topology_that_is_right_lets_the_release_go_on(kubelet):
    run = kubelet(ci_values("spark"))
    hook = pod_of(run.rendered, "Job", "-validate")
    names = [each["name"] for each in hook["spec"]["containers"]]
    assert names[0] == "validate"
    assert len(names) > 1, "drills are checked, too"
    for name in names:
        code, said = run.finish(hook, name=name, seconds=60, container_name=name)
        assert code == 0, said
        assert "valid" in said


@pytest.mark.parametrize("security", [{}, {"runAsUser": None, "runAsGroup": None, "fsGroup": None}], ids=["as-shipped", "any-user"])  # fmt: skip
def test_one_that_is_wrong_stops_it_and_says_where(kubelet, security):
    run = kubelet({"topologyText": json.dumps(BROKEN, indent=1), "podSecurity": security})
    code, said = run.finish(pod_of(run.rendered, "Job", "-validate"), name="hook", seconds=60)
    assert code == 2, said
    assert "topology.yaml:" in said
    assert "shape" in said
