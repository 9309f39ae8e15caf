"""Ranges copied in processes of this machine: each exactly once, whatever becomes of a process."""

import subprocess
import sys
import threading

import pytest
from session_lab import SETTINGS

from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import RefusedError, ReplicatorError
from replicator.spark.copy.local_tasks import LocalTasks, TaskProcessDiedError, usable_cores
from replicator.spark.copy.task import CopyOrder, CopyResult
from replicator.spark.copy.task_messages import (
    TaskFailure,
    decode_answer,
    decode_order,
    encode,
)
from replicator.spark.session.settings import SparkSettings, asks_for_spark
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan

STAND_IN = """
import os, pathlib, sys, time
from replicator.errors import FencedError, NotAuthorizedError, RefusedError, UnreachableError
from replicator.spark.base.failures import TaskError, task_errors
from replicator.spark.copy.task import CopyResult
from replicator.spark.copy.task_messages import TaskFailure, decode_order, encode
runs = pathlib.Path({runs!r})
ERRORS = dict(
    refused=RefusedError, unauthorized=NotAuthorizedError, stands=UnreachableError, fenced=FencedError
)
for line in sys.stdin.buffer:
    order = decode_order(line)
    work = order.work
    with runs.open("a") as file:
        print(work.topic, work.partition, os.getpid(), file=file)
    if work.topic == "dies" and len([l for l in runs.read_text().split("\\n") if l.startswith("dies")]) < {deaths}:
        print("out of memory", file=sys.stderr)
        os._exit(9)
    if work.topic == "hangs":
        time.sleep(600)
    answer = CopyResult(work.topic, work.partition, order.start, order.end, 1, 1, "", 0, 0.1)
    if work.topic in ERRORS:
        try:
            with task_errors():
                raise ERRORS[work.topic]("no longer ours", subject="refused/0", remedy="See 'status'.")
        except TaskError as error:
            answer = TaskFailure(str(error))
    sys.stdout.buffer.write(encode(answer))
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """Tasks whose processes run a stand-in, and what it has noted."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = []

    def make(at_once=2, deaths=2):
        runs = tmp_path / "runs"
        (tmp_path / "stand_in.py").write_text(STAND_IN.format(runs=str(runs), deaths=deaths))
        made.append(LocalTasks(at_once, entry="stand_in"))
        return made[-1], lambda: runs.read_text().splitlines() if runs.exists() else []

    yield make
    for each in made:
        each.close()


def order(topic, partition=0):
    cluster = ClusterPlan("east", ("127.0.0.1:1",))
    return CopyOrder(
        topology="t", link="l", source=cluster, target=cluster, settings=SETTINGS,
        work=PartitionWork(topic, partition, topic, "id"), lane=0, run="job.1", start=0, end=10,
    )  # fmt: skip


def test_orders_and_answers_are_the_same_on_the_other_side():
    sent = order("t", 3)
    assert decode_order(encode(sent)) == sent
    for answer in (
        CopyResult("t", 3, 0, 2**60, 7, 8, "crc32c:1", 0, 0.1, "GAP", "é", ("1-2",)),
        TaskFailure("refused"),
    ):
        assert decode_answer(encode(answer)) == answer
    with pytest.raises(ValueError, match="JSON"):
        decode_answer(encode(TaskFailure("cut"))[:5])


def test_all_ranges_are_copied_by_as_many_processes_as_asked(tasks):
    local, runs = tasks(at_once=2)
    results = local.copy([order("t", number) for number in range(6)])
    assert [result.partition for result in results] == list(range(6))
    assert len(runs()) == 6
    assert len({line.split()[2] for line in runs()}) <= 2
    assert local.master == "processes[2]"


def test_a_range_goes_on_in_another_process_when_one_dies(tasks):
    local, runs = tasks(at_once=1, deaths=3)
    (first, second) = local.copy([order("dies"), order("t")])
    assert (first.topic, second.topic) == ("dies", "t")
    assert [line.split()[0] for line in runs()] == ["dies", "dies", "dies", "t"]


def test_a_process_that_dies_again_and_again_ends_the_copy_with_its_last_words(tasks):
    local, runs = tasks(at_once=2, deaths=100)
    with pytest.raises(TaskProcessDiedError) as raised:
        local.copy([order("hangs"), order("dies", 3)])
    assert "dies/3: the process that copied it ended with 9: out of memory." in (
        raised.value.paragraph()
    )
    assert len([line for line in runs() if line.startswith("dies")]) == 4


def test_a_refusal_ends_the_copy_at_once(tasks):
    local, runs = tasks(at_once=1)
    with pytest.raises(RefusedError, match="no longer ours"):
        local.copy([order("refused"), order("t")])
    assert len(runs()) == 1


@pytest.mark.parametrize(
    ("topic", "code", "attempts"),
    [("unauthorized", "NOT_AUTHORIZED", 1), ("stands", "UNREACHABLE", 1), ("fenced", "FENCED", 4)],
)
def test_what_a_range_has_waited_for_is_not_waited_for_again(tasks, topic, code, attempts):
    local, runs = tasks(at_once=1)
    with pytest.raises(ReplicatorError) as raised:
        local.copy([order(topic), order("t")])
    assert raised.value.code == code
    assert len(runs()) == attempts


def test_closing_ends_processes_in_the_middle_of_a_range(tasks):
    local, runs = tasks(at_once=1)
    ended = []

    def copy():
        with pytest.raises(TaskProcessDiedError, match="ended before it was done"):
            local.copy([order("hangs")])
        ended.append(True)

    copying = threading.Thread(target=copy, daemon=True)
    copying.start()
    wait_until(runs, timeout_seconds=30, describe="a process at work")
    local.close()
    copying.join(20)
    assert ended


def test_spark_is_used_where_a_master_or_a_setting_is_named(monkeypatch, tmp_path):
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert not asks_for_spark(SparkSettings())
    assert asks_for_spark(SparkSettings(master="local[2]"))
    assert asks_for_spark(SparkSettings(conf=(("spark.x", "1"),)))
    (tmp_path / "spark-defaults.conf").write_text("spark.executor.memory 2g\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not asks_for_spark(SparkSettings())
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    assert asks_for_spark(SparkSettings())
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert asks_for_spark(SparkSettings())


def test_cores_are_those_of_the_process_and_its_container():
    assert usable_cores() >= 1


WITHOUT_EXTRA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "pyarrow", "pandas", "numpy"}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import replicator.cli.spark.bulk_sync
import replicator.spark.bulk.run
import replicator.spark.bulk.target_logs
import replicator.spark.copy.task_process
import replicator.spark.copy.tasks
"""


def test_bulk_sync_in_processes_needs_no_package_of_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
