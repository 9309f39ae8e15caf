"""The lock of a link holds between operators, also behind a transaction that is open where it is kept."""

import contextlib
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from replicator.clock import SystemClock
from replicator.control.records.role_records import TransitionRecord
from replicator.errors import RefusedError
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.steps.journal import Journal
from replicator.identifiers import control_topic
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule
from replicator.testing.kit.waiting import NotInTimeError

INVALID_PRODUCER_ID_MAPPING = 49


@pytest.fixture
def hiding():
    """Opens a transaction on west's control topic, behind which everything is hidden from readers."""

    def begin(lab):
        producer = Producer(
            {**lab.west.client_settings(), "transactional.id": f"{lab.name}-hides",
             "transaction.timeout.ms": 60_000}
        )  # fmt: skip
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(control_topic(lab.name), b"{}", b'{"kind":"nothing","v":1}', 0)
        assert producer.flush(20) == 0
        return producer

    return begin


def end_when(done, producer, *, seconds):
    """Ends the transaction once both have passed (which they must not), or after the time."""
    with contextlib.suppress(NotInTimeError):
        wait_until(done, timeout_seconds=seconds, describe="both to pass")
    producer.abort_transaction(20)


def test_a_lock_behind_an_open_transaction_is_waited_for(link, hiding):
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    ended = {}

    def take(name):
        with lab.clusters() as clusters:
            header = TransitionRecord(
                link="dr", id=name, kind="failover", state="open", source="east", target="west",
                home="west", token=name, at_ms=1, by=name,
            )  # fmt: skip
            journal = Journal(clusters, header, clock=SystemClock())
            try:
                journal.begin()
                ended[name] = "passed"
            except RefusedError as error:
                ended[name] = error.message
            finally:
                journal.close()

    producer = hiding(lab)
    running = [threading.Thread(target=take, args=(name,)) for name in ("ann", "bob")]
    for one in running:
        one.start()
    end_when(lambda: len(ended) == 2, producer, seconds=3.0)
    for one in running:
        one.join()
    assert sorted(one == "passed" for one in ended.values()) == [False, True], ended


@pytest.mark.slow
def test_of_two_processes_one_passes_though_an_open_transaction_hides_the_lock(link, hiding):
    lab = link(hooks={"beforePromote": [{"command": ["sleep", "3"]}]})
    lab.apply({0: 5, 1: 5}, records=5)
    producer = hiding(lab)

    def operator(name):
        command = [
            sys.executable, "-m", "replicator", "failover", "--link", "dr", "--to", "west",
            "--accept-loss", "--yes", "-f", lab.file, "--unreachable-after", "20",
        ]  # fmt: skip
        with (lab.directory / f"{name}.log").open("w") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    running = [operator(name) for name in ("ann", "bob")]

    def ended():
        return all(one.poll() is not None for one in running)

    end_when(ended, producer, seconds=15.0)
    wait_until(ended, timeout_seconds=90.0, describe="both operators to end")
    told = [(lab.directory / f"{name}.log").read_text() for name in ("ann", "bob")]
    assert sorted(one.returncode for one in running) == [0, 3], told
    assert lab.control(lab.west).role("dr").epoch == 1, told


def test_a_lock_that_could_not_be_written_is_tried_for_again_and_seen_if_another_has_it(link):
    """A commit that the coordinator refuses is no word about the lock: what is there now is."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)

    def header(name):
        return TransitionRecord(
            link="dr", id=name, kind="failover", state="open", source="east", target="west",
            home="west", token=name, at_ms=1, by=name,
        )  # fmt: skip

    def through(proxy):
        west = replace(lab.plan.cluster("west"), bootstrap_servers=tuple(proxy.bootstrap_servers))
        plan = replace(lab.plan, clusters=(lab.plan.cluster("east"), west))
        return LinkClusters(plan, plan.link("dr"), plan.cluster("east"), west)

    refused = Rule(Match(Api.END_TXN), Answer(INVALID_PRODUCER_ID_MAPPING))
    with ProtocolProxy(lab.west.bootstrap_servers) as proxy, through(proxy) as clusters:
        ann = Journal(clusters, header("ann"), clock=SystemClock())
        with contextlib.closing(ann):
            proxy.play([refused])
            ann.begin()
            assert proxy.applied(refused) == 1
        bob = Journal(clusters, header("bob"), clock=SystemClock())
        with contextlib.closing(bob), pytest.raises(RefusedError, match="is open: begun by ann"):
            bob.begin()
