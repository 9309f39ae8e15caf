"""deploy/: images, compose, Prometheus and Grafana say what the program and the chart say."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
import typer
import yaml
from chart_engine import CHART, ROOT
from dockerfile import stages
from packaging.requirements import Requirement
from packaging.version import Version
from promtool import promtool

from replicator.cli.main import build_app
from replicator.topology.file.load import load_plan

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
IMAGES = stages(DEPLOY / "Dockerfile")


def lineage(name):
    """A stage and those it begins from."""
    stage = IMAGES[name]
    return [stage, *(lineage(stage.base) if stage.base in IMAGES else [])]


@pytest.mark.parametrize("target", ["worker", "spark"])
def test_images_run_as_nobody_with_a_pinned_base_and_no_build_tools(target):
    stage = IMAGES[target]
    assert stage.all("USER") == ["10001:10001"]
    commands = " ".join(rest for each in lineage(target) for rest in each.all("RUN"))
    assert not re.search(r"gcc|build-essential|-dev\b|pip install", commands)
    assert IMAGES[target].all("COPY")[:2] == [
        f"--from={'dependencies' if target == 'worker' else 'dependencies-spark'} /opt/replicator /opt/replicator",
        f"--from={'program' if target == 'worker' else 'program-spark'} /program/ /",
    ], "an upgrade pulls the program's layer only"
    assert "pip uninstall" in commands
    labels = " ".join(rest for each in lineage(target) for rest in each.all("LABEL"))
    for label in ("title", "description", "licenses", "version", "revision", "created"):
        assert f"org.opencontainers.image.{label}=" in labels
    (default,) = re.findall(
        r"^ARG PYTHON_IMAGE=(\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE
    )
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", default)
    assert Version(default.split(":")[1].split("-")[0]) >= Version("3.11")


def test_images_are_built_under_their_version_from_within_another_make_as_well(tmp_path):
    """`make test-images` builds them by `make images`; make tells then which folder it enters."""
    engine = tmp_path / "docker"
    engine.write_text('#!/bin/sh\necho "$@"\n')  # says what the real one would be asked
    engine.chmod(0o755)
    done = subprocess.run(
        ["make", "images"], cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "ENGINE": "docker", "MAKELEVEL": "1", "MAKEFLAGS": "w"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    tags = re.findall(r" -t (\S+) \.$", done.stdout, re.MULTILINE)
    assert tags == [f"replicator/worker:{version}", f"replicator/spark:{version}"]


def requirements(name):
    """Pinned packages of a file, each with its hashes; pip refuses a file that leaves one out."""
    text = (DEPLOY / "requirements" / f"{name}.txt").read_text()
    assert "http" not in text, "no registry is named"
    found = {}
    for entry in text.replace("\\\n", " ").splitlines():
        if entry.strip() and not entry.startswith("#"):
            pin, *hashes = entry.split("--hash=")
            package, _, version = pin.split(";")[0].strip().partition("==")
            assert hashes, package
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", each) for each in hashes), package
            found[package.lower().replace(".", "-")] = version
    return found


def test_the_worker_image_has_a_healthcheck_on_the_programs_port():
    (check,) = IMAGES["worker"].all("HEALTHCHECK")
    assert "http://127.0.0.1:8080/livez" in check
    assert IMAGES["worker"].all("EXPOSE") == ["8080"]


def test_files_that_images_copy_are_there_and_not_ignored():
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for stage in IMAGES.values():
        for rest in stage.all("COPY"):
            if rest.startswith("--from="):
                continue
            for source in shlex.split(rest)[:-1]:
                assert (ROOT / source).exists(), source
                assert any(source == each or source.startswith(f"{each}/") for each in kept), source


def test_pinned_versions_are_within_what_the_program_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for image, extra in (("worker", extras["aws"]), ("spark", extras["aws"] + extras["spark"])):
        pinned = requirements(image)
        for text in (*project["dependencies"], *extra):
            wanted = Requirement(text)
            assert pinned[wanted.name.lower().replace(".", "-")] in wanted.specifier, text
    assert requirements("worker").items() <= requirements("spark").items()
    building = (DEPLOY / "requirements" / "build.in").read_text()
    for text in filter(None, (line.partition("#")[0].strip() for line in building.splitlines())):
        wanted = Requirement(text)
        assert requirements("build")[wanted.name] in wanted.specifier, text


def test_the_version_of_images_is_the_programs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for image in ("worker", "spark"):
        assert IMAGES[image].all("ARG")[0] == f"VERSION={project['version']}"
    assert COMPOSE["services"]["worker-1"]["image"] == f"replicator/worker:{project['version']}"


def test_compose_runs_the_program_as_the_chart_does():
    run = typer.main.get_command(build_app()).commands["run"]
    workers = [each for name, each in COMPOSE["services"].items() if name.startswith("worker-")]
    assert len(workers) == 2
    for worker in workers:
        command, *arguments = worker["command"]
        assert command == "run"
        run.make_context("run", arguments)
        assert worker["read_only"] is True
        assert worker["cap_drop"] == ["ALL"]
        assert worker["build"]["target"] in IMAGES
    assert len({tuple(worker["command"]) for worker in workers}) == 2, "names of their own"


def test_files_that_compose_mounts_are_there_and_its_topology_compiles():
    for name, service in COMPOSE["services"].items():
        assert not service["image"].endswith(":latest"), name
        for volume in service.get("volumes", []):
            assert (DEPLOY / volume.split(":")[0]).exists(), volume
    plan = load_plan(DEPLOY / "compose" / "topology.yaml").plan
    addresses = {server for cluster in plan.clusters for server in cluster.bootstrap_servers}
    assert {address.split(":")[0] for address in addresses} <= COMPOSE["services"].keys()


def test_compose_uses_the_kafka_that_the_tests_use():
    pom = (ROOT / "replicator/testing/cluster/local_kafka/pom.xml").read_text()
    (version,) = re.findall(r"<kafka.version>([^<]+)<", pom)
    assert COMPOSE["services"]["kafka-east"]["image"] == f"apache/kafka:{version}"


def test_prometheus_takes_its_configuration(tmp_path):
    for name in ("prometheus.yaml", "alerts.yaml"):
        shutil.copy(DEPLOY / "prometheus" / name, tmp_path)
    promtool("check", "config", "prometheus.yaml", directory=tmp_path)


def test_grafana_finds_data_source_and_dashboards_where_compose_mounts_them():
    (source,) = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text()
    )["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/dashboards/replicator.yaml").read_text()
    )["providers"]
    mounts = dict(v.split(":")[:2][::-1] for v in COMPOSE["services"]["grafana"]["volumes"])
    assert mounts[provider["options"]["path"]] == "./grafana/dashboards"
    names = {path.name for path in (DEPLOY / "grafana/dashboards").iterdir()}
    assert names == {path.name for path in (CHART / "files/dashboards").iterdir()}
    assert all(
        json.loads(path.read_text())["uid"] for path in (DEPLOY / "grafana/dashboards").iterdir()
    )


WORKFLOWS = {
    file.name: yaml.safe_load(file.read_text()) for file in (ROOT / ".github/workflows").iterdir()
}  # fmt: skip
STEPS = [step for flow in WORKFLOWS.values() for job in flow["jobs"].values() for step in job["steps"]]  # fmt: skip


def test_workflows_run_targets_that_the_makefile_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {
        target for step in STEPS
        for target in re.findall(r"\bmake (?:--silent )?([a-z-]+)", step.get("run", ""))
    }  # fmt: skip
    assert used >= {"test", "images", "test-images"}
    assert used <= targets


def test_actions_of_workflows_are_pinned_by_commit_and_a_failure_in_a_pipe_ends_the_step():
    for name, flow in WORKFLOWS.items():
        assert flow["defaults"]["run"]["shell"] == "bash", (
            name
        )  # GitHub adds pipefail to this one only
        assert flow["permissions"] == {"contents": "read"}, f"{name}: more is asked for job by job"
        for job in flow["jobs"].values():
            assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"]) or "matrix" in job["runs-on"]
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each)] == []


DIGEST = f"sha256:{'a' * 64}"
STAND_INS = {
    "docker": f'case "$*" in *inspect*) echo {DIGEST};; run*) echo "{{}}";; esac',
    "helm": f'case "$1" in push) echo "Digest: {DIGEST}"; exit "${{PUSH:-0}}";; esac',
    "cosign": "", "gh": "",
}  # fmt: skip
"""The programs of others that a release calls: each notes how, and answers as the real one does."""


def published(tmp_path, **environment):
    """What the publishing job calls, and how it ended."""
    programs, work = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    shutil.copytree(ROOT / "helm", work / "helm")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, work)
    for name, answer in STAND_INS.items():
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\n{answer}\n')
        (programs / name).chmod(0o755)
    calls = tmp_path / "calls"
    flow = WORKFLOWS["release.yaml"]
    named = flow.get("defaults", {}).get("run", {}).get("shell") == "bash"
    options = (
        ["-eo", "pipefail"] if named else ["-e"]
    )  # as GitHub runs a shell that is named or not
    for step in flow["jobs"]["publish"]["steps"]:
        if "run" in step:
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", *options, "-c", step["run"]], cwd=work,
                capture_output=True, text=True, check=False,
                env={
                    "PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls),
                    "IMAGE_PREFIX": "ghcr.io/o/replicator", "GITHUB_REPOSITORY_OWNER": "o",
                    "GITHUB_REF_NAME": "v1", **environment,
                },
            )  # fmt: skip
            if done.returncode:
                return calls.read_text().splitlines(), done.returncode
    return calls.read_text().splitlines(), 0


def test_a_release_signs_what_it_pushed_by_its_digest_and_attests_the_list_in_the_image(tmp_path):
    calls, code = published(tmp_path)
    assert code == 0
    signed = [call.split()[-1] for call in calls if call.startswith("cosign sign")]
    images = [f"ghcr.io/o/replicator/{image}@{DIGEST}" for image in ("worker", "spark")]
    assert signed == [*images, f"ghcr.io/o/charts/replicator@{DIGEST}"]
    attested = [call.split()[-1] for call in calls if call.startswith("cosign attest")]
    assert attested == images
    listed = {call.split()[-1] for call in calls if call.startswith("docker run")}
    assert listed == {"/opt/replicator/share/sbom.cdx.json"}
    assert "digests.txt" in calls[-1]


def test_a_chart_that_was_not_pushed_ends_the_release(tmp_path):
    calls, code = published(tmp_path, PUSH="1")
    assert code != 0
    assert calls[-1].startswith("helm push"), "nothing is signed or published after it"
