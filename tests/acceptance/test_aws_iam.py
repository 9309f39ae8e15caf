"""AWS IAM against a broker that computes the signature of each token anew, as brokers of MSK do."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from java_tools import compile_java
from topology_files import plan_of

from replicator.errors import AuthenticationFailedError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import LocalCluster, SecuritySetup, start_all
from replicator.topology.plan import ClusterPlan
from replicator.wire.probes.broker_versions import require_supported

pytest.importorskip("aws_msk_iam_sasl_signer")

KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
LISTENER = "listener.name.client.oauthbearer"
SOURCE = Path(__file__).parent.parent / "support" / "java" / "IamTokenCheck.java"


class IamCluster(LocalCluster):
    """Our clients log in by IAM; those of the test use the listener that asks for nothing."""

    def topology_entry(self, user: str | None = None) -> dict[str, object]:
        entry = super().topology_entry(user)
        security = {name: entry["security"][name] for name in ("protocol", "ca")}
        return entry | {
            "security": security | {"mechanism": "AWS_MSK_IAM", "awsRegion": "eu-west-1"}
        }

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        return {"bootstrap.servers": ",".join(self.admin_bootstrap_servers)}


@pytest.fixture
def iam(tmp_path, monkeypatch) -> Iterator[IamCluster]:
    classes = compile_java([SOURCE], tmp_path / "classes")
    agent = tmp_path / "agent.jar"
    with zipfile.ZipFile(agent, "w") as jar:
        jar.writestr(
            "META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: IamTokenCheck\n"
        )
        for each in classes.glob("*.class"):
            jar.write(each, each.name)
    options = f"-javaagent:{agent} -Dtest.iam.key={KEY} -Dtest.iam.secret={SECRET}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    cluster = IamCluster(
        "west",
        security=SecuritySetup("SASL_SSL", "OAUTHBEARER", users={"replicator": "unused"}),
        config={
            f"{LISTENER}.sasl.server.callback.handler.class": "IamTokenCheck",
            f"{LISTENER}.sasl.jaas.config": (
                f'{module} required unsecuredLoginStringClaim_sub="broker";'
            ),
        },
    )
    start_all([cluster])
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    yield cluster
    cluster.stop()


def plan(cluster: LocalCluster) -> ClusterPlan:
    entries = {"west": cluster.topology_entry(), "other": {"bootstrapServers": ["o:1"]}}
    link = "name: l, shape: active-passive, active: west, passive: other, topics: {include: [t]}"
    return plan_of(link, clusters=entries).cluster("west")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_flow_copies_to_a_broker_that_checks_signatures_and_a_wrong_secret_is_refused(
    scene, east, iam, monkeypatch
):
    at = plan(iam)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-s3cret-of-tests")
    for attempt in (
        lambda: ClusterAdmin(at, client_id="test", timeout_seconds=8).cluster_id(),
        lambda: LogWriter(at, "log", client_id="test", timeout_seconds=8).write([(b"k", b"v")]),
        lambda: require_supported(at, timeout_seconds=8),
    ):
        with pytest.raises(AuthenticationFailedError) as raised:
            attempt()
        assert "not-the-s3cret" not in raised.value.paragraph()
        assert raised.value.remedy
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    scene.active_passive(east, iam)
    worker = scene.worker("--debug")
    scene.writer(east, rate=300)
    scene.copying("east->west")
    scene.settled()
    shown = worker.log.read_text(errors="replace") + json.dumps(worker.status())
    assert SECRET not in shown
    assert "X-Amz-Signature" not in shown
