"""A fence by command at the network: writers lose their connection, and are refused nothing for good."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from role_changes import Operator

from replicator.testing import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = "east->west"
BACK = "west->east"
ASK = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], data=b'').read().decode())"


class Gate:
    """Shuts and opens the way of applications to a cluster, as a load balancer's interface does."""

    def __init__(self, cluster):
        self.cluster = cluster
        doing = {"/shut": cluster.proxy.cut, "/open": cluster.proxy.heal}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                doing[self.path]()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"{cluster.name} {self.path}".encode())

            def log_message(self, *_):
                """Nothing on standard error."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def command(self, path):
        url = f"http://127.0.0.1:{self._server.server_port}{path}"
        return [sys.executable, "-c", ASK, url]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def gated(clusters, scene, monkeypatch):
    """A link whose replicator has a way of its own to the side that is shut to applications."""
    scene.east, scene.west = clusters("east", "west", proxied=True)
    for cluster in (scene.east, scene.west):
        entry = {**cluster.topology_entry(), "bootstrapServers": cluster.admin_bootstrap_servers}
        monkeypatch.setattr(cluster, "topology_entry", lambda entry=entry: entry)
    gate = Gate(scene.east)
    fencing = {
        "method": "command",
        "fence": gate.command("/shut"),
        "unfence": gate.command("/open"),
    }
    hooks = {"afterFence": [{"command": ["test", "!", "-e", str(scene.directory / "no")]}]}
    scene.active_passive(scene.east, scene.west, fencing=fencing, hooks=hooks)
    scene.worker()
    yield Operator(scene)
    gate.close()


def test_a_writer_that_continues_is_refused_nothing_by_a_switchover_that_is_rolled_back(
    scene, gated
):
    writer = scene.writer(scene.east, rate=200)
    scene.copying(FLOW)
    (scene.directory / "no").touch()
    report = gated.run("switchover", to="west")
    assert (report.outcome, report.fencing) == ("rolled-back", "command"), report
    assert "after-fence hook" in report.reason
    writer.wait_acked(1000)
    assert writer.refused == 0  # what it could not send while the way was shut, it sent by itself
    scene.copying(FLOW)

    (scene.directory / "no").unlink()
    report = gated.run("switchover", to="west")
    assert (report.outcome, report.epoch) == ("done", 1), report
    acked = writer.acked
    moved = scene.writer(scene.west, rate=200)
    moved.wait_acked(200)
    assert (writer.acked, writer.refused) == (acked, 0)  # shut out, and still only waiting
    writer.abandon()
    scene.expect(BACK)
    scene.copying(BACK)
    wait_until(lambda: moved.acked > 400, timeout_seconds=30.0, describe="writes on the new side")
    scene.settled()
