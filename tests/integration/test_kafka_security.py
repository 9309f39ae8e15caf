"""Both rooms connect to secured clusters, and say what is wrong when they cannot."""

import dataclasses
from pathlib import Path

import pytest

from replicator.errors import AuthenticationFailedError, NotAuthorizedError, UnreachableError
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.client import KafkaException, open_producer
from replicator.kafka.compacted_log import read_compacted
from replicator.kafka.log_writer import LogWriter
from replicator.kafka.settings import producer_config
from replicator.testing import LocalCluster, SecuritySetup, wait_until
from replicator.topology.plan import ClusterPlan, SecretRef, SecurityPlan
from replicator.wire.broker_versions import require_supported
from replicator.wire.fetch_one import fetch_record

pytestmark = pytest.mark.timeout(240)


def plan(cluster: LocalCluster, user: str | None = None) -> ClusterPlan:
    entry = cluster.topology_entry(user)
    block = entry.get("security", {})

    def reference(name: str) -> SecretRef | None:
        value = block.get(name)
        if value is None:
            return None
        return SecretRef(**value) if isinstance(value, dict) else SecretRef(literal=value)

    security = SecurityPlan(
        protocol=block.get("protocol", "PLAINTEXT"),
        mechanism=block.get("mechanism"),
        **{name: reference(name) for name in ("username", "password", "ca", "certificate", "key")},
    )
    return ClusterPlan(cluster.name, tuple(entry["bootstrapServers"]), security)


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

    wrong.write_text("not-it")
    producer = open_producer(producer_config(bad, client_id="test"))

    def looks() -> bool:
        producer.poll(0.1)
        try:
            return producer.list_topics("log", timeout=1).topics["log"].error is None
        except KafkaException:
            return False

    assert not looks()
    wrong.write_text("replicator-secret")
    wait_until(looks, timeout_seconds=20, describe="the producer to use the changed password")


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
        lambda: ClusterAdmin(at, client_id="t").commit_offsets("g", {("log", 0): (0, "")}),
    ):
        with pytest.raises(NotAuthorizedError) as raised:
            attempt()
        assert "ACL" in raised.value.remedy
    assert ClusterAdmin(at, client_id="t").topic_partitions() == {}


def _another_authority() -> str:
    import trustme

    return trustme.CA().cert_pem.bytes().decode()
