"""A secret that a text of ours repeats is shown nowhere: every way out is tried with a real one."""

import io
import json
import logging
import subprocess
import sys

import httpx
import pytest

from replicator.api.server.address import HttpAddress, bind
from replicator.api.server.start import http_in_thread
from replicator.cli.main import run_command
from replicator.drill.report.checksum_chain import append
from replicator.errors import InputError
from replicator.failover.external.programs import run_command as run_program
from replicator.observability.logging import configure_logging
from replicator.topology.file.load import require_plan

SECRETS = {
    "PASSWORD": "hunter2-&<'\\ of tests",
    "KEY_PASSWORD": "key-pass-of-tests",
    "OTHER": "renewed-of-tests",
}
TOPOLOGY = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    east:
      bootstrapServers: [east:9092]
      security: {protocol: SASL_SSL, mechanism: PLAIN, username: replicator, password: {env: PASSWORD}}
    west:
      bootstrapServers: [west:9092]
      security:
        protocol: SSL
        certificate: {file: tls.crt}
        key: {file: tls.key}
        keyPassword: {file: KEYFILE}
  links:
    - {name: l, shape: active-active, clusters: [east, west], topics: {include: [orders]}}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PASSWORD", SECRETS["PASSWORD"])
    key = tmp_path / "key-password"
    key.write_text(SECRETS["KEY_PASSWORD"] + "\n")
    path = tmp_path / "topology.yaml"
    path.write_text(TOPOLOGY.replace("KEYFILE", str(key)))
    return path


@pytest.fixture
def forced(file):
    """A text that repeats every secret; this process has read the topology."""
    require_plan(file)
    return f"the broker said {SECRETS['PASSWORD']} and {SECRETS['KEY_PASSWORD']}, and went"


def assert_hidden(text):
    assert "[redacted]" in text
    assert "of tests" not in text
    assert "of-tests" not in text


@pytest.mark.parametrize("output", [[], ["-o", "json"], ["-o", "yaml"], ["--debug"]])
def test_a_command_that_repeats_its_argument_hides_a_secret_in_it(file, capfd, output):
    flow = f"{SECRETS['PASSWORD']}->{SECRETS['KEY_PASSWORD']}"
    assert run_command(["status", "-f", str(file), "--flow", flow, *output]) == 2
    captured = capfd.readouterr()
    assert_hidden(captured.out + captured.err)
    assert ("Traceback" in captured.err) == (output == ["--debug"])


def test_a_result_hides_secrets_and_keeps_its_form(forced, capsys):
    from replicator.cli.options import Output
    from replicator.cli.output import out, render

    for output in Output:
        render({"detail": [forced], "lag": 3}, output, text=forced)
        shown = capsys.readouterr().out
        assert_hidden(shown)
        assert output is not Output.JSON or json.loads(shown)["lag"] == 3
    out().print(forced)
    assert_hidden(capsys.readouterr().out)


def test_an_error_carries_no_secret_to_where_it_is_not_known(forced):
    error = InputError(forced, remedy=forced)
    for text in (error.message, error.remedy, str(error), error.paragraph()):
        assert_hidden(text)


def test_log_lines_and_their_tracebacks_hide_secrets(forced):
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        configure_logging(stream=stream, debug=True)
        try:
            raise ValueError(forced)
        except ValueError:
            logging.getLogger("replicator.test").exception("failed with %s", forced)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
    assert "Traceback" in stream.getvalue()
    assert_hidden(stream.getvalue())


def test_the_output_of_a_hook_hides_secrets_also_where_it_is_cut(file):
    require_plan(file)
    script = 'echo "$PASSWORD"; head -c 4070 /dev/zero | tr \'\\0\' x; echo "$PASSWORD"; exit 3'
    ran = run_program(("sh", "-c", script), {}, timeout_seconds=30)
    assert not ran.ok
    assert_hidden(json.dumps(ran.as_json()))
    assert "hunter2" not in ran.output


def test_http_answers_hide_secrets(forced, worker_http):
    url, worker = worker_http
    worker.status_answer = {"flows": [{"problems": [{"detail": forced}], "lag": 7}]}
    answer = httpx.get(f"{url}/api/v1/status")
    assert_hidden(answer.text)
    assert answer.json()["flows"][0]["lag"] == 7
    worker.failure = InputError(forced, subject=forced)
    assert_hidden(httpx.get(f"{url}/api/v1/status").text)
    path = "/" + "".join(f"%{byte:02x}" for byte in SECRETS["PASSWORD"].encode())
    assert_hidden(httpx.get(url + path).text)


@pytest.fixture
def worker_http():
    class Worker:
        failure = None
        status_answer = None

        async def status(self):
            if self.failure:
                raise self.failure
            return self.status_answer

    worker = Worker()
    bound = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=bound, token=None) as url:
        yield url, worker


def test_reports_and_their_pages_hide_secrets(forced, tmp_path):
    def make(previous, number):
        return {"id": "a", "number": number, "previous": previous, "said": [forced]}

    stored = append(tmp_path / "reports", make, draw=lambda report: f"<p>{report['said']}</p>")
    assert_hidden(stored.path.read_text())
    assert_hidden(stored.page.read_text())


@pytest.mark.parametrize("where", ["main", "thread"])
def test_what_nothing_catches_is_written_without_secrets(file, where):
    code = f"""
import os, threading
from pathlib import Path
from replicator.redaction import redact_tracebacks
from replicator.topology.file.load import require_plan
redact_tracebacks()
require_plan({str(file)!r})
def fail():
    raise ValueError(os.environ["PASSWORD"])
{"fail()" if where == "main" else "thread = threading.Thread(target=fail); thread.start(); thread.join()"}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert "ValueError" in done.stderr
    assert_hidden(done.stderr)


def test_a_renewed_secret_is_hidden_beside_the_one_before(file, monkeypatch, forced):
    monkeypatch.setenv("PASSWORD", SECRETS["OTHER"])
    require_plan(file)
    assert_hidden(InputError(f"{forced} {SECRETS['OTHER']}").message)


def test_a_secret_that_cannot_be_read_hides_no_other(file, monkeypatch):
    monkeypatch.delenv("PASSWORD")
    monkeypatch.setenv("PASSWORD_FOR_LATER", "x")
    require_plan(file)
    assert_hidden(InputError(SECRETS["KEY_PASSWORD"]).message)


def test_the_user_name_and_certificates_are_no_secrets(file):
    require_plan(file)
    assert InputError("User:replicator lacks READ").message == "User:replicator lacks READ"


def test_the_importer_of_mm2_files_hides_the_secrets_of_the_file(tmp_path, capfd):
    properties = tmp_path / "mm2.properties"
    properties.write_text(
        "clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\n"
        "a.security.protocol = SASL_SSL\na.sasl.mechanism = PLAIN\na.sasl.jaas.config = "
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
        'password="jaas-pass-of-tests";\n'
        "b.security.protocol = SSL\nb.ssl.key.password = mm2-key-of-tests\n"
        "a->b.enabled = true\na->b.topics = orders\n"
    )
    assert run_command(["import-mm2", str(properties)]) == 0
    captured = capfd.readouterr()
    assert "of-tests" not in captured.out + captured.err
    for secret in ("jaas-pass-of-tests", "mm2-key-of-tests"):
        assert_hidden(InputError(secret).message)


def test_a_line_of_the_client_library_hides_secrets(forced):
    from replicator.kafka.clients.settings import LOGGER

    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        configure_logging(stream=stream, debug=True)
        LOGGER.warning("FAIL [thrd:sasl_ssl://b:1/1]: %s", forced)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
    assert_hidden(stream.getvalue())


def test_what_python_shows_of_our_objects_holds_no_secret(file):
    from replicator.api.routes.topology_view import topology_view
    from replicator.logins.token import Token
    from replicator.topology.file.secrets import resolve_security

    plan = require_plan(file)
    security = resolve_security(plan.cluster("east"))
    assert security.password == SECRETS["PASSWORD"]
    token = Token(SECRETS["PASSWORD"], 0.0, 1.0, "me")
    for shown in (repr(security), repr(token), repr(plan), json.dumps(topology_view(plan))):
        assert "of tests" not in shown
        assert "of-tests" not in shown


def test_orders_to_lanes_carry_references_and_are_not_shown_when_they_are_refused(file):
    from replicator.dataplane.transport.messages import KeepLogin, decode_command, encode
    from replicator.topology.file.secrets import resolve_security

    cluster = require_plan(file).cluster("east")
    given = KeepLogin(cluster, resolve_security(cluster))
    assert "of tests" not in repr(given)
    with pytest.raises(ValueError, match="validation error") as raised:
        decode_command(encode(given).replace(b'"kind":"login"', b'"kind":"unknown"'))
    assert "of tests" not in str(raised.value)
    assert decode_command(encode(given)) == given
