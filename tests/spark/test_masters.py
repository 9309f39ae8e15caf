"""Masters that this machine has not: how far the client comes, and what it says."""

import json
import signal
import sys

import pytest
import yaml
from api_server import TOKENS, running_api_server

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child

JOB = """
import logging, sys
from replicator.errors import ReplicatorError
from replicator.spark.session.session import spark_session
from replicator.spark.session.settings import SparkSettings
conf = tuple(tuple(each.split("=", 1)) for each in sys.argv[2:])
try:
    with spark_session(SparkSettings(master=sys.argv[1], conf=conf), name="masters") as session:
        print("started")
except KeyboardInterrupt:
    sys.exit(130)
except ReplicatorError as error:
    print(error.paragraph())
    sys.exit(error.exit_code)
"""
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "name": "spark-kubernetes-executor",
                "envFrom": [{"secretRef": {"name": "kafka-credentials"}}],
                "volumeMounts": [
                    {"name": "tls", "mountPath": "/etc/replicator/tls", "readOnly": True}
                ],
            }
        ],
        "volumes": [{"name": "tls", "secret": {"secretName": "kafka-tls"}}],
    },
}


def start(folder, master, *conf, **environment):
    return start_child(
        [sys.executable, "-c", JOB, master, *conf],
        output=folder / "log", environment=environment,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_yarn_without_its_settings_and_without_an_answer_is_reported_in_one_sentence(
    tmp_path, monkeypatch
):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    child = start(tmp_path, "yarn")
    assert child.wait(100)
    said = (tmp_path / "log").read_text()
    assert child.exit_code() == 1, said
    assert "HADOOP_CONF_DIR" in said
    assert "Traceback" not in said
    assert "\tat " not in said
    properties = {
        "yarn.resourcemanager.address": "127.0.0.1:9",
        "yarn.resourcemanager.connect.max-wait.ms": "2000",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
    }
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{rows}</configuration>")
    child = start(tmp_path, "yarn", HADOOP_CONF_DIR=str(tmp_path), YARN_CONF_DIR=str(tmp_path))
    assert child.wait(100)
    said = (tmp_path / "log").read_text()
    assert child.exit_code() == 1, said
    assert ":9 failed on connection" in said
    assert "Check --master" in said
    assert "\tat " not in said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_executors_on_kubernetes_are_pods_as_documented_and_go_with_the_command(tmp_path):
    template = tmp_path / "executor.yaml"
    template.write_text(yaml.safe_dump(TEMPLATE))
    with running_api_server(tmp_path) as server:
        server.kubectl("create", "namespace", "shop")
        server.kubectl("create", "serviceaccount", "default", "-n", "shop")
        address = server.address.removeprefix("https://")
        child = start(
            tmp_path, f"k8s://https://{address}",
            f"spark.kubernetes.authenticate.oauthToken={TOKENS['admin']}",
            "spark.kubernetes.trust.certificates=true",
            "spark.kubernetes.namespace=shop",
            "spark.kubernetes.container.image=replicator/spark:0.1.0",
            f"spark.kubernetes.executor.podTemplateFile={template}",
            "spark.executor.instances=2",
            "spark.driver.host=127.0.0.1",
        )  # fmt: skip
        log = tmp_path / "log"

        def pods():
            assert child.exit_code() is None, log.read_text()
            return server.get("pods", "shop")

        wait_until(
            lambda: len(pods()) == 2,
            timeout_seconds=180,
            describe=lambda: f"two executors\n{log.read_text()}",
        )
        for pod in pods().values():
            (container,) = pod["spec"]["containers"]
            assert container["image"] == "replicator/spark:0.1.0"
            assert container["envFrom"] == [{"secretRef": {"name": "kafka-credentials"}}]
            volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
            assert volumes["tls"]["secret"]["secretName"] == "kafka-tls"
            assert "/etc/replicator/tls" in [
                each["mountPath"] for each in container["volumeMounts"]
            ]
            assert TOKENS["admin"] not in json.dumps(pod)
        wait_until(
            lambda: "Waiting for the executors of the Spark cluster" in log.read_text(),
            timeout_seconds=60,
            describe=lambda: f"a word about what is waited for\n{log.read_text()}",
        )
        child.signal(signal.SIGINT)
        assert child.wait(30), log.read_text()
        assert child.exit_code() == 130, log.read_text()
        assert "Traceback" not in log.read_text()
        wait_until(
            lambda: not server.get("pods", "shop"),
            timeout_seconds=30,
            describe="the end of the executors",
        )
