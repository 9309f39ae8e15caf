"""What holds for every command, tried on the real one."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from replicator import cli
from replicator.cli import main as command
from replicator.cli.main import VERBS, run_command
from replicator.cli.operation.worker_options import checked_options
from replicator.cli.output import confirm
from replicator.errors import InputError, RefusedError

ROOT = Path(__file__).parents[2]
GOOD = str(ROOT / "topologies" / "three-regions.yaml")
BROKEN = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    east: {bootstrapServers: [east]}
    west: {bootstrapServers: [west:9092]}
  links:
    - {name: l, shape: active-passive, active: esat, passive: west, topics: {include: [orders]}}
"""


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    return str(path)


@pytest.fixture
def verb(monkeypatch):
    """Adds a verb that does what the test says."""

    def add(action):
        build = command.build_app

        def with_verb(_asked):
            app = build()
            app.command("act")(action)
            return app

        monkeypatch.setattr(command, "build_app", with_verb)

    return add


def real(*arguments, **environment):
    """Runs the command as its own process."""
    return subprocess.run(
        [sys.executable, "-m", "replicator", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", **environment},
        timeout=60,
    )


def test_every_file_with_verbs_is_registered():
    files = {
        path.stem: path.parent.name
        for path in Path(cli.__file__).parent.glob("*/*.py")
        if "def register(app" in path.read_text()
    }
    assert files == VERBS


def test_help_fits_80_columns_and_names_every_verb():
    result = real("--help")
    assert result.returncode == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "validate" in result.stdout
    assert result.stderr == ""


def commands(app, *words):
    """Every command of the program, as the words that ask for it."""
    inner = getattr(app, "commands", None)
    if inner is None:
        yield words
        return
    for name, one in inner.items():
        yield from commands(one, *words, name)


def test_no_commands_help_is_cut_off_at_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    for words in commands(typer.main.get_command(command.build_app())):
        assert run_command([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "…" not in shown, words
        assert max(map(len, shown.splitlines())) <= 80, words


def test_without_a_verb_the_help_is_shown(capsys):
    assert run_command([]) == 0
    assert "Usage: replicator" in capsys.readouterr().out


def test_version(capsys):
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("replicator ")


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from replicator.cli.main import run_command; run_command(['--help']);"
        "heavy = {'confluent_kafka', 'kafka', 'pydantic', 'fastapi', 'pyspark', 'ruamel.yaml'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=60,
    )
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validte"], "Did you mean 'validate'?"),
        (["validate", "--nope"], "--nope"),
        (["validate", "-o", "xml"], "'xml' is not one of 'text', 'json', 'yaml'"),
        (["validate", "-f"], "requires an argument"),
        (["validate", "-f", "/none.yaml"], "/none.yaml: there is no such file."),
    ],
)
def test_wrong_usage_is_one_paragraph_and_exit_code_2(arguments, words, capsys):
    assert run_command(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_validate_says_what_a_good_file_holds(capsys):
    assert run_command(["validate", "-f", GOOD]) == 0
    captured = capsys.readouterr()
    assert captured.out.endswith("three-regions.yaml is valid: 3 clusters, 3 links, 9 flows\n")
    assert captured.err == ""


def test_validate_shows_every_problem_with_its_place_and_never_folds_it(broken):
    result = real("validate", "-f", broken)
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert [line.split("  ")[0].rpartition("/")[2] for line in lines] == [
        "broken.yaml:6:31",
        "broken.yaml:9:48",
    ]
    assert all("  " in line for line in lines)


def test_json_is_alone_on_standard_output(broken, capsys):
    assert run_command(["validate", "-f", broken, "-o", "json"]) == 2
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert captured.err == ""
    assert result["valid"] is False
    assert [(p["line"], p["path"]) for p in result["problems"]] == [
        (6, "spec.clusters.east.bootstrapServers[0]"),
        (9, "spec.links[0].active"),
    ]


def test_yaml_holds_the_same_as_json(capsys):
    from ruamel.yaml import YAML

    assert run_command(["validate", "-f", GOOD, "-o", "json"]) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert run_command(["validate", "-f", GOOD, "-o", "yaml"]) == 0
    assert YAML(typ="safe", pure=True).load(capsys.readouterr().out) == as_json


def test_schema_is_the_committed_one(capsys):
    assert run_command(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "topologies" / "schema.json").read_text()


def test_the_file_may_come_from_the_environment():
    result = real("validate", REPLICATOR_TOPOLOGY=GOOD)
    assert result.returncode == 0


def test_no_colour_is_used_where_it_is_switched_off(broken):
    result = real("validate", "-f", broken, NO_COLOR="1", FORCE_COLOR="1")
    assert "\x1b[3" not in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("it is wrong", subject="x", remedy="Mend it."), 2, "x: it is wrong. Mend it."),
        (RefusedError("not safe"), 3, "not safe."),
        (ZeroDivisionError("oh"), 1, "Internal error: ZeroDivisionError: oh. Run it again with"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (typer.Exit(4), 4, ""),
    ],
)
def test_an_error_becomes_its_exit_code_and_a_sentence(verb, capsys, error, code, words):
    def act():
        raise error

    verb(act)
    assert run_command(["act"]) == code
    captured = capsys.readouterr().err
    assert captured.startswith(words)
    assert "Traceback" not in captured


def test_a_traceback_is_shown_on_request_wherever_debug_is_given(verb, capsys):
    def act():
        raise RefusedError("not safe")

    verb(act)
    for arguments in (["--debug", "act"], ["act", "--debug"]):
        assert run_command(arguments) == 3
        assert "Traceback" in capsys.readouterr().err


def test_a_real_interrupt_ends_with_130():
    code = (
        "import sys, time; from replicator.cli import main;\n"
        "build = main.build_app\n"
        "def act():\n    print('ready', flush=True); time.sleep(60)\n"
        "def with_verb(_):\n    app = build(); app.command('act')(act); return app\n"
        "main.build_app = with_verb; sys.argv = ['replicator', 'act']; main.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read().strip() == "Interrupted."


def test_a_reader_that_goes_away_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "replicator", "schema"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        os.close(writer)
        assert process.wait(timeout=30) == 1
        assert process.stderr.read() == ""


def test_a_question_needs_a_terminal_or_yes(monkeypatch):
    assert confirm("Go on?", yes=True)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match="no terminal to ask on"):
        confirm("Go on?", yes=False)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_file_that_is_no_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "topology.yaml"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "replicator", "validate", "-f", str(path)],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize("name", ["", "a\nb", "a\rb", "a b", "\x1b[31m", "größe", "x" * 201])
def test_a_worker_name_that_logs_and_records_could_not_show_is_refused(name):
    with pytest.raises(InputError) as caught:
        checked_options(
            file=Path(GOOD), clusters=(), flows=(), worker_id=name, grace_seconds=1.0,
            metrics_detail=False,
        )  # fmt: skip
    assert caught.value.subject == "--worker-id"
    assert "\n" not in caught.value.paragraph()


@pytest.mark.parametrize("name", ["w-0", "host.example:8080", "a_B"])
def test_an_ordinary_worker_name_is_taken(name):
    options = checked_options(
        file=Path(GOOD), clusters=(), flows=(), worker_id=name, grace_seconds=1.0,
        metrics_detail=False,
    )  # fmt: skip
    assert options.worker_id == name


def test_clusters_whose_history_cannot_be_read_have_no_empty_one(tmp_path, capsys):
    path = tmp_path / "silent.yaml"
    path.write_text(
        BROKEN.replace("[east]", "['127.0.0.1:1']")
        .replace("[west:9092]", "['127.0.0.1:2']")
        .replace("esat", "east")
    )
    assert run_command(["history", "-f", str(path), "-o", "json"]) == 1
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["entries"] == []
    assert [each["subject"] for each in found["problems"]] == ["cluster:east", "cluster:west"]
    assert "UNREACHABLE cluster:east" in said.err
