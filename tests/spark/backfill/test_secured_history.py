"""Spark's commands between clusters behind TLS and SASL: they work, and no secret is seen anywhere."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from identity_provider import RENEWED_AT, OidcServer
from seed_lab import SeedLab

from replicator.testing import LocalCluster, SecuritySetup, start_all

PASSWORD = "s3cret-of-tests"
FLOW = "east->west"
KNOWN = "replicator-knows-this"
"""Something that is no secret and must be found: else nobody looked where secrets would be."""


def secured(mechanism: str) -> SecuritySetup:
    return SecuritySetup.sasl(mechanism, tls=True, users={"replicator": PASSWORD})


class Command:
    """A command with everything that Spark can be made to say of it: its log, its events, its report."""

    def __init__(self, folder: Path, name: str, *arguments: object, in_spark: bool = True) -> None:
        self.log = folder / f"{name}.log"
        events = folder / f"{name}.events"
        events.mkdir()
        self.seen: dict[str, str] = {}
        spark = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.ui.enabled": "true",
            "spark.replicator.known": KNOWN,
        }
        conf = [each for item in spark.items() for each in ("--conf", "=".join(item))]
        engine = ["--master", "local[2]", *conf] if in_spark else []
        with self.log.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "replicator", *map(str, arguments), "--debug",
                 *engine],
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def ended(self, timeout_seconds: float) -> int:
        """The exit code; until then every process of the command is looked at, again and again."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            assert time.monotonic() < deadline, self.log.read_text()
            try:
                return self._child.wait(1.0)
            except subprocess.TimeoutExpired:
                self._look()

    def end(self) -> None:
        if self._child.poll() is None:
            os.killpg(self._child.pid, 9)
            self._child.wait(30)

    def _look(self) -> None:
        for process in Path("/proc").iterdir():
            try:
                if not process.name.isdigit() or os.getsid(int(process.name)) != self._child.pid:
                    continue
                for name in ("cmdline", "environ"):
                    text = (process / name).read_bytes().decode(errors="replace")
                    self.seen[f"{name} of {process.name}"] = text
            except OSError:
                continue  # it ended meanwhile


@pytest.fixture
def lab(unique, tmp_path):
    pair = (
        LocalCluster("east", security=secured("SCRAM-SHA-512")),
        LocalCluster("west", security=secured("PLAIN")),
    )
    start_all(pair)
    yield SeedLab(*pair, unique, tmp_path)
    for cluster in pair:
        cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_secured_clusters_are_copied_compared_and_archived_and_no_secret_is_seen(lab: SeedLab):
    lab.source.create_topic(lab.topic, partitions=2)
    lab.produce(2_000, partitions=2)
    lab.applied()
    folder = lab.folder
    commands = {
        "bulk-sync": ("--flow", FLOW, "--yes", "--manifest", folder / "manifest.json"),
        "verify": ("--flow", FLOW, "--report", folder / "report"),
        "audit": ("--flow", FLOW),
        "archive": ("--cluster", "east", "--topic", lab.topic, "--archive", folder / "archive"),
        "restore": (
            "--cluster", "west", "--archive", folder / "archive", "--as", f"{lab.topic}.view",
        ),
    }  # fmt: skip
    places: dict[str, str] = {}
    for name, options in commands.items():
        command = Command(folder, name, name, "-f", lab.file, *options)
        try:
            assert command.ended(240) == 0, command.log.read_text()
        finally:
            command.end()
        assert any(KNOWN in text for text in command.seen.values())
        places.update({f"{name}: {place}": text for place, text in command.seen.items()})
    assert json.loads((folder / "manifest.json").read_text())["records"] == 2_000
    assert lab.values(lab.target) == lab.values(lab.source)
    assert lab.values(lab.target, f"{lab.topic}.view") == lab.values(lab.source)

    written = [path for path in folder.rglob("*") if path.is_file()]
    places.update({str(path): path.read_bytes().decode(errors="replace") for path in written})
    control = "\n".join(repr(record) for record in lab.control().records().values())
    places["control topic"] = control
    events = [text for place, text in places.items() if ".events/" in place]
    assert len(events) >= len(commands)
    assert all(KNOWN in text for text in events if "SparkListenerEnvironmentUpdate" in text)
    assert lab.topic in control
    shown = [place for place, text in places.items() if PASSWORD in text or "PRIVATE KEY" in text]
    assert shown == []


class OAuthCluster(LocalCluster):
    """Ours log in as a client of their own, so that its tokens can be told from those of the test."""

    def topology_entry(self, user: str | None = None) -> dict[str, object]:
        return super().topology_entry(user or "replicator")


@pytest.fixture
def provider() -> Iterator[OidcServer]:
    server = OidcServer({"tests": "s3cret-of-the-test", "replicator": PASSWORD}, life_seconds=30.0)
    yield server
    server.stop()


@pytest.fixture
def with_tokens(unique, tmp_path, provider):
    """Sessions of 20 s with tokens of 30 s: a task that runs for long logs in again and again."""
    setup = SecuritySetup.oauth(
        provider.provider(reauthenticate_seconds=20), users=provider.clients
    )
    pair = OAuthCluster("east", security=setup), OAuthCluster("west", security=setup)
    start_all(pair)
    yield SeedLab(*pair, unique, tmp_path)
    for cluster in pair:
        cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("engine", "in_spark"), [("records", True), ("batches", True), ("batches", False)]
)
def test_a_copy_outlives_the_tokens_that_it_began_with(
    with_tokens: SeedLab, provider, engine, in_spark
):
    lab, seconds = with_tokens, 75
    lab.source.create_topic(lab.topic, partitions=2)
    lab.produce(30 * seconds, partitions=2, **{"batch.num.messages": 10})
    lab.applied(throttle={"recordsPerSecond": 30}, engine=engine)
    manifest = lab.folder / "manifest.json"
    provider.issued_at["replicator"].clear()
    command = Command(
        lab.folder, "bulk-sync", "bulk-sync", "-f", lab.file,
        "--flow", FLOW, "--yes", "--manifest", manifest, in_spark=in_spark,
    )  # fmt: skip
    try:
        assert command.ended(400) == 0, command.log.read_text()
    finally:
        command.end()
    issued = provider.issued_at["replicator"]
    assert issued[-1] - issued[0] > 2 * RENEWED_AT * provider.life_seconds
    print(f"{len(issued)} tokens in {issued[-1] - issued[0]:.0f} s")  # noqa: T201
    assert json.loads(manifest.read_text())["records"] == 30 * seconds
    assert lab.values(lab.target) == lab.values(lab.source)
    written = {str(path): path for path in lab.folder.rglob("*") if path.is_file()}
    places = {name: path.read_bytes().decode(errors="replace") for name, path in written.items()}
    places |= command.seen
    secrets = (*provider.clients.values(), *provider.issued)
    assert [name for name, text in places.items() if any(each in text for each in secrets)] == []
