"""Level 5: what the chart says exists in the program: files, commands, options, names, ports, paths."""

import inspect
import re
import subprocess
import sys

import pytest
import typer
import yaml
from chart_engine import CI_FILES, ROOT, Rendered, ci_values, render, render_file
from program_commands import commands

from replicator.api.address import parse_http_address
from replicator.cli.main import build_app
from replicator.topology.load import load_plan


def test_arguments_of_every_container_exist_in_the_program(rendered):
    known = commands()
    for name, arguments in program_arguments(rendered):
        words = [word for word in arguments if not word.startswith("-")]
        verb = next((v for v in (" ".join(words[:2]), words[0]) if v in known), None)
        assert verb is not None, f"{name}: {arguments}"
        options = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        assert options <= known[verb] | {"--debug"}, name


def test_the_worker_takes_its_arguments_as_they_are_written(rendered):
    """By the program's own parser, up to the first broker: nothing is started."""
    run = typer.main.get_command(build_app()).commands["run"]
    for name, arguments in program_arguments(rendered):
        if arguments[0] == "run":
            context = run.make_context("run", [a for a in arguments[1:] if a != "--debug"])
            assert parse_http_address(context.params["http"]).host == "0.0.0.0", name  # noqa: S104  as a pod must


def program_arguments(rendered: Rendered) -> list[tuple[str, list[str]]]:
    """Arguments of each container that runs the program, as the program gets them."""
    found = [
        (name, container["args"])
        for name, container in rendered.containers()
        if "replicator/" in container.get("image", "")
    ]
    applications = [
        *((each["metadata"]["name"], each["spec"]) for each in rendered.kind("SparkApplication")),
        *(
            (each["metadata"]["name"], each["spec"]["template"])
            for each in rendered.kind("ScheduledSparkApplication")
        ),
    ]
    return found + [(name, application["arguments"]) for name, application in applications]


def test_probes_ask_paths_that_the_server_answers_at_the_port_it_opens(rendered):
    from replicator.api.admission import OPEN_PATHS

    for each in rendered.kind("StatefulSet"):
        (worker,) = (
            c for c in each["spec"]["template"]["spec"]["containers"] if c["name"] == "worker"
        )
        (http,) = (a.partition("=")[2] for a in worker["args"] if a.startswith("--http="))
        assert worker["ports"] == [{"name": "http", "containerPort": parse_http_address(http).port}]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert worker[probe]["httpGet"]["path"] in OPEN_PATHS, "open without a token"


def test_workers_may_listen_on_ipv6():
    rendered = render({**ci_values("minimal"), "http": {"bind": "[::]", "port": 9000}})
    (arguments,) = (a for _, a in program_arguments(rendered) if a[0] == "run")
    (http,) = (a.partition("=")[2] for a in arguments if a.startswith("--http="))
    address = parse_http_address(http)
    assert (address.host, address.port) == ("::", 9000)


def test_environment_variables_are_those_the_program_reads(rendered):
    sources = "".join(path.read_text() for path in (ROOT / "replicator").rglob("*.py"))
    read = set(re.findall(r"REPLICATOR_[A-Z_]+", sources))
    for name, container in rendered.containers():
        ours = {v["name"] for v in container.get("env", []) if v["name"].startswith("REPLICATOR_")}
        assert ours <= read, name


@pytest.mark.parametrize("name", sorted(CI_FILES))
def test_the_topology_that_pods_find_compiles_to_what_was_given(name, tmp_path):
    rendered = render_file(name)
    file = tmp_path / "topology.yaml"
    file.write_text(rendered.topology())
    given = tmp_path / "given.yaml"
    given.write_text(yaml.safe_dump(ci_values(name)["topology"]))
    assert load_plan(file).plan is not None
    assert load_plan(file).plan.hash == load_plan(given).plan.hash


@pytest.mark.parametrize("name", sorted(CI_FILES))
def test_secrets_that_the_topology_refers_to_are_mounted(name):
    rendered = render_file(name)
    text = rendered.topology()
    files = re.findall(r"file: (\S+)", text)
    variables = re.findall(r"env: (\S+)", text)
    for each in rendered.kind("StatefulSet"):
        (worker,) = (
            c for c in each["spec"]["template"]["spec"]["containers"] if c["name"] == "worker"
        )
        mounts = [mount["mountPath"] for mount in worker["volumeMounts"]]
        assert all(any(f.startswith(f"{mount}/") for mount in mounts) for f in files)
        assert set(variables) <= {variable["name"] for variable in worker["env"]}


def test_text_by_set_file_is_kept_with_its_comments():
    text = (ROOT / "topologies" / "three-regions.yaml").read_text()
    assert render({"topologyText": text}).topology() == text


def test_workers_of_a_set_serve_flows_that_the_plan_has(rendered, tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_text(rendered.topology())
    plan = load_plan(file).plan
    for _, arguments in program_arguments(rendered):
        if arguments[0] == "run":
            clusters = {a.partition("=")[2] for a in arguments if a.startswith("--cluster=")}
            flows = {a.partition("=")[2] for a in arguments if a.startswith("--flow=")}
            assert clusters <= {pair.target.alias for pair in plan.pairs}
            assert flows <= {pair.id for pair in plan.pairs}


def test_a_bad_topology_makes_the_hook_fail_and_its_message_reaches_the_user(tmp_path):
    values = ci_values("minimal")
    values["topology"]["spec"]["links"][0]["passive"] = "wset"  # the schema cannot know it
    rendered = render(values)
    (job,) = (
        each for each in rendered.kind("Job") if each["metadata"]["name"].endswith("-validate")
    )
    (file,) = (
        each["data"]["topology.yaml"] for each in rendered.kind("ConfigMap")
        if each["metadata"]["name"] == job["metadata"]["name"]
    )  # fmt: skip
    place = tmp_path / "topology.yaml"
    place.write_text(file)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    said = subprocess.run(
        [sys.executable, "-m", "replicator", *container["args"]],
        env={"REPLICATOR_TOPOLOGY": str(place), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert said.returncode == 2
    assert "'wset' is not a cluster of this topology" in said.stdout + said.stderr
    assert "did you mean 'west'?" in said.stdout + said.stderr
    annotations = job["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert annotations["helm.sh/hook-output-log-policy"] == "hook-failed"
    assert job["spec"]["backoffLimit"] == 0
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_hooks_find_their_file_before_the_release_is_there():
    rendered = render_file("ha")
    hooks = {
        each["metadata"]["name"]: each for each in rendered.objects
        if "helm.sh/hook" in each["metadata"].get("annotations", {})
    }  # fmt: skip
    (job,) = (each for each in hooks.values() if each["kind"] == "Job")
    (volume,) = (v for v in job["spec"]["template"]["spec"]["volumes"] if "configMap" in v)
    file = next(
        each for each in rendered.objects
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == volume["configMap"]["name"]
    )  # fmt: skip
    weights = [int(each["metadata"]["annotations"]["helm.sh/hook-weight"]) for each in (file, job)]
    assert weights == sorted(weights)
    assert weights[0] < weights[1]
    assert "serviceAccountName" not in job["spec"]["template"]["spec"], "it is made later"


def test_the_default_grace_periods_fit_the_programs():
    default = (
        inspect.signature(__import__("replicator.cli.run", fromlist=["run"]).run)
        .parameters["grace"]
        .default
    )
    (each,) = render_file("minimal").kind("StatefulSet")
    spec = each["spec"]["template"]["spec"]
    assert f"--grace={default:g}" in spec["containers"][0]["args"]
    assert spec["terminationGracePeriodSeconds"] >= default + 10
