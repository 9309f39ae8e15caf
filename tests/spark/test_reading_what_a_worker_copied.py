"""verify and audit over copies that a real worker made: transactions, filters, every odd record."""

import pytest
from acceptance_worker import WorkerProcess
from confluent_kafka import Producer
from copied_pair import NOW_MS, plain, write
from whole_topic import engine_of_newest

from replicator.clock import SystemClock
from replicator.control.status.collect import collect_status
from replicator.spark.audit.run import Auditor, AuditRequest
from replicator.spark.verify.run import VerifyRequest, verify_flow
from replicator.testing import wait_until


@pytest.fixture
def worker(tmp_path):
    started = []

    def start(file):
        started.append(
            WorkerProcess(file, log=tmp_path / "worker.log", options=("--processes", "1"))
        )
        return started[-1]

    yield start
    for each in started:
        each.end()


def transactions(cluster, topic, name):
    """Committed and aborted ones, one after the other."""
    producer = Producer({**cluster.client_settings(), "transactional.id": name})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for each in range(40):
            producer.produce(topic, b"%d-%d" % (number, each), b"k", 0)
        producer.flush(30)
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def all_copied(plan):
    (flow,) = collect_status(plan)["flows"]
    partitions = [each for topic in flow["topics"] for each in topic["partitions"]]
    return bool(partitions) and all(
        each["position"] is not None and each["lagRecords"] == 0 for each in partitions
    )


@pytest.mark.parametrize("provenance", ["full", pytest.param("path", marks=pytest.mark.slow)])
def test_what_a_worker_copied_is_clean(spark, pair, worker, provenance):
    pair = pair(provenance=provenance, filters=[{"dropIf": {"tombstone": True}}], naming="prefix")
    pair.apply(partitions=2)
    odd = [
        (None, b"", NOW_MS, None), (b"", b"x", NOW_MS, [("a", None), ("a", b"")]),
        (b"gone", None, NOW_MS, None), (b"big", b"x" * 300_000, NOW_MS, None),
        (b"far", b"x", NOW_MS, [("replicator-hops", b"north/x/0/7"), ("z", b"1")]),
        (b"foreign", b"x", NOW_MS, [("replicator-hops", b"!")]),
    ]  # fmt: skip
    for partition in range(2):
        came = f"west/{pair.topic}/{partition}/7".encode()
        loop = (b"loop", b"x", NOW_MS, [("replicator-hops", came)])
        write(pair.east, pair.topic, [*plain(500), *odd, loop, *plain(300)], partition)
    transactions(pair.east, pair.topic, pair.name)
    running = worker(pair.file)
    wait_until(
        lambda: all_copied(pair.plan),
        timeout_seconds=120,
        describe=lambda: f"everything copied\n{running.log_tail()}",
    )
    result = verify_flow(spark, pair.plan, VerifyRequest("east->west"))
    assert result["clean"], result
    assert result["total"]["excused"] == {"filtered": 2, "loop": 2}
    assert result["total"]["compared"] == 2 * (800 + len(odd) - 1) + 160
    auditor = Auditor(spark, pair.plan, AuditRequest("east->west"), clock=SystemClock())
    books = auditor.round()
    auditor.close()
    assert books["complete"], books
    assert sum(each["found"] for each in books["topics"]) == result["total"]["compared"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_both_engines_copied_in_turns_is_clean_and_the_books_add_up(spark, pair, worker):
    pair = pair(engine="auto", discoveryInterval="1s")
    pair.apply(partitions=2)
    running = worker(pair.file)
    count = 0

    def written(records):
        nonlocal count
        for partition in range(2):
            write(pair.east, pair.topic, records, partition)
        count += 2 * len(records)
        wait_until(
            lambda: all_copied(pair.plan), timeout_seconds=60,
            describe=lambda: f"everything copied\n{running.log_tail()}",
        )  # fmt: skip

    def copied_by(engine):
        written(plain(1))
        return engine_of_newest(pair.west, pair.topic) == engine

    for engine, delivery in (("batches", "exactly-once"), ("records", "at-least-once")) * 2:
        pair.write_file(engine="auto", discoveryInterval="1s", delivery=delivery)
        wait_until(
            lambda engine=engine: copied_by(engine), timeout_seconds=60,
            describe=lambda engine=engine: f"{engine}\n{running.log_tail()}",
        )  # fmt: skip
        written(plain(200))
        result = verify_flow(spark, pair.plan, VerifyRequest("east->west"))
        assert (result["clean"], result["total"]["compared"]) == (True, count), (engine, result)
        auditor = Auditor(spark, pair.plan, AuditRequest("east->west"), clock=SystemClock())
        books = auditor.round()
        auditor.close()
        assert books["complete"], (engine, books)
        assert sum(each["found"] for each in books["topics"]) == count, engine
