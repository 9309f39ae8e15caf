"""Open transactions at the source: what waits behind them is lag, and their holder is named."""

import asyncio

import pytest
from confluent_kafka import Producer

from replicator.control.records.pair_records import TopicRecord
from replicator.control.store.state import EMPTY
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.open_transactions import ALARM_SECONDS, OpenTransactionsTask
from replicator.observability.snapshot import TaskMetrics
from replicator.policy.values import LinkPolicy, Selection
from replicator.testing import ManualClock, wait_until
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan
from replicator.wire.requests.log_ends import LogEnds
from replicator.wire.requests.open_transactions import oldest_by_partition, open_transactions


@pytest.fixture
def held(east, unique):
    """A topic with two records that can be read and three behind an open transaction."""
    east.create_topic(unique, partitions=2)
    settings = {**east.client_settings(), "linger.ms": 0}
    plain = Producer(settings)
    plain.produce(unique, b"1", partition=0)
    plain.produce(unique, b"2", partition=0)
    assert plain.flush(30) == 0
    writer = Producer(
        {**settings, "transactional.id": f"billing-{unique}", "transaction.timeout.ms": 300_000}
    )
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(unique, b"open", partition=0)
    assert writer.flush(30) == 0
    plain.produce(unique, b"3", partition=0)
    plain.produce(unique, b"4", partition=0)
    assert plain.flush(30) == 0
    yield unique, writer
    if writer is not None:
        writer.abort_transaction(30)


def test_the_holder_of_an_open_transaction_is_named_with_its_beginning(east, held):
    topic, _ = held
    cluster = ClusterPlan("east", tuple(east.bootstrap_servers))
    keys = [(topic, 0), (topic, 1)]
    ends = LogEnds(cluster, client_id="test")
    stable = LogEnds(cluster, client_id="test", isolation="read_committed")
    assert ends.read(keys) == {(topic, 0): 5, (topic, 1): 0}
    assert stable.read(keys) == {(topic, 0): 2, (topic, 1): 0}
    for each in (ends, stable):
        each.close()

    found = oldest_by_partition(open_transactions(cluster, keys, client_id="test"))
    assert found.keys() == {(topic, 0)}
    one = found[topic, 0]
    assert (one.offset, one.transactional_id) == (2, f"billing-{topic}")
    assert one.since_ms > 0
    assert open_transactions(cluster, [], client_id="test") == ()


def test_the_controller_counts_what_waits_and_names_what_is_open_too_long(east, west, held):
    topic, _ = held
    flow = FlowPlan("link", "east", "west", LinkPolicy(Selection(("*",)), Selection()), ("west",))
    clusters = tuple(ClusterPlan(each.name, tuple(each.bootstrap_servers)) for each in (east, west))
    link = LinkPlan("link", "active-passive", ("east", "west"), "east", None, (flow,))
    plan = Plan("lab", clusters, (link,), "hash")
    record = TopicRecord(
        source="east", link="link", topic=topic, target=topic, topic_id="a", partitions=2,
        target_partitions=2, state="active", activated=True,
    )  # fmt: skip
    control = EMPTY.fold([record.encode()])
    (known,) = open_transactions(clusters[0], [(topic, 0)], client_id="test")
    clock = ManualClock(now=known.since_ms / 1000 + 10)
    context = TaskContext(
        plan=plan, pair=plan.pairs[0], clock=clock, client_id="test", store=None,
        control=lambda: control, figures={"link": TaskMetrics()},
    )  # fmt: skip
    task = OpenTransactionsTask(context)

    def run():
        return asyncio.run(task.run())

    assert run() == ()
    assert context.figures["link"].open_transactions.records == 0, "one look may be bad luck"
    assert run() == ()
    figures = context.figures["link"].open_transactions
    assert (figures.records, round(figures.seconds)) == (3, 10)
    clock.advance(ALARM_SECONDS)
    (problem,) = run()
    assert (problem.code, problem.subject) == ("SOURCE_TRANSACTION_OPEN", f"{topic}/0")
    assert f"transactional id 'billing-{topic}'" in problem.detail
    assert problem.remedy

    held[1].abort_transaction(30)
    wait_until(lambda: run() == (), timeout_seconds=30, describe="the problem to end")
    assert context.figures["link"].open_transactions.records == 0
    held[1].begin_transaction()
    task.close()
