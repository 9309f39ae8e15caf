"""docs/deploying.md: its commands are run as far as that goes without a cluster, and its files are right."""

import itertools
import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from api_server import find_programs
from chart_engine import ROOT, ci_values, lint, render
from documented_rights import TOPICS, commands_of, table_of
from program_commands import commands

from replicator.topology.file.load import load_text

PAGE = (ROOT / "docs/deploying.md").read_text()
EXAMPLES = ROOT / "deploy/examples"
VALUES = yaml.safe_load((EXAMPLES / "values.yaml").read_text())
COMMANDS = [
    shlex.split(line) for line in re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
]  # fmt: skip


ON_PURPOSE = {"CPU limit is not set", "ImagePullPolicy is not set to Always"}


def of(program):
    return [words for words in COMMANDS if words[0] == program]


def test_the_values_of_a_bank_render_without_a_warning_and_their_topology_compiles():
    rendered = render(VALUES)
    assert lint(VALUES) == []
    assert "WARNING" not in rendered.notes
    assert load_text(rendered.topology()).plan is not None
    assert rendered.kind("StatefulSet")[0]["spec"]["replicas"] == 3


def test_every_helm_command_names_the_charts_version_and_files_that_exist():
    chart = yaml.safe_load((ROOT / "helm/replicator/Chart.yaml").read_text())
    seen = set()
    for words in of("helm"):
        seen.add(words[1])
        options = dict(itertools.pairwise(words))
        if "-f" in options:
            assert (ROOT / options["-f"]).exists()
            assert options["--version"] == chart["version"]
        if words[1] == "push":
            assert words[2] == f"{chart['name']}-{chart['version']}.tgz"
    assert seen == {"package", "push", "install", "test", "upgrade", "rollback", "uninstall"}


def test_the_table_of_rights_on_kafka_says_what_the_commands_grant():
    granted = commands_of("deploying.md")
    assert granted == table_of("security.md", "Least rights")
    assert {right.cluster for right in granted} == set(VALUES["topology"]["spec"]["clusters"])
    (link,) = VALUES["topology"]["spec"]["links"]
    assert link["topics"]["include"] == [f"{TOPICS}*"]


def test_every_secret_that_is_made_is_one_that_the_values_name():
    made = {words[4] for words in of("kubectl") if words[1:3] == ["create", "secret"]}
    named = {each["existingSecret"] for each in VALUES["secretMounts"]}
    named |= {each["name"] for each in VALUES["imagePullSecrets"]}
    named.add(VALUES["http"]["token"]["existingSecret"])
    assert made == named


def test_commands_of_the_program_are_the_programs():
    inside = [words[words.index("--") + 1 :] for words in of("kubectl") if "--" in words]
    assert inside
    for program, command, *_ in inside:
        assert program == "replicator"
        assert command in commands()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
def test_what_kubectl_creates_it_creates(tmp_path):
    (tmp_path / "ca.crt").write_text("certificate")
    created = [words for words in of("kubectl") if words[1] == "create"]
    assert len(created) == 5
    for words in created:
        done = subprocess.run(
            [*words, "--dry-run=client", "--output=json"], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        secret = json.loads(done.stdout)
        if secret["metadata"]["name"].startswith("kafka-"):
            mounts = {each["existingSecret"]: each["mountPath"] for each in VALUES["secretMounts"]}
            security = VALUES["topology"]["spec"]["clusters"][secret["metadata"]["name"][6:]]
            files = [
                each["file"] for each in security["security"].values() if isinstance(each, dict)
            ]
            folder = mounts[secret["metadata"]["name"]]
            assert set(files) == {f"{folder}/{key}" for key in secret["data"]}


@pytest.mark.slow
@pytest.mark.parametrize("values", [VALUES, ci_values("spark")], ids=["bank", "spark"])
def test_kube_score_finds_what_the_page_says_and_no_more(values):
    program = find_programs("kube-score")["kube-score"]
    text = "\n---\n".join(
        text for path, text in render(values).texts.items() if path.endswith(".yaml")
    )
    done = subprocess.run(
        [program, "score", "--output-format=json", "-"], input=text, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    found = {
        comment["summary"] for each in json.loads(done.stdout) for check in each["checks"]
        if not check["skipped"] and check["grade"] < 10 for comment in check["comments"]
    }  # fmt: skip
    assert found == ON_PURPOSE
    assert "`kube-score` finds two things" in PAGE
