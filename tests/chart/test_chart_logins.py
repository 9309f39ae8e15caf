"""Each way to log in, as values of the chart: what the topology refers to is in every pod that reads it."""

import itertools
import json
import re
from pathlib import PurePosixPath

import pytest
import yaml
from chart_engine import ROOT, Rendered, ci_values, lint, render

from replicator.topology.file.load import load_text

EXAMPLES = {path.stem: path for path in (ROOT / "deploy/examples/logins").glob("*.yaml")}
WAYS = {
    "client-credentials": "OAUTHBEARER", "projected-token": "OAUTHBEARER",
    "token-command": "OAUTHBEARER", "aws-iam": "AWS_MSK_IAM", "scram": "SCRAM-SHA-512",
    "mutual-tls": None,
}  # fmt: skip
ROLE = "eks.amazonaws.com/role-arn"


def rendered_with(name: str, mode: str) -> Rendered:
    """The example with jobs of Spark beside the workers."""
    values = yaml.safe_load(EXAMPLES[name].read_text())
    spark = ci_values("spark")["spark"] | values.get("spark", {}) | {"mode": mode}
    return render(values | {"spark": spark})


def readers(rendered: Rendered):
    """Containers that log in: workers, drivers and executors."""
    return [
        (name, pod["spec"], container)
        for name, pod in rendered.pods()
        for container in pod["spec"]["containers"]
        if re.search(r"StatefulSet|Spark|executor|-seed|-nightly|-archive", name)
    ]


@pytest.mark.parametrize("mode", ["job", "operator"])
@pytest.mark.parametrize("name", WAYS)
def test_every_pod_that_logs_in_has_what_the_topology_refers_to(name, mode):
    rendered = rendered_with(name, mode)
    loaded = load_text(rendered.topology())
    assert loaded.errors == ()
    security = loaded.plan.cluster("east").security
    assert security.mechanism == WAYS[name]
    written = yaml.safe_load(rendered.topology())["spec"]["clusters"]["east"]["security"]
    paths = [PurePosixPath(path) for path in re.findall(r'"(/[^"]+)"', json.dumps(written))]
    assert bool(paths) == (name != "aws-iam")
    found = readers(rendered)
    assert len(found) >= 4
    for pod, spec, container in found:
        mounts = {PurePosixPath(each["mountPath"]): each for each in container["volumeMounts"]}
        for path in paths:
            mount = mounts.get(path.parent)
            assert mount is not None, f"{pod} has no {path.parent}"
            assert mount["readOnly"]
            assert mount["name"] in {each["name"] for each in spec["volumes"]}


def test_each_example_passes_helms_own_checks_and_names_what_must_be_granted():
    assert set(EXAMPLES) == set(WAYS)
    page = (ROOT / "docs/security.md").read_text()
    for name, path in EXAMPLES.items():
        text = path.read_text()
        assert lint(yaml.safe_load(text)) == []
        assert f"deploy/examples/logins/{name}.yaml" in page
        comment = " ".join(itertools.takewhile(lambda line: line[:1] == "#", text.splitlines()))
        assert re.search("rights|role|right", comment)


@pytest.mark.parametrize("mode", ["job", "operator"])
def test_workers_drivers_and_executors_have_the_role_of_aws(mode):
    rendered = rendered_with("aws-iam", mode)
    roles = {
        each["metadata"]["name"]: each["metadata"].get("annotations", {}).get(ROLE)
        for each in rendered.kind("ServiceAccount")
    }
    for pod, spec, _ in readers(rendered):
        assert roles[spec["serviceAccountName"]], pod
        assert "executor" not in pod or spec["automountServiceAccountToken"] is False
