"""Real secrets at work: whatever can be read from outside is read, and none of them stands there."""

import base64
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from identity_provider import OidcServer
from secret_places import FAST, WITH_BROKERS
from whole_topic import read_topic

from replicator.identifiers import checkpoints_topic, control_topic
from replicator.testing import LocalCluster, SecuritySetup, start_all

FLOW = "east->west"
PASSWORD, CLIENT_SECRET = "passw0rd-of-tests", "client-s3cret-of-tests"


LATER = {
    "replicator check -o json",
    "replicator verify", "replicator switchover --dry-run", "replicator status that is refused",
}  # fmt: skip


def test_the_places_are_at_least_forty_and_each_is_named_once():
    assert len({*FAST, *WITH_BROKERS}) == len(FAST) + len(WITH_BROKERS)
    assert len(FAST) + len(WITH_BROKERS) >= 40


def command(topology: Path, *arguments: str, code: int = 0) -> str:
    """What a command of an operator prints."""
    return ran(*arguments, "-f", str(topology), code=code)


def ran(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "replicator", *arguments, "--debug"],
        capture_output=True, text=True, errors="replace", timeout=240, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "400"},
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert done.returncode == code, f"{arguments} ended with {done.returncode}: {shown}"
    return shown


def answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=30) as found:  # noqa: S310  loopback
            return found.read().decode(errors="replace")
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.read().decode(errors="replace")


def records(cluster: LocalCluster, topic: str) -> str:
    """Everything in a topic up to now, keys and headers too, as text; it is written to all the time."""
    return "\n".join(
        text
        for each in read_topic(cluster, topic, isolation_level="read_uncommitted")
        for text in (str(each.key()), str(each.value()), str(each.headers()))
    )


def process(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_place_shows_a_secret_that_was_at_work(scene, tmp_path):
    provider = OidcServer({"replicator": CLIENT_SECRET}, life_seconds=30.0)
    east = LocalCluster(
        "east", security=SecuritySetup.oauth(provider.provider(), users=provider.clients)
    )
    west = LocalCluster(
        "west",
        security=SecuritySetup.sasl("SCRAM-SHA-512", tls=True, users={"admin": PASSWORD}),
    )
    try:
        start_all([east, west])
        found = read_everything(scene, east, west, tmp_path)
    finally:
        provider.stop()
        for cluster in (east, west):
            cluster.stop()
    assert set(found) == set(WITH_BROKERS)
    assert [name for name, text in found.items() if not text.strip()] == []
    basic = base64.b64encode(f"replicator:{CLIENT_SECRET}".encode()).decode()
    secrets = (PASSWORD, CLIENT_SECRET, basic, "not-the-passw0rd", *provider.issued)
    assert len(provider.issued) >= 2
    shown = [name for name, text in found.items() if any(each in text for each in secrets)]
    assert shown == []


def read_everything(scene, east: LocalCluster, west: LocalCluster, directory: Path):
    scene.active_passive(east, west)
    worker = scene.worker("--debug")
    scene.writer(east, rate=200)
    scene.copying(FLOW)
    topology = scene.topology()
    found: dict[str, str] = {}
    for name in WITH_BROKERS:
        words = name.split()
        if words[0] == "GET":
            found[name] = answer(worker.url() + words[1])
        elif words[0] == "replicator" and name not in LATER:
            found[name] = command(topology, *words[1:])
    found["replicator check -o json"] = ran("check", "--url", worker.url(), "-o", "json")
    found["replicator switchover --dry-run"] = command(
        topology, "switchover", "--link", "link-0", "--to", "west", "--dry-run", code=3
    )  # the link declares no fencing
    (lane,) = worker.lane_pids()
    for pid, who in ((worker.pid, "the worker"), (lane, "a lane process")):
        found[f"command line of {who}"] = process(pid, "cmdline")
        found[f"environment of {who}"] = process(pid, "environ")
    found["records of the control topic"] = records(west, control_topic(scene.name))
    found["records of the checkpoints topic"] = records(west, checkpoints_topic(scene.name, "east"))
    events = directory / "events"
    events.mkdir()
    found["replicator verify"] = ran(  # the tasks of Spark log in with tokens too
        "verify", "-f", str(topology), "--flow", FLOW, "--report", str(directory / "report"),
        "--master", "local[1]", "--conf", "spark.eventLog.enabled=true",
        "--conf", f"spark.eventLog.dir=file://{events}", "--conf", "spark.eventLog.compress=false",
        "-o", "json",
    )  # fmt: skip
    found["page of verify"] = texts(directory / "report")
    found["event log of Spark"] = texts(events)

    # A refused login is told in many words, by the brokers and by the client library.
    password = Path(west.topology_entry()["security"]["password"]["file"])
    password.write_text("not-the-passw0rd")
    refused = command(topology, "status", "-o", "json")
    assert "AUTHENTICATION_FAILED" in refused
    found["replicator status that is refused"] = refused
    password.write_text(PASSWORD)
    scene.settled()
    log = worker.log.read_text(errors="replace")
    lines = log.splitlines()
    found["log of the worker with --debug"] = log
    found["log lines of its lanes"] = "\n".join(line for line in lines if '"lane' in line)
    found["log lines of its controller"] = "\n".join(line for line in lines if "controller" in line)
    return found


def texts(directory: Path) -> str:
    """The files below a directory, one after the other."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return "\n".join(path.read_text(errors="replace") for path in files)
