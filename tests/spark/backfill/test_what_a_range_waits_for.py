"""What a range can wait for is named with its place, and ends the copy in time; another run goes on."""

import sys
import threading

import pytest
from confluent_kafka.admin import NewTopic
from seed_lab import SeedLab

from replicator.control.operator.apply import apply_plan
from replicator.dataplane.ranges.range_patience import Patience
from replicator.errors import ReplicatorError
from replicator.spark.copy.task import copy_order
from replicator.testing.kit.child_processes import start_child

FLOW = "east->west"


def apply(lab: SeedLab, **fields) -> None:
    """Until all brokers of a cluster know the topics that were made just now."""
    lab.topology(**fields)
    lab.until(lambda: not apply_plan(lab.plan, clock=lab.clock).problems, "the flow to be applied")


def begun(lab: SeedLab, patience: Patience, **fields):
    """A range that is being copied, slowly: the thread, and what it raised or returned."""
    lab.produce(20_000, size=5_000)  # more than a reader has fetched before its turn
    apply(lab, throttle={"recordsPerSecond": 2_000}, **fields)
    (order,) = lab.taken()
    ended: list[object] = []

    def attempt() -> None:
        try:
            ended.append(copy_order(order, patience=patience))
        except ReplicatorError as error:
            ended.append(error)

    copying = threading.Thread(target=attempt, daemon=True)
    copying.start()
    lab.until(lambda: lab.positions().get((lab.topic, 0), 0) > 0, "the copy to begin")
    return copying, ended


@pytest.mark.parametrize("engine", ["records", "batches"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_that_is_deleted_meanwhile_is_named(lab: SeedLab, side, engine):
    lab.source.create_topic(lab.topic, partitions=1)
    patience = Patience(seconds=60.0, refused_seconds=2.0)
    copying, ended = begun(lab, patience, engine=engine, naming="prefix")
    name = lab.topic if side == "source" else f"east.{lab.topic}"
    getattr(lab, side).delete_topic(name)
    copying.join(45)
    (error,) = ended
    assert isinstance(error, ReplicatorError), error
    assert (error.code, error.subject) == ("NOT_FOUND", f"{lab.topic}/0")
    assert name in error.message
    assert error.remedy


@pytest.fixture
def wide(east, clusters, unique, tmp_path):
    """A flow whose copy of one partition has two replicas, on brokers 1 and 2 of three, and needs both."""
    (west,) = clusters("west", brokers=3)
    lab = SeedLab(east, west, unique, tmp_path)
    east.create_topic(lab.topic)
    new = NewTopic(
        f"east.{lab.topic}", num_partitions=1, replica_assignment=[[1, 2]],
        config={"min.insync.replicas": "2"},
    )  # fmt: skip
    west.admin().create_topics([new])[new.topic].result(30)
    return lab


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["records", "batches"])
@pytest.mark.parametrize("killed", [(2,), (1, 2)])
def test_a_partition_that_takes_no_writes_is_named_and_the_range_given_up(wide, killed, engine):
    copying, ended = begun(wide, Patience(seconds=30.0), engine=engine, naming="prefix")
    for broker in killed:
        wide.target.kill(broker)
    copying.join(90)
    (error,) = ended
    assert isinstance(error, ReplicatorError), error
    assert error.code == "UNREACHABLE"
    assert error.subject == f"{wide.topic}/0"
    if len(killed) == 1:  # of a majority that is gone nobody can say anything
        assert "1 of its replicas are in sync on the target, 2 are needed" in error.message


@pytest.mark.slow
def test_the_command_says_what_it_waits_for_before_it_gives_up(wide, tmp_path):
    wide.produce(20_000, size=1_000)
    apply(wide, throttle={"recordsPerSecond": 2_000}, naming="prefix")
    log = tmp_path / "log"
    command = [sys.executable, "-m", "replicator", "bulk-sync", "-f", wide.file, "--flow", FLOW]
    child = start_child([*command, "--yes"], output=log)
    wide.until(lambda: wide.positions().get((wide.topic, 0), 0) > 0, "the copy to begin")
    wide.target.kill(2)
    wide.until(
        lambda: "1 of its replicas are in sync on the target, 2 are needed" in log.read_text(),
        "the reason on standard error",
    )
    assert "partition does not move" in log.read_text()
    wide.target.restart(2)
    assert child.wait(120), log.read_text()
    assert child.exit_code() == 0, log.read_text()
    copies = wide.values(wide.target, f"east.{wide.topic}")
    assert copies == wide.values(wide.source)
