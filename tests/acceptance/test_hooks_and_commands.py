"""The operator's own programs at a role change: a fence by command, hooks with kept output, a webhook."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from role_changes import LINK, Operator

from replicator.failover.run.history import history

FLOW = "east->west"
BACK = "west->east"

PROGRAM = """
import os, pathlib, sys
said = f"{sys.argv[1]} {os.environ['REPLICATOR_LINK']}"
said += "".join(f" {os.environ[n]}" for n in ("REPLICATOR_CLUSTER", "REPLICATOR_MOMENT",
                                             "REPLICATOR_FROM", "REPLICATOR_TO") if n in os.environ)
print(said)
with open(sys.argv[2], "a") as log:
    log.write(said + "\\n")
sys.exit(pathlib.Path(sys.argv[3], sys.argv[1]).exists())
"""
"""Says what it was told and notes it; fails where a file of its name lies."""


class Hooked:
    """A link whose changes call programs and a webhook, and what these were told."""

    def __init__(self, directory):
        self._directory = directory
        self._log = directory / "called"
        self._program = directory / "program.py"
        self._program.write_text(PROGRAM)
        self.posts: list[dict[str, str]] = []
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _handler(self):
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"moved 3 clients")

            def log_message(self, *_):
                """Nothing on standard error."""

        return Handler

    def command(self, name):
        return [
            sys.executable, str(self._program), name, str(self._log), str(self._directory),
        ]  # fmt: skip

    @property
    def fields(self):
        """For the topology file."""
        hook = f"http://127.0.0.1:{self._server.server_port}/moved?token=secret"
        return {
            "fencing": {
                "method": "command",
                "fence": self.command("fence"), "unfence": self.command("unfence"),
            },
            "hooks": {
                "beforeFence": [{"command": self.command("b-f")}],
                "afterFence": [{"command": self.command("a-f")}],
                "beforePromote": [{"command": self.command("b-p")}],
                "afterPromote": [{"command": self.command("a-p")}, {"webhook": hook}],
            },
        }  # fmt: skip

    def let_fail(self, name):
        (self._directory / name).touch()

    def called(self):
        """What was called since this was asked last."""
        lines = self._log.read_text().splitlines()
        self._log.write_text("")
        return lines

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def hooked(tmp_path):
    programs = Hooked(tmp_path)
    yield programs
    programs.close()


def told(report, step):
    return next(each.evidence for each in report.steps if each.step == step)


@pytest.fixture
def operator(east, west, scene, hooked):
    """Of a link that mirrors under load; its writer stops when the fence begins."""
    scene.active_passive(east, west, **hooked.fields)
    scene.worker()
    writer = scene.writer(east, rate=200)
    scene.copying(FLOW)
    operator = Operator(scene)
    operator.on = {("fence", "began"): writer.stop}
    return operator


def test_programs_run_in_order_and_their_output_is_kept(west, scene, hooked, operator):
    report = operator.run("switchover", to="west")
    assert (report.outcome, report.fencing) == ("done", "command"), report
    assert [line.split()[0] for line in hooked.called()] == ["b-f", "fence", "a-f", "b-p", "a-p"]
    fence = told(report, "fence")
    assert fence["said"] == [f"fence {LINK} east"]
    (before,) = fence["before-fence"]
    assert (before["ok"], before["output"].strip()) == (True, f"b-f {LINK} before-fence east west")
    moved, posted = told(report, "release")["after-promote"]
    assert moved["output"].strip() == f"a-p {LINK} after-promote east west"
    assert (posted["ok"], posted["output"]) == (True, "moved 3 clients")
    assert "secret" not in json.dumps(report.as_json())
    (post,) = hooked.posts
    assert (post["link"], post["from"], post["to"], post["kind"], post["epoch"]) == (
        LINK, "east", "west", "switchover", "1",
    )  # fmt: skip
    kept = history(operator.plan, LINK)["entries"][-1]["steps"]
    assert {"after-promote", "openedAt"} <= set(kept[-1]["evidence"])
    scene.expect(BACK)
    scene.writer(west, rate=200).wait_acked(50)
    scene.settled()


@pytest.mark.slow
def test_a_hook_that_fails_takes_the_change_back_and_says_why(scene, hooked, operator):
    hooked.let_fail("b-p")
    refused = operator.run("switchover", to="west")
    assert refused.outcome == "rolled-back"
    assert f"b-p {LINK} before-promote east west" in refused.reason  # what it said is kept
    assert "exit code 1" in refused.reason
    assert hooked.called() == [
        f"b-f {LINK} before-fence east west",
        f"fence {LINK} east",
        f"a-f {LINK} after-fence east west",
        f"b-p {LINK} before-promote east west",
        f"unfence {LINK} east",
    ]
    assert (operator.role().active, operator.role().epoch) == ("east", 0)
    assert hooked.posts == []
    scene.settled()


@pytest.mark.slow
def test_a_fence_command_that_fails_keeps_everything_as_it_was(scene, hooked, operator):
    hooked.let_fail("fence")
    report = operator.run("switchover", to="west")
    assert report.outcome == "rolled-back"
    assert f"the fence command failed: fence {LINK} east" in report.reason
    assert [line.split()[0] for line in hooked.called()] == ["b-f", "fence", "unfence"]
    scene.settled()
