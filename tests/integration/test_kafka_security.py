"""Both rooms connect to secured clusters, and say what is wrong when they cannot."""

import dataclasses
import time
from pathlib import Path

import pytest
from identity_provider import OidcServer
from topology_files import plan_of

from replicator.errors import AuthenticationFailedError, NotAuthorizedError, UnreachableError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import KafkaException, open_producer
from replicator.kafka.clients.settings import producer_config
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.log_writer import LogWriter
from replicator.logins.cluster_login import login_of
from replicator.testing import LocalCluster, SecuritySetup, wait_until
from replicator.topology.plan import ClusterPlan, OAuthPlan, SecretRef, SecurityPlan
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import MetadataRequest
from replicator.wire.probes.broker_versions import require_supported
from replicator.wire.requests.fetch_one import fetch_record

pytestmark = pytest.mark.timeout(240)


def plan(cluster: LocalCluster, user: str | None = None) -> ClusterPlan:
    """As a topology file that names the cluster compiles it."""
    entries = {cluster.name: cluster.topology_entry(user), "other": {"bootstrapServers": ["o:1"]}}
    link = f"name: l, shape: active-passive, active: {cluster.name}, passive: other, topics: {{include: [t]}}"
    return plan_of(link, clusters=entries).cluster(cluster.name)


def check_everything(cluster: LocalCluster, at: ClusterPlan) -> None:
    cluster.create_topic("log", partitions=1)
    with ClusterAdmin(at, client_id="test") as admin:
        assert admin.cluster_id() == cluster.cluster_id
    with LogWriter(at, "log", client_id="test") as writer:
        writer.write([(b"k", b"v")])
    assert read_compacted(at, "log", client_id="test") == {0: {b"k": b"v"}}
    require_supported(at)
    assert fetch_record(at, "log", 0, 0).value == b"v"


def secured(at: ClusterPlan, **changes: object) -> ClusterPlan:
    return dataclasses.replace(at, security=dataclasses.replace(at.security, **changes))


def attempts(at: ClusterPlan, seconds: float = 8):
    """Every way we connect, each expected to fail."""
    yield lambda: ClusterAdmin(at, client_id="t", timeout_seconds=seconds).cluster_id()
    yield lambda: ClusterAdmin(at, client_id="t", timeout_seconds=seconds).topic_partitions()
    yield lambda: read_compacted(at, "log", client_id="t", timeout_seconds=seconds)
    yield lambda: LogWriter(at, "log", client_id="t", timeout_seconds=seconds).write([(b"k", b"v")])
    yield lambda: LogWriter(
        at, "log", client_id="t", transactional_id="t", timeout_seconds=seconds
    ).write([(b"k", b"v")])
    yield lambda: require_supported(at, timeout_seconds=seconds)


def test_tls_and_mutual_tls(clusters, tmp_path: Path):
    (one,) = clusters("one", security=SecuritySetup.mutual_tls())
    at = plan(one)
    check_everything(one, at)

    stranger = tmp_path / "ca.pem"
    stranger.write_text(_another_authority())
    for attempt in attempts(secured(at, ca=SecretRef(file=str(stranger)))):
        with pytest.raises(AuthenticationFailedError) as raised:
            attempt()
        assert "certificate" in raised.value.message.lower()
    plain = dataclasses.replace(at, security=SecurityPlan())
    for attempt in attempts(plain, seconds=2):
        with pytest.raises(UnreachableError) as raised:
            attempt()
    assert "security.protocol" in raised.value.remedy


@pytest.mark.parametrize(
    ("mechanism", "tls"), [("PLAIN", False), ("SCRAM-SHA-256", False), ("SCRAM-SHA-512", True)]
)
def test_sasl_logins(clusters, tmp_path, mechanism, tls):
    (one,) = clusters("one", security=SecuritySetup.sasl(mechanism, tls=tls))
    at = plan(one, "replicator")
    check_everything(one, at)

    wrong = tmp_path / "password"
    wrong.write_text("not-it\n")
    bad = secured(at, password=SecretRef(file=str(wrong)))
    for attempt in attempts(bad):
        with pytest.raises(AuthenticationFailedError) as raised:
            attempt()
        assert "not-it" not in raised.value.paragraph()

    admin = ClusterAdmin(bad, client_id="test", timeout_seconds=8)
    with pytest.raises(AuthenticationFailedError):
        admin.cluster_id()
    wrong.write_text("replicator-secret\n")
    assert admin.cluster_id() == one.cluster_id

    # What brokers refuse replaces nothing: also clients that are made now have the last that was taken.
    wait_until(lambda: login_of(bad).proven, timeout_seconds=20, describe="the login to be tried")
    wrong.write_text("not-it")
    with ClusterAdmin(bad, client_id="late") as late:
        assert late.cluster_id() == one.cluster_id
    wait_until(
        lambda: (
            (found := login_of(bad).problem()) is not None and found.code == "CREDENTIALS_UNUSABLE"
        ),
        timeout_seconds=20,
        describe="the refusal to be a problem",
    )
    with ClusterAdmin(bad, client_id="later") as later:
        assert later.cluster_id() == one.cluster_id
    admin.close()

    # Where brokers never took any, the newest is used.
    unproven = tmp_path / "unproven"
    unproven.write_text("not-it")
    other = secured(at, password=SecretRef(file=str(unproven)))
    producer = open_producer(producer_config(other, client_id="test"))

    def looks() -> bool:
        producer.poll(0.1)
        try:
            return producer.list_topics("log", timeout=1).topics["log"].error is None
        except KafkaException:
            return False

    assert not looks()
    unproven.write_text("replicator-secret")
    wait_until(looks, timeout_seconds=20, describe="the producer to use the changed password")


def stays_logged_in(at: ClusterPlan) -> None:
    """A connection of our own outlives the session that the broker gives it."""
    with any_broker(at, client_id="test", deadline=time.monotonic() + 20) as connection:
        first, until = connection.renew_at, time.monotonic() + 5
        assert first < until

        def asked_long_enough() -> bool:
            deadline = time.monotonic() + 20
            connection.call(MetadataRequest(topics=[]), newest=9, deadline=deadline)
            return time.monotonic() > until

        wait_until(asked_long_enough, timeout_seconds=30, describe="five seconds of questions")
        assert connection.renew_at > first


def test_tokens_of_an_identity_provider_that_kafka_checks_itself(clusters, tmp_path):
    server = OidcServer({"replicator": "client-secret-of-tests"})
    try:
        setup = SecuritySetup.oauth(server.provider(reauthenticate_seconds=3), users=server.clients)
        (one,) = clusters("one", security=setup)
        at = plan(one)
        check_everything(one, at)
        asked = len(server.asked)
        assert asked == 1  # all clients of a process share a token
        stays_logged_in(at)
        asked = len(server.asked)  # a login that nobody held in between begins anew

        kept = tmp_path / "token"
        kept.write_text(server.token("replicator"))
        for oauth in (
            OAuthPlan(token_file=str(kept)),
            OAuthPlan(token_command=("cat", str(kept))),
        ):
            with ClusterAdmin(secured(at, oauth=oauth), client_id="test") as admin:
                assert admin.cluster_id() == one.cluster_id
        assert len(server.asked) == asked

        secret = tmp_path / "secret"
        secret.write_text("not-it")
        bad = secured(
            at,
            oauth=dataclasses.replace(at.security.oauth, client_secret=SecretRef(file=str(secret))),
        )
        for attempt in attempts(bad):
            with pytest.raises(AuthenticationFailedError, match="HTTP status 401") as raised:
                attempt()
            assert "not-it" not in raised.value.paragraph()
        kept.write_text(server.token("replicator", life_seconds=-10))
        with pytest.raises(AuthenticationFailedError, match="expired"):
            ClusterAdmin(
                secured(at, oauth=OAuthPlan(token_file=str(kept))), client_id="test"
            ).cluster_id()
    finally:
        server.stop()


def test_a_missing_right_is_named(clusters):
    (one,) = clusters("one", security=SecuritySetup.sasl("PLAIN", authorizer=True))
    one.create_topic("log", partitions=1)
    at = plan(one, "replicator")

    for attempt in (
        lambda: read_compacted(at, "log", client_id="t", timeout_seconds=5),
        lambda: LogWriter(at, "log", client_id="t", timeout_seconds=5).write([(b"k", b"v")]),
        lambda: LogWriter(at, "log", client_id="t", transactional_id="t", timeout_seconds=5).open(),
        lambda: fetch_record(at, "log", 0, 0, timeout_seconds=5),
        lambda: ClusterAdmin(at, client_id="t").topic_configs(["log"]),
    ):
        with pytest.raises(NotAuthorizedError) as raised:
            attempt()
        assert "ACL" in raised.value.remedy
    with ClusterAdmin(at, client_id="t") as admin:
        refused = admin.commit_offsets({"g": {("log", 0): (0, "")}})["g"]
        assert isinstance(refused, NotAuthorizedError)
        assert "ACL" in refused.remedy
        assert admin.topic_partitions() == {}


def _another_authority() -> str:
    import trustme

    return trustme.CA().cert_pem.bytes().decode()
