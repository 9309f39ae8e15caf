"""Partitions that a stream of Spark holds: which it should have, and when workers take them back."""

from collections.abc import Iterable

from replicator.control.records.pair_records import BackfillRecord
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import fresh_workers
from replicator.identifiers import is_canary_topic, is_stream
from replicator.topology.plan import FlowPlan, PairPlan


def copied_by_streams(control: ControlState, source: str) -> tuple[BackfillRecord, ...]:
    """Every partition of a source that some stream has."""
    return tuple(
        record
        for record in control.seeds(source)
        if record.purpose == "stream" and record.state != "done"
    )


def partitions_to_take(
    flows: Iterable[FlowPlan], control: ControlState, *, run: str, by: str, at_ms: int
) -> tuple[BackfillRecord, ...]:
    """Declarations of partitions that flows run by Spark have and this run does not hold yet."""
    found: list[BackfillRecord] = []
    for flow in flows:
        if flow.policy.runtime != "spark":
            continue
        for record in control.topics(flow.source, flow.link):
            if is_canary_topic(record.topic):
                continue
            for number in range(record.working_partitions):
                held = control.seed(flow.source, flow.link, record.topic, number)
                if held is not None and held.run == run and held.state == "seeding":
                    continue
                found.append(
                    BackfillRecord(
                        source=str(flow.source),
                        link=str(flow.link),
                        topic=record.topic,
                        partition=number,
                        state="seeding",
                        purpose="stream",
                        run=run,
                        at_ms=at_ms,
                        by=by,
                    )
                )
    return tuple(found)


def partitions_left_behind(
    pair: PairPlan, control: ControlState, *, now_ms: int
) -> tuple[BackfillRecord, ...]:
    """What a stream that is gone still holds of flows that workers are to run again."""
    source = pair.source.alias
    held = copied_by_streams(control, source)
    if not held:
        return ()
    workers = {str(flow.link) for flow in pair.flows if flow.policy.runtime == "workers"}
    alive = {
        rate.link
        for worker in fresh_workers(control, source, now_ms=now_ms)
        if is_stream(worker.id)
        for rate in worker.flows
    }
    return tuple(record for record in held if record.link in workers and record.link not in alive)
