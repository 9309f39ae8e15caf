"""Tokens end, certificates and passwords change, all under load: nothing is lost, and nobody waits."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from identity_provider import OidcServer

from replicator.testing import LocalCluster, SecuritySetup, start_all, wait_until
from replicator.testing.workload.watcher import Watcher

FLOW = "east->west"
SECRET = "client-s3cret-of-tests"
SILENCE_SECONDS = 2.0
SLOW_SECONDS = 300
RATE = 500
"""Records a second; the machine of the tests also runs both clusters."""


@pytest.fixture
def provider() -> Iterator[OidcServer]:
    server = OidcServer({"replicator": SECRET}, life_seconds=30.0)
    yield server
    server.stop()


def started(east: SecuritySetup | None, west: SecuritySetup | None) -> list[LocalCluster]:
    pair = [LocalCluster("east", security=east), LocalCluster("west", security=west)]
    start_all(pair)
    return pair


class Load:
    """A writer, and how long nothing arrived while it wrote."""

    def __init__(self, scene, east: LocalCluster, west: LocalCluster, *, rate: float) -> None:
        scene.active_passive(east, west)
        self.worker = scene.worker("--debug")
        scene.writer(east, rate=rate)
        self._scene = scene
        scene.copying(FLOW)
        self._watcher = Watcher(west, scene.topic).start()
        self.began = time.time()

    def last(self, seconds: float) -> None:
        """Returns when records written so much later have arrived."""
        until = time.time() + seconds
        wait_until(
            lambda: any(each.written_at >= until for each in self._watcher.arrivals()[-500:]),
            timeout_seconds=seconds + 30,
            interval_seconds=0.5,
            describe=lambda: f"copies\n{self.worker.log_tail(60)}",
        )

    def problems(self) -> list[dict[str, str]]:
        return self.worker.status()[FLOW]["problems"]

    def until_problem(self, code: str) -> None:
        wait_until(
            lambda: code in {each["code"] for each in self.problems()},
            timeout_seconds=60, interval_seconds=0.5,
            describe=lambda: f"{code} among {self.problems()}",
        )  # fmt: skip

    def until_no_problem(self) -> None:
        wait_until(
            lambda: not self.problems(),
            timeout_seconds=60, interval_seconds=0.5,
            describe=lambda: f"no problem among {self.problems()}",
        )  # fmt: skip

    def until_in_use(self, times: int) -> None:
        """Returns when the worker said so often that it took another certificate."""
        wait_until(
            lambda: self.worker.log.read_text().count("new password or certificate") >= times,
            timeout_seconds=30,
            describe=lambda: f"the new certificate in use\n{self.worker.log_tail(60)}",
        )
        self.last(4.0)  # lanes follow one after the other

    def longest_silence(self) -> float:
        self._watcher.stop()
        times = sorted(each.at for each in self._watcher.arrivals() if each.at >= self.began)
        longest, until = max((later - before, later) for before, later in itertools.pairwise(times))
        print(f"longest silence {longest:.3f} s, until {until - self.began:.1f} s")  # noqa: T201
        return longest


def away_for(provider: OidcServer, load: Load, seconds: float) -> None:
    """The provider refuses everybody for a while that begins when a token was just renewed."""
    issued = len(provider.issued)
    wait_until(
        lambda: len(provider.issued) >= issued + 2,
        timeout_seconds=60,
        describe="both processes of the worker to renew their token",
    )
    provider.away = True
    load.last(seconds)
    provider.away = False


def private_key(cluster: LocalCluster) -> str:
    """A line of the key that clients show; it stands nowhere else."""
    return Path(cluster.topology_entry()["security"]["key"]["file"]).read_text().splitlines()[1]


def secrets_shown(load: Load, *secrets: str) -> list[str]:
    """Where any of the secrets can be read that is no file of the user's own."""
    places = {"log": load.worker.log.read_text(errors="replace")}
    for path in ("/api/v1/status", "/api/v1/topology", "/readyz", "/api/v1/history"):
        places[path] = str(load.worker.get(path))
    for pid in load.worker.group_pids():
        for name in ("cmdline", "environ"):
            places[f"{name} of {pid}"] = (
                Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
            )
    return [place for place, text in places.items() if any(each in text for each in secrets)]


def trust_only(cluster: LocalCluster, authority: int) -> None:
    """From now on brokers refuse certificates of the other authority, without a restart."""
    ca = Path(cluster.topology_entry()["security"]["ca"]["file"]).with_name(f"ca-{authority}.pem")
    name = "listener.name.client.ssl.truststore.location"
    change = ConfigResource(
        ResourceType.BROKER, "0",
        incremental_configs=[
            ConfigEntry(name, str(ca), incremental_operation=AlterConfigOpType.SET)
        ],
    )  # fmt: skip
    for future in cluster.admin().incremental_alter_configs([change]).values():
        future.result(20)


@pytest.mark.timeout(240)
def test_a_certificate_is_exchanged_under_load_and_the_old_one_is_refused(scene, east, clusters):
    (west,) = clusters("west", security=SecuritySetup.mutual_tls())
    load = Load(scene, east, west, rate=500)
    old = private_key(west)
    west.renew_certificate("admin", authority=1)
    load.until_in_use(1)
    trust_only(west, 1)
    load.last(2.0)
    scene.settled()
    assert load.longest_silence() < SILENCE_SECONDS
    assert secrets_shown(load, old, private_key(west)) == []


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_certificates_are_exchanged_every_20_seconds_and_one_cannot_be_used(scene, east, clusters):
    (west,) = clusters("west", security=SecuritySetup.mutual_tls())
    load = Load(scene, east, west, rate=RATE)
    keys = [private_key(west)]
    for turn in range(SLOW_SECONDS // 20):
        west.renew_certificate("admin", authority=(turn + 1) % 2)
        keys.append(private_key(west))
        load.last(20.0)
    unusable = Path(west.topology_entry()["security"]["certificate"]["file"])
    good = unusable.read_text()
    unusable.resolve().write_text("half a certifica")
    load.until_problem("CREDENTIALS_UNUSABLE")
    unusable.resolve().write_text(good)
    load.until_no_problem()
    west.renew_certificate("admin", authority=1)
    load.until_in_use(SLOW_SECONDS // 20 + 1)
    trust_only(west, 1)
    load.last(20.0)
    assert load.longest_silence() < SILENCE_SECONDS
    west.restart()  # every client opens new connections now, the member of the group too
    scene.copying(FLOW)
    load.until_no_problem()
    scene.settled()
    assert secrets_shown(load, *keys) == []


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_tokens_of_30_seconds_are_renewed_while_their_provider_goes_away(scene, provider):
    east, west = started(
        SecuritySetup.oauth(
            provider.provider(reauthenticate_seconds=60), users={"replicator": SECRET}
        ),
        SecuritySetup.oauth(provider.provider(), users={"replicator": SECRET}),
    )
    try:
        load = Load(scene, east, west, rate=RATE)
        for _ in range(3):
            load.last(SLOW_SECONDS / 3 - 50)
            away_for(provider, load, 20.0)
        scene.settled()
        assert load.longest_silence() < SILENCE_SECONDS
        assert len(provider.issued) > SLOW_SECONDS // 30
        assert secrets_shown(load, SECRET, *provider.issued) == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_tokens_that_cannot_be_renewed_are_a_problem_before_they_end(scene, provider):
    (east, west) = started(
        SecuritySetup.oauth(provider.provider(), users={"replicator": SECRET}), None
    )
    try:
        load = Load(scene, east, west, rate=200)
        provider.away = True
        load.until_problem("TOKEN_NOT_RENEWED")
        said = load.worker.status()[FLOW]["problems"]
        assert any("the old one holds until" in each["detail"] for each in said)
        assert any("login at 'east'" in each for each in load.worker.get("/readyz")["details"])
        load.last(1.0)  # it does hold
        wait_until(
            lambda: any("it has expired" in each["detail"] for each in load.problems()),
            timeout_seconds=60,
            describe=lambda: f"the token to end: {load.problems()}",
        )
        provider.away = False
        load.until_no_problem()
        load.last(1.0)
        scene.settled()
        assert secrets_shown(load, SECRET, *provider.issued) == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_passwords_are_changed_under_load(scene):
    users = {"admin": "admin-s3cret-of-tests", "replicator": SECRET}
    east, west = started(
        SecuritySetup.sasl("SCRAM-SHA-256", users=users),
        SecuritySetup.sasl("SCRAM-SHA-512", tls=True, users=users),
    )
    try:
        load = Load(scene, east, west, rate=RATE)
        for turn in range(6):
            for cluster in (east, west):
                cluster.rotate_password("admin", f"s3cret-number-{turn}")
            load.last(15.0)
        scene.settled()
        assert load.longest_silence() < SILENCE_SECONDS
        assert secrets_shown(load, *users.values(), "s3cret-number") == []
    finally:
        for cluster in (east, west):
            cluster.stop()
