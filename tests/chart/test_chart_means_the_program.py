"""Level 5: what the chart says exists in the program: files, commands, options, names, ports, paths."""

import inspect
import re
import subprocess
import sys

import pytest
import typer
import yaml
from chart_engine import CI_FILES, ROOT, Rendered, ci_values, render, render_file

from replicator.api.server.address import parse_http_address
from replicator.cli.main import build_app
from replicator.drill.environment.link_environment import refuse_what_cannot_be
from replicator.drill.file.load import load_drill_text
from replicator.topology.file.load import load_plan


def test_the_program_takes_the_arguments_of_every_container(rendered):
    """By its own parser, every worker, hook, test, job and CronJob; nothing is started."""
    arguments = program_arguments(rendered)
    assert {given[0] for _, given in arguments} >= {"run", "validate", "check"}
    for name, given in arguments:
        parse(given, name)


def parse(arguments: list[str], name: str) -> dict[str, object]:
    """What a command's own parser makes of a command line."""
    command, rest = typer.main.get_command(build_app()), [a for a in arguments if a != "--debug"]
    while hasattr(command, "commands"):
        assert rest[0] in command.commands, f"{name}: {arguments}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command.make_context(name, rest).params


def test_the_worker_listens_at_the_address_that_is_written(rendered):
    for name, arguments in program_arguments(rendered):
        if arguments[0] == "run":
            address = parse_http_address(parse(arguments, name)["http"])
            assert address.host == "0.0.0.0"  # noqa: S104  as a pod must


def test_an_edit_is_followed_or_rolls_the_pods_never_both():
    for mode in ("watch", "restart"):
        rendered = render({**ci_values("minimal"), "reload": mode})
        (run,) = (each for each in program_arguments(rendered) if each[1][0] == "run")
        assert parse(run[1], run[0])["no_watch"] == (mode == "restart")


@pytest.mark.parametrize("name", ["all-on", "spark"])
def test_drills_are_what_the_program_takes_for_drills(name, tmp_path):
    """The document from the ConfigMap at the path of the command line, with the topology that pods find."""
    rendered = render_file(name)
    topology = tmp_path / "topology.yaml"
    topology.write_text(rendered.topology())
    plan = load_plan(topology).plan
    for each in (
        each for each in rendered.kind("CronJob") if "-drill-" in each["metadata"]["name"]
    ):
        spec = each["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (container,) = (c for c in spec["containers"] if c["name"] == "drill")
        given = parse(container["args"], "drill")
        text = mounted_file(rendered, spec, container, str(given["drill_file"]))
        loaded = load_drill_text(text, file="drill.yaml", plan=plan)
        assert loaded.problems == ()
        assert own_topic_is_copied(loaded.drill, plan)
        assert given["yes"]
        (mount,) = (m for m in container["volumeMounts"] if m["mountPath"] == str(given["reports"]))
        assert not mount.get("readOnly")


def own_topic_is_copied(drill, plan):
    refuse_what_cannot_be(drill, plan)
    return True


def mounted_file(rendered, spec, container, path):
    """The text that a container finds at a path, from a ConfigMap."""
    folder, _, name = path.rpartition("/")
    (mount,) = (m for m in container["volumeMounts"] if m["mountPath"] == folder)
    (volume,) = (v for v in spec["volumes"] if v["name"] == mount["name"])
    (found,) = (
        each["data"][name] for each in rendered.kind("ConfigMap")
        if each["metadata"]["name"] == volume["configMap"]["name"]
    )  # fmt: skip
    return found


def test_the_hook_checks_every_drill_by_the_program():
    rendered = render_file("spark")
    (job,) = (e for e in rendered.kind("Job") if e["metadata"]["name"].endswith("-validate"))
    spec = job["spec"]["template"]["spec"]
    (drill,) = (c for c in spec["containers"] if c["name"] == "drill-monthly")
    given = parse(drill["args"], "drill-monthly")
    text = mounted_file(rendered, spec, drill, str(given["drill_file"]))
    assert load_drill_text(text, file="drill.yaml").problems == ()


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
    from replicator.api.access.admission import OPEN_PATHS

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
    assert "helm.sh/hook-output-log-policy" not in annotations, (
        "Helm as a library, as Flux has it, cannot print"
    )
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
        inspect.signature(__import__("replicator.cli.operation.run", fromlist=["run"]).run)
        .parameters["grace"]
        .default
    )
    (each,) = render_file("minimal").kind("StatefulSet")
    spec = each["spec"]["template"]["spec"]
    assert f"--grace={default:g}" in spec["containers"][0]["args"]
    assert spec["terminationGracePeriodSeconds"] >= default + 10


def test_exported_tails_have_a_place_that_outlives_the_pod():
    values = ci_values("minimal")
    assert "REPLICATOR_EXPORTS" not in str(render(values).kind("StatefulSet"))
    values.setdefault("worker", {})["exports"] = {"existingClaim": "tails"}
    for workers in render(values).kind("StatefulSet"):
        pod = workers["spec"]["template"]["spec"]
        (program,) = pod["containers"]
        (place,) = (one["value"] for one in program["env"] if one["name"] == "REPLICATOR_EXPORTS")
        (mount,) = (one for one in program["volumeMounts"] if one["mountPath"] == place)
        (volume,) = (one for one in pod["volumes"] if one["name"] == mount["name"])
        assert volume["persistentVolumeClaim"] == {"claimName": "tails"}
