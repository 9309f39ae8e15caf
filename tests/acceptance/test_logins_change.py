"""Tokens end, certificates and passwords change, all under load: nothing is lost, and nobody waits.

Long runs last ``LOGIN_RUN_SECONDS`` each, 300 by default. They measure silence: alone on a machine.
"""

import itertools
import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from counted_load import CountedLoad
from identity_provider import OidcServer

from replicator.testing import LocalCluster, SecuritySetup, start_all, wait_until
from replicator.testing.workload.watcher import Watcher

FLOW = "east->west"
SECRET = "client-s3cret-of-tests"
SILENCE_SECONDS = 2.0
RUN_SECONDS = float(os.environ.get("LOGIN_RUN_SECONDS", "300"))
RATE = 500
"""Records a second that the checker judges one by one."""

HELD = 4
"""Tokens of a worker: one for each cluster in its own process, and in the one of its lanes."""

FULL_RATE = 20_000
"""Records a second where a certificate changes; those beside the judged ones are counted."""


USERS = {"tests": "s3cret-of-the-tests-own-clients", "replicator": SECRET}


@pytest.fixture
def provider() -> Iterator[OidcServer]:
    server = OidcServer(USERS, life_seconds=30.0, in_step=True)
    server.served = frozenset({"tests"})
    yield server
    server.stop()


class OwnUserCluster(LocalCluster):
    """The worker logs in as a user of its own: what becomes of its login leaves the tests' clients alone."""

    def topology_entry(self, user: str | None = None) -> dict[str, object]:
        return super().topology_entry(user or "replicator")

    def write_password_ahead(self, user: str, password: str, *, seconds: float) -> None:
        """As ``rotate_password`` for SCRAM, where brokers hear of it so long after the file was written."""
        self._secured().set_password(user, password)
        time.sleep(seconds)
        self._put_scram_user(user, password)


def with_tokens(provider: OidcServer, name: str, *, reauthenticate_seconds: int = 0):
    setup = provider.provider(reauthenticate_seconds=reauthenticate_seconds)
    return OwnUserCluster(name, security=SecuritySetup.oauth(setup, users=USERS))


def started_ones(*clusters: LocalCluster) -> list[LocalCluster]:
    start_all(list(clusters))
    return list(clusters)


class Load:
    """A writer, and how long nothing arrived while it wrote.

    ``rate`` of its records are judged one by one, ``counted`` more go through the same lanes.
    """

    def __init__(
        self,
        scene,
        east: LocalCluster,
        west: LocalCluster,
        *,
        rate: float,
        counted: float = 0.0,
        engine: str = "records",
    ) -> None:
        more = f"more.{scene.name}"
        policy = {"engine": engine} if engine != "records" else {}
        scene.active_passive(east, west, topics={"include": [scene.topic, more]}, **policy)
        self._counted = CountedLoad(east, west, more, rate=counted) if counted else None
        self.worker = scene.worker("--debug")
        scene.writer(east, rate=rate)
        self._scene = scene
        scene.copying(FLOW)
        self._watcher = Watcher(west, scene.topic).start()
        if self._counted is not None:
            self._counted.start()
        self.last(3.0)  # the first records of the load warm up
        self.began = time.time()

    def settled(self) -> None:
        """Everything has arrived, once."""
        if self._counted is not None:
            self._counted.stop()
        self._scene.settled()
        if self._counted is not None:
            counts = self._counted.judge()
            print(f"counted {counts}")  # noqa: T201

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

    def until_told(self, words: str) -> None:
        """As far as ``/readyz`` knows, which asks no cluster: ``status`` reads all checkpoints each time,
        and on a machine that is busy with the load this alone can be heard as a silence."""
        wait_until(
            lambda: any(words in each for each in self._logins_told()),
            timeout_seconds=60, interval_seconds=0.5,
            describe=lambda: f"{words} among {self._logins_told()}",
        )  # fmt: skip

    def until_nothing_told(self) -> None:
        wait_until(
            lambda: not self._logins_told(),
            timeout_seconds=60, interval_seconds=0.5,
            describe=lambda: f"nothing told of logins: {self._logins_told()}",
        )  # fmt: skip

    def _logins_told(self) -> list[str]:
        return [each for each in self.worker.get("/readyz")["details"] if "login at" in each]

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
        found = ((later - before, later) for before, later in itertools.pairwise(times))
        longest = sorted(found, reverse=True)[:5]
        for seconds, until in longest:
            print(f"silence of {seconds:.3f} s, until {until - self.began:.1f} s")  # noqa: T201
        return longest[0][0]

    def note(self, what: str) -> None:
        """Says when something was done, in seconds as silences are told."""
        print(f"{what} at {time.time() - self.began:.1f} s")  # noqa: T201


def away_for(provider: OidcServer, load: Load, seconds: float) -> None:
    """The provider refuses the worker for a while in which its tokens are due to be renewed.

    Tokens of 30 s are due at 24 s, and the provider is away from their 5th to their 25th second. It
    comes back whatever the load does.
    """
    tokens = provider.issued_at["replicator"]
    wait_until(
        lambda: len(tokens) >= HELD and tokens[-HELD] > time.time() - 3.0,
        timeout_seconds=60, interval_seconds=0.2,
        describe=lambda: f"all tokens of the worker to be renewed: {tokens}",
    )  # fmt: skip
    load.last(tokens[-HELD] + 5.0 - time.time())
    refused = provider.refused
    back = threading.Timer(seconds, setattr, (provider, "away", False))
    load.note("the provider is away")
    provider.away = True
    back.start()
    try:
        load.last(seconds)
    finally:
        back.join()
    assert provider.refused > refused


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
def test_a_certificate_is_exchanged_under_load_and_the_old_one_is_refused(scene, clusters):
    # An east of its own, as below: topologies that other tests left there make lanes change their engine in the middle.
    (east,) = clusters("east")
    (west,) = clusters("west", security=SecuritySetup.mutual_tls())
    load = Load(scene, east, west, rate=500)
    old = private_key(west)
    west.renew_certificate("admin", authority=1)
    load.until_in_use(1)
    trust_only(west, 1)
    load.last(2.0)
    load.settled()
    assert load.longest_silence() < SILENCE_SECONDS
    assert secrets_shown(load, old, private_key(west)) == []


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS + 300)
@pytest.mark.parametrize(("engine", "share"), [("records", 1.0), ("batches", 0.2)])
def test_certificates_are_exchanged_every_20_seconds_and_one_cannot_be_used(
    scene, clusters, engine, share
):
    # An east of its own: what other tests left on a shared one, of topologies that copy the other way, is read when it is found.
    (east,) = clusters("east")
    (west,) = clusters("west", security=SecuritySetup.mutual_tls())
    load = Load(scene, east, west, rate=RATE, counted=FULL_RATE - RATE, engine=engine)
    keys = [private_key(west)]
    turns = round(RUN_SECONDS * share / 20)
    for turn in range(turns):
        west.renew_certificate("admin", authority=(turn + 1) % 2)
        keys.append(private_key(west))
        load.last(20.0)
    unusable = Path(west.topology_entry()["security"]["certificate"]["file"])
    good = unusable.read_text()
    load.note("half a certificate")
    unusable.resolve().write_text("half a certifica")
    load.until_told("login at 'west': what was there before stays in use")
    unusable.resolve().write_text(good)
    load.until_nothing_told()
    west.renew_certificate("admin", authority=1)
    load.until_in_use(turns + 1)
    load.note("the old authority is trusted no longer")
    trust_only(west, 1)
    load.last(20.0)
    assert load.longest_silence() < SILENCE_SECONDS
    load.note("restart")
    west.restart()  # every client opens new connections now, the member of the group too
    scene.copying(FLOW)
    load.until_no_problem()
    load.settled()
    assert secrets_shown(load, *keys) == []


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS + 300)
@pytest.mark.parametrize(("engine", "share"), [("records", 1.0), ("batches", 0.2)])
def test_tokens_of_30_seconds_are_renewed_while_their_provider_goes_away(
    scene, provider, engine, share
):
    again = 15 if engine == "batches" else 0
    east, west = started_ones(
        with_tokens(provider, "east", reauthenticate_seconds=60),
        with_tokens(provider, "west", reauthenticate_seconds=again),
    )
    try:
        load = Load(scene, east, west, rate=RATE, engine=engine)
        until = time.monotonic() + RUN_SECONDS * share
        while time.monotonic() < until:
            away_for(provider, load, 20.0)
            load.last(min(50.0, max(1.0, until - time.monotonic())))
        load.settled()
        assert load.longest_silence() < SILENCE_SECONDS
        assert len(provider.issued_at["replicator"]) > HELD * RUN_SECONDS * share / 30
        assert secrets_shown(load, *USERS.values(), *provider.issued) == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_tokens_that_cannot_be_renewed_are_a_problem_before_they_end(scene, provider):
    # Twelve seconds from the problem to the token's end: time to look, on a busy machine too.
    provider.life_seconds, provider.in_step = 60.0, False
    (east, west) = started_ones(with_tokens(provider, "east"), LocalCluster("west"))
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
        load.settled()
        assert secrets_shown(load, SECRET, *provider.issued) == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS + 300)
@pytest.mark.parametrize(
    ("engine", "share", "session_seconds"), [("records", 0.8, 0), ("batches", 0.3, 10)]
)
def test_passwords_are_changed_under_load(scene, engine, share, session_seconds):
    """With whole batches also under brokers that let a connection live for a short session only."""
    east, west = started_ones(
        *(
            OwnUserCluster(
                name, security=SecuritySetup.sasl(mechanism, tls=tls, users=USERS),
                config={
                    f"listener.name.client.{mechanism.lower()}.connections.max.reauth.ms": str(
                        session_seconds * 1000
                    )
                },
            )
            for name, mechanism, tls in (
                ("east", "SCRAM-SHA-256", False), ("west", "SCRAM-SHA-512", True),
            )
        )
    )  # fmt: skip
    try:
        load = Load(scene, east, west, rate=RATE, engine=engine)
        for turn in range(max(3, round(RUN_SECONDS * share / 15))):
            for cluster in (east, west):
                cluster.rotate_password("replicator", f"s3cret-number-{turn}")
            load.last(15.0)
        load.settled()
        assert load.longest_silence() < SILENCE_SECONDS
        assert secrets_shown(load, *USERS.values(), "s3cret-number") == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["records", "batches"])
def test_brokers_hear_of_passwords_a_second_after_the_files_were_written(scene, engine):
    """Sessions are so short that each connection logs in again while the two differ."""
    east, west = started_ones(
        *(
            OwnUserCluster(
                name, security=SecuritySetup.sasl("SCRAM-SHA-256", tls=False, users=USERS),
                config={"listener.name.client.scram-sha-256.connections.max.reauth.ms": "5000"},
            )
            for name in ("east", "west")
        )
    )  # fmt: skip
    try:
        load = Load(scene, east, west, rate=RATE, engine=engine)
        for turn in range(4):
            for cluster in (east, west):
                cluster.write_password_ahead("replicator", f"s3cret-number-{turn}", seconds=1.0)
                load.last(8.0)
        load.settled()
        assert load.longest_silence() < SILENCE_SECONDS
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(540)
@pytest.mark.parametrize("kind", ["password", "certificate"])
def test_what_brokers_refuse_stops_no_lane_that_starts_again(scene, east, kind):
    setup = {
        "password": SecuritySetup.sasl("SCRAM-SHA-512", users={"admin": SECRET}),
        "certificate": SecuritySetup.mutual_tls(),
    }[kind]
    (west,) = started_ones(LocalCluster("west", security=setup))
    try:
        load = Load(scene, east, west, rate=200)
        block = west.topology_entry()["security"]
        names = ("password",) if kind == "password" else ("certificate", "key")
        files = [Path(block[name]["file"]) for name in names]
        good = [file.read_text() for file in files]
        if kind == "password":
            files[0].write_text("not-the-passw0rd")
        else:
            stranger = trustme.CA().issue_cert("admin.test", common_name="admin")
            files[0].resolve().write_bytes(stranger.cert_chain_pems[0].bytes())
            files[1].resolve().write_bytes(stranger.private_key_pem.bytes())
        load.until_problem("CREDENTIALS_UNUSABLE")
        with urllib.request.urlopen(f"{load.worker.url()}/metrics", timeout=20) as answer:  # noqa: S310
            assert 'code="CREDENTIALS_UNUSABLE"' in answer.read().decode()
        (lane_process,) = load.worker.lane_pids()
        load.worker.kill_lane_process(lane_process)
        wait_until(
            lambda: load.worker.lane_pids() - {lane_process},
            timeout_seconds=60,
            describe="another lane process",
        )
        scene.copying(FLOW)  # a process that never saw the good files
        load.until_problem("CREDENTIALS_UNUSABLE")

        load.worker.kill()  # a worker that starts with nothing but the refused files waits for others
        again = load.worker = scene.worker("--debug")
        wait_until(
            lambda: again.answering and "brokers refuse" in str(again.get("/readyz")),
            timeout_seconds=90, interval_seconds=0.5,
            describe=lambda: f"the refusal in /readyz\n{again.log_tail(40)}",
        )  # fmt: skip
        for file, text in zip(files, good, strict=True):
            file.resolve().write_text(text)
        scene.copying(FLOW)
        load.until_no_problem()
        load.settled()
    finally:
        west.stop()
