"""What a cluster says of itself, also where the broker that is asked knows of no broker yet."""

import subprocess
import sys
import textwrap
import threading

import pytest

from replicator.errors import TransientBrokerError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Api, Match, NameNoBrokers, Rule
from replicator.topology.plan import ClusterPlan

WITHOUT_BROKERS = Rule(Match(Api.METADATA, times=None), NameNoBrokers())


@pytest.fixture
def proxy(east):
    with ProtocolProxy(east.bootstrap_servers) as proxy:
        yield proxy


def test_a_process_outlives_a_broker_that_knows_of_no_broker(proxy):
    """The client library's own call ends the process here, so another one has to make it."""
    program = f"""
        import sys
        from replicator.errors import TransientBrokerError
        from replicator.kafka.admin.admin import ClusterAdmin
        from replicator.topology.plan import ClusterPlan

        at = ClusterPlan("east", {tuple(proxy.bootstrap_servers)!r})
        with ClusterAdmin(at, client_id="test", timeout_seconds=3.0) as admin:
            print(admin.describe_cluster().cluster_id, flush=True)
            sys.stdin.readline()
            try:
                admin.describe_cluster()
            except TransientBrokerError as error:
                print(error.message)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().strip()
        proxy.play([WITHOUT_BROKERS])
        said, complained = process.communicate("\n", timeout=60)
    assert process.returncode == 0, complained
    assert "that no broker lives" in said


def test_a_broker_that_knows_of_no_broker_is_asked_again(proxy):
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    with ClusterAdmin(at, client_id="test", timeout_seconds=30.0) as admin:
        proxy.play([WITHOUT_BROKERS])
        found = []
        asking = threading.Thread(target=lambda: found.append(admin.describe_cluster()))
        asking.start()
        wait_until(
            lambda: proxy.applied(WITHOUT_BROKERS) > 1,
            timeout_seconds=20,
            describe="a second question",
        )
        assert not found
        proxy.play([])
        asking.join()
    (described,) = found
    assert described.brokers
    assert described.controller == described.brokers[0].id


def test_its_list_of_topics_is_not_believed(proxy, east, unique):
    east.create_topic(unique)
    at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
    with ClusterAdmin(at, client_id="test", timeout_seconds=3.0) as admin:
        assert unique in admin.topic_partitions()
        proxy.play([WITHOUT_BROKERS])
        with pytest.raises(TransientBrokerError, match="no broker lives"):
            admin.topic_partitions()
        proxy.play([])
