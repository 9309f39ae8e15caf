"""Settings of clients: what is promised is set, what users may tune they can, secrets stay secret."""

import dataclasses
from pathlib import Path

import pytest
import trustme

from replicator.errors import SecretUnavailableError
from replicator.kafka.clients.client import open_admin, open_consumer, open_producer
from replicator.kafka.clients.settings import admin_config, consumer_config, producer_config
from replicator.topology.file.secrets import resolve_security
from replicator.topology.plan import ClusterPlan, SecretRef, SecurityPlan


def plain(**kafka: str) -> ClusterPlan:
    settings = tuple((name.replace("_", "."), value) for name, value in kafka.items())
    return ClusterPlan("east", ("a:9092", "b:9092"), kafka=settings)


@pytest.fixture
def secured(tmp_path, monkeypatch) -> ClusterPlan:
    (tmp_path / "password").write_text("pass-word\n")
    authority = trustme.CA()
    issued = authority.issue_cert("replicator.test", common_name="replicator")
    (tmp_path / "ca").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "cert").write_bytes(issued.cert_chain_pems[0].bytes())
    monkeypatch.setenv("EAST_KEY", issued.private_key_pem.bytes().decode().replace("\n", "\r\n"))
    return ClusterPlan(
        "east",
        ("a:9092",),
        SecurityPlan(
            protocol="SASL_SSL",
            mechanism="SCRAM-SHA-512",
            username=SecretRef(literal="replicator"),
            password=SecretRef(file=str(tmp_path / "password")),
            ca=SecretRef(file=str(tmp_path / "ca")),
            certificate=SecretRef(file=str(tmp_path / "cert")),
            key=SecretRef(env="EAST_KEY"),
        ),
    )


def test_only_lanes_read_from_the_nearest_replica_because_a_follower_may_show_the_past():
    near = plain(client_rack="rack-a")
    assert "client.rack" not in consumer_config(near, client_id="c", group_id="g")
    lane = consumer_config(near, client_id="c", group_id="g", follower_reads=True)
    assert lane["client.rack"] == "rack-a"


def test_a_consumer_never_moves_by_itself():
    config = consumer_config(plain(), client_id="c", group_id="g")

    assert config["bootstrap.servers"] == "a:9092,b:9092"
    assert config["isolation.level"] == "read_committed"
    assert config["auto.offset.reset"] == "error"
    assert config["enable.auto.commit"] is False
    assert config["enable.auto.offset.store"] is False
    assert config["fetch.queue.backoff.ms"] <= 50


def test_a_producer_keeps_order_and_gives_nothing_up():
    config = producer_config(plain(), client_id="c")

    assert config["enable.idempotence"] is True
    assert config["acks"] == "all"
    assert config["max.in.flight.requests.per.connection"] == 1
    assert config["message.timeout.ms"] == 0
    assert "transactional.id" not in config


def test_a_short_transaction_shortens_what_must_be_shorter():
    config = producer_config(
        plain(), client_id="c", transactional_id="t", transaction_timeout_seconds=3
    )

    assert config["transaction.timeout.ms"] == config["message.timeout.ms"] == 3000
    assert config["socket.timeout.ms"] == 3000
    open_producer(config)


def test_users_tune_but_do_not_break():
    cluster = plain(
        linger_ms="50", fetch_wait_max_ms="500", enable_idempotence="false", acks="0", log_level="7"
    )
    producer = producer_config(cluster, client_id="c")
    consumer = consumer_config(cluster, client_id="c", group_id="g")

    assert producer["linger.ms"] == "50"
    assert producer["acks"] == "all"
    assert producer["enable.idempotence"] is True
    assert "fetch.wait.max.ms" not in producer
    assert consumer["fetch.wait.max.ms"] == "500"
    assert "linger.ms" not in consumer
    assert {"linger.ms", "fetch.wait.max.ms"}.isdisjoint(admin_config(cluster, client_id="c"))


def test_the_library_takes_all_of_it():
    cluster = plain(socket_keepalive_enable="true")
    open_consumer(consumer_config(cluster, client_id="c", group_id="g")).close()
    open_producer(producer_config(cluster, client_id="c", compression="zstd"))
    open_admin(admin_config(cluster, client_id="c"))


def test_secrets_are_resolved_at_the_call_and_again_at_the_next(secured, tmp_path):
    config = admin_config(secured, client_id="c")
    assert config["sasl.username"] == "replicator"
    assert config["sasl.password"] == "pass-word"
    assert "PRIVATE KEY" in config["ssl.key.pem"]
    assert config["ssl.certificate.pem"] == (tmp_path / "cert").read_text().strip()

    (tmp_path / "password").write_text("rotated")
    assert admin_config(secured, client_id="c")["sasl.password"] == "rotated"


def test_a_chain_of_certificates_is_given_as_the_file_that_holds_it(secured, tmp_path):
    authority = trustme.CA()
    issued = authority.create_child_ca().issue_cert("replicator.test")
    chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
    (tmp_path / "cert").write_bytes(chain)
    (tmp_path / "key").write_bytes(issued.private_key_pem.bytes())
    security = dataclasses.replace(secured.security, key=SecretRef(file=str(tmp_path / "key")))
    cluster = dataclasses.replace(secured, security=security)
    config = admin_config(cluster, client_id="c")
    assert config["ssl.certificate.location"] == str(tmp_path / "cert")

    (tmp_path / "cert").write_text("half a file")
    kept = admin_config(cluster, client_id="c")["ssl.certificate.location"]
    assert Path(kept).read_bytes().strip() == chain.strip()  # what was there before stays in use
    assert config  # whose login is followed for as long as it is held


def test_secrets_are_not_shown(secured):
    shown = repr(resolve_security(secured))
    assert "pass-word" not in shown
    assert "PRIVATE KEY" not in shown


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (SecretRef(env="NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE, which is not set"),
        (SecretRef(file="/nowhere/at/all"), "/nowhere/at/all, which cannot be read"),
        (SecretRef(env="EMPTY"), "EMPTY, which is empty"),
    ],
)
def test_a_missing_secret_says_which_and_where(reference, words, monkeypatch):
    monkeypatch.setenv("EMPTY", "\n")
    cluster = ClusterPlan("east", ("a:1",), SecurityPlan("SASL_SSL", "PLAIN", password=reference))

    with pytest.raises(SecretUnavailableError) as raised:
        admin_config(cluster, client_id="c")
    assert words in raised.value.message
    assert "security.password" in raised.value.message
    assert raised.value.subject == "cluster:east"
    assert raised.value.remedy


def test_a_secret_that_is_not_text_is_not_quoted(tmp_path):
    (tmp_path / "s").write_bytes(b"\xff\xfesecret")
    cluster = ClusterPlan(
        "east",
        ("a:1",),
        SecurityPlan("SASL_SSL", "PLAIN", password=SecretRef(file=str(tmp_path / "s"))),
    )
    with pytest.raises(SecretUnavailableError, match="not UTF-8") as raised:
        admin_config(cluster, client_id="c")
    assert "secret\\" not in raised.value.paragraph()
    assert raised.value.__cause__ is None
