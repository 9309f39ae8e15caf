"""A broker that goes away with a question on its way: the others, or the broker itself, are asked again."""

import subprocess
import sys
import textwrap

import pytest

from replicator.errors import NotFoundError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Api, DropRequest, Match, Rule
from replicator.topology.plan import ClusterPlan

DESCRIBE_GROUPS, DELETE_GROUPS = 15, 42


@pytest.mark.parametrize(
    ("apis", "ask"),
    [
        (
            [Api.METADATA],
            lambda admin, topic: admin.describe_topics([topic])[topic].partitions == 1,
        ),
        ([Api.METADATA], lambda admin, _: bool(admin.describe_cluster().cluster_id)),
        ([Api.LIST_OFFSETS], lambda admin, topic: admin.every_offset([(topic, 0)], "latest") != {}),
        (
            [DESCRIBE_GROUPS],
            lambda admin, topic: admin.describe_group(topic).state == "DEAD",
        ),
        (
            [DELETE_GROUPS],
            lambda admin, topic: isinstance(admin.delete_groups([topic])[topic], NotFoundError),
        ),
    ],
    ids=["topics", "cluster", "offsets", "groups", "deleted groups"],
)
def test_what_was_lost_with_its_connection_is_asked_again(east, unique, apis, ask):
    east.create_topic(unique)
    with ProtocolProxy(east.bootstrap_servers, ()) as proxy:
        at = ClusterPlan("east", tuple(proxy.bootstrap_servers))
        with ClusterAdmin(at, client_id="test") as admin:
            assert ask(admin, unique)  # it is connected, so nothing but the question is lost
            rules = [Rule(Match(api), DropRequest(reset=True)) for api in apis]
            proxy.play(rules)
            assert ask(admin, unique)
            assert sum(proxy.applied(rule) for rule in rules) >= 1


@pytest.mark.slow
def test_a_process_that_asks_about_groups_outlives_their_coordinator():
    """The client library's own calls may end the process, so another one has to make them here."""
    program = """
        import threading
        from replicator.errors import ReplicatorError
        from replicator.kafka.admin.admin import ClusterAdmin
        from replicator.testing import LocalCluster, start_all, wait_until
        from replicator.topology.plan import ClusterPlan

        def ask(admin, answers, over):
            while not over.is_set():
                try:
                    answers.append(admin.describe_group("g").state)
                    admin.delete_groups(["g"])
                except ReplicatorError:
                    pass

        cluster = LocalCluster("east")
        start_all((cluster,))
        try:
            at = ClusterPlan("east", tuple(cluster.bootstrap_servers))
            for _ in range(3):
                answers, over = [], threading.Event()
                with ClusterAdmin(at, client_id="test", timeout_seconds=6) as admin:
                    asks = threading.Thread(target=ask, args=(admin, answers, over))
                    asks.start()
                    wait_until(lambda: answers, timeout_seconds=30, describe="an answer")
                    cluster.kill(0)
                    answers.clear()
                    cluster.restart(0)
                    wait_until(lambda: answers, timeout_seconds=20, describe="an answer again")
                    over.set()
                    asks.join()
        finally:
            cluster.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
