"""Kafka in containers: the compose file as its first lines say, and the test kit's other backend."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engine import ROOT, missing_network_programs

from replicator.testing import LocalCluster, wait_until
from replicator.testing.cluster.brokers.backends import VARIABLE
from replicator.testing.kit.child_processes import start_child
from replicator.testing.kit.ports import free_ports

COMPOSE = ROOT / "deploy/compose.yaml"
SERVICES = ("kafka-east", "kafka-west", "worker-1", "worker-2")
"""Prometheus and Grafana are images of others."""

UP_SECONDS = 240.0
WORDS = [f"order {number}" for number in range(50)]


@pytest.fixture
def compose(images, kafka_image):
    """Runs a command of Compose on the project's file."""
    beside = Path(sys.executable).parent / "podman-compose"
    podman_compose = str(beside) if beside.exists() else shutil.which("podman-compose")
    if images.podman and not podman_compose:
        pytest.skip("podman-compose is missing (pip install podman-compose)")
    if images.podman and (missing := missing_network_programs()):
        pytest.skip(f"containers of Podman do not find each other by name without {' and '.join(missing)} (Debian: apt install netavark aardvark-dns)")  # fmt: skip
    program = [podman_compose] if images.podman else ["docker", "compose"]
    environment = {
        **os.environ, **images.environment, "REPLICATOR_PORT": str(free_ports(1)[0]),
        "COMPOSE_PROJECT_NAME": f"replicator-test-{os.getpid()}",
    }  # fmt: skip

    def run(*arguments, check=True, **options):
        done = subprocess.run(
            [*program, "-f", COMPOSE, *arguments], env=environment, capture_output=True, text=True,
            check=False, timeout=UP_SECONDS, **options,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    yield run
    run("down", "--volumes", "--timeout", "30", check=False)


def test_what_is_written_to_one_cluster_of_the_compose_file_is_read_from_the_other(compose):
    compose("up", "-d", "--no-build", *SERVICES)
    tool = ("exec", "-T", "kafka-east", "/opt/kafka/bin/kafka-console-producer.sh")
    compose(
        *tool, "--bootstrap-server", "kafka-east:9092", "--topic", "orders", input="\n".join(WORDS)
    )

    def status():
        return compose("exec", "-T", "worker-1", "replicator", "status", "-o", "json", check=False)

    wait_until(
        lambda: '"orders"' in status(),
        timeout_seconds=UP_SECONDS, interval_seconds=2.0, describe=lambda: f"orders in {status()}",
    )  # fmt: skip
    read = compose(
        "exec", "-T", "kafka-west", "/opt/kafka/bin/kafka-console-consumer.sh", "--bootstrap-server",
        "kafka-west:9092", "--topic", "orders", "--from-beginning", "--timeout-ms", "20000",
        "--max-messages", str(len(WORDS)),
    )  # fmt: skip
    assert sorted(read.split("\n"))[-len(WORDS) :] == sorted(WORDS)


def test_brokers_of_the_test_kit_run_in_containers(images, kafka_image, tmp_path, monkeypatch):
    if images.podman:
        socket = tmp_path / "podman.sock"
        service = start_child(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"],
            output=tmp_path / "service.log", environment=images.environment,
        )  # fmt: skip
        wait_until(socket.exists, timeout_seconds=30.0, describe="Podman's socket")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    monkeypatch.setenv(VARIABLE, "containers")
    try:
        with LocalCluster("boxed", brokers=1) as cluster:
            cluster.create_topic("t", partitions=1)
            cluster.kill()
            cluster.restart()
            assert "t" in cluster.admin().list_topics(timeout=20).topics
            cluster.pause()
            cluster.resume()
            assert "t" in cluster.admin().list_topics(timeout=20).topics
    finally:
        if images.podman:
            service.kill()
