"""What status says, from facts alone."""

from dataclasses import replace

import pytest

from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Block,
    Layout,
    Lost,
    OppositeTopologies,
    Pause,
    ProblemRecord,
    QuarantineOutcome,
    TopicRecord,
)
from replicator.control.records.problem_part import ProblemPart
from replicator.control.records.worker_records import FlowRates, MemoryPart, WorkerRecord
from replicator.control.status.facts import GroupMember, PairFacts
from replicator.control.status.report import flow_report, status_report
from replicator.control.store.state import EMPTY
from replicator.errors import TransientBrokerError
from replicator.formats.checkpoint import Checkpoint, TargetLoss
from replicator.policy.values import LinkPolicy, Selection
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan
from replicator.wire.requests.open_transactions import OpenTransaction

NOW = 1_700_000_000_000
FLOW = FlowPlan("orders-dr", "east", "west", LinkPolicy(Selection(("*",)), Selection()), ("west",))
PLAN = Plan(
    "retail",
    (ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",))),
    (LinkPlan("orders-dr", "active-passive", ("east", "west"), "east", None, (FLOW,)),),
    "hash",
)
BLOCK = Block(link="orders-dr", first=0, count=2)
LAYOUT = Layout(source="east", epoch=1, state="stable", blocks=(BLOCK,), total=2)
TOPIC = TopicRecord(
    source="east", link="orders-dr", topic="orders", target="orders", topic_id="a", partitions=2,
    target_partitions=2, state="active", activated=True,
)  # fmt: skip
WORKER = WorkerRecord(
    source="east", id="w-1", at_ms=NOW - 2000, lanes=(0, 1),
    flows=(FlowRates(link="orders-dr", records_per_second=10.04, bytes_per_second=99.0),),
)  # fmt: skip


def facts(*records, checkpoints=None, **fields):
    state = EMPTY.fold([record.encode() for record in (LAYOUT, TOPIC, WORKER, *records)])
    stored = {0: {}, 1: {}} if checkpoints is None else checkpoints
    return PairFacts(
        **{
            "now_ms": NOW,
            "control": state,
            "checkpoints": {
                ("orders", number): Checkpoint("orders", number, **{"offset": 90, **values})
                for number, values in stored.items()
            },
            "source_starts": {("orders", 0): 0, ("orders", 1): 0},
            "source_ends": {("orders", 0): 100, ("orders", 1): 90},
            "target_ends": {("orders", 0): 95, ("orders", 1): 95},
            "oldest_waiting_ms": {("orders", 0): NOW - 1500},
            "members": (GroupMember("w-1", (0, 1)),),
            **fields,
        }
    )


def report(*records, **fields):
    return flow_report(PLAN.pairs[0], FLOW, facts(*records, **fields))


def codes(flow):
    return [problem["code"] for problem in flow["problems"]]


def test_status_names_the_engine_of_each_flow_and_what_keeps_whole_batches_away():
    policy = replace(FLOW.policy, engine="records", engine_reason="filters")
    link = replace(PLAN.links[0], flows=(replace(FLOW, policy=policy),))
    plan = replace(PLAN, links=(link,))
    (flow,) = status_report(plan, {"east->west": facts()}, now_ms=NOW)["flows"]
    assert (flow["engine"], flow["engineReason"]) == ("records", "filters")


def test_status_says_that_whole_batches_wait_for_workers_of_an_older_release_to_go():
    policy = replace(FLOW.policy, engine="batches", engine_reason="auto", provenance="path")
    link = replace(PLAN.links[0], flows=(replace(FLOW, policy=policy),))
    plan = replace(PLAN, links=(link,))
    newer = WORKER.model_copy(update={"tells_batches": True})
    for worker, shown in ((WORKER, ("records", "older-workers")), (newer, ("batches", ""))):
        (flow,) = status_report(plan, {"east->west": facts(worker)}, now_ms=NOW)["flows"]
        assert (flow["engine"], flow["engineReason"]) == shown


@pytest.mark.parametrize("reason", ["new-id", "no-clients", "refused-record"])
def test_status_says_that_a_lane_copies_record_by_record_though_whole_batches_are_ordered(reason):
    policy = replace(FLOW.policy, engine="batches", provenance="path")
    rates = FlowRates(link=FLOW.link, records_reason=reason)
    lagging = WORKER.model_copy(update={"tells_batches": True, "flows": (rates,)})
    for engine, shown in (("batches", ("records", reason)), ("records", ("records", "asked"))):
        link = replace(PLAN.links[0], flows=(replace(FLOW, policy=replace(policy, engine=engine)),))
        plan = replace(PLAN, links=(link,))
        (flow,) = status_report(plan, {"east->west": facts(lagging)}, now_ms=NOW)["flows"]
        assert (flow["engine"], flow["engineReason"]) == shown


def test_status_says_that_whole_batches_wait_for_another_topology_to_know_of_this_one():
    policy = replace(FLOW.policy, engine="batches", engine_reason="auto", provenance="path")
    link = replace(PLAN.links[0], flows=(replace(FLOW, policy=policy),))
    plan = replace(PLAN, links=(link,))
    newer = WORKER.model_copy(update={"tells_batches": True})
    met = OppositeTopologies(source="east", topologies=("back",), unaware=("back",), at_ms=NOW)
    (flow,) = status_report(plan, {"east->west": facts(newer, met)}, now_ms=NOW)["flows"]
    assert (flow["engine"], flow["engineReason"]) == ("records", "other-topology")


def test_a_healthy_flow_shows_lag_rates_and_its_workers():
    flow = report()
    assert (flow["state"], flow["reason"]) == ("replicating", "2 of 2 partitions moving")
    assert (flow["lagRecords"], flow["lagSeconds"]) == (10, 1.5)
    assert (flow["recordsPerSecond"], flow["bytesPerSecond"]) == (10.0, 99.0)
    assert flow["workers"] == [{"id": "w-1", "lanes": [0, 1], "memory": None}]
    assert flow["problems"] == []
    assert flow["topics"][0]["partitions"][1] == {
        "partition": 1, "state": "replicating", "sourceStart": 0, "sourceEnd": 90, "position": 90,
        "targetEnd": 95, "lagRecords": 0, "lagSeconds": 0.0, "openTransaction": None,
    }  # fmt: skip


def test_the_whole_object_has_the_fields_of_the_contract():
    whole = status_report(PLAN, {"east->west": facts()}, now_ms=NOW)
    assert list(whole) == ["topology", "planHash", "at", "flows", "links"]
    assert whole["at"] == "2023-11-14T22:13:20Z"
    assert whole["links"][0]["active"] == "east"
    assert status_report(PLAN, {}, now_ms=NOW, flow="west->east")["flows"] == []


def test_a_missing_worker_is_reported_and_stops_only_its_lanes():
    none = report(members=())
    assert (none["state"], none["reason"]) == ("stopped", "no worker runs it")
    assert codes(none) == ["WORKER_MISSING"]
    owned = lane_in(BLOCK, "orders", 0)
    half = report(members=(GroupMember("w-1", (owned,)),))
    assert half["state"] == "replicating"
    assert half["reason"] == "1 of 2 partitions moving, 1 waiting"
    assert codes(half) == ["WORKER_MISSING"]


def test_a_worker_says_what_it_and_each_of_its_lanes_may_hold():
    part = MemoryPart(limit_bytes=10**9, records_bytes=500_000, lane_bytes=250_000)
    (worker,) = report(WORKER.model_copy(update={"memory": part}))["workers"]
    assert worker["memory"] == {
        "limitBytes": 10**9, "recordsBytes": 500_000, "laneBytes": 250_000,
    }  # fmt: skip
    free = MemoryPart(records_bytes=500_000, lane_bytes=250_000)
    (worker,) = report(WORKER.model_copy(update={"memory": free}))["workers"]
    assert worker["memory"]["limitBytes"] is None


def test_a_member_without_a_record_is_shown_by_its_name_in_the_group():
    old = WORKER.model_copy(update={"at_ms": NOW - 60_000})
    flow = report(old, members=(GroupMember("someone", (1, 0)),))
    assert flow["workers"] == [{"id": "someone", "lanes": [0, 1], "memory": None}]
    assert flow["recordsPerSecond"] == 0.0


def test_a_stopped_partition_says_why_until_its_gap_is_accepted():
    stopped = {0: {"problem": "TRUNCATED", "detail": "offsets 3 to 9 vanished"}, 1: {}}
    flow = report(checkpoints=stopped)
    assert flow["reason"] == "1 of 2 partitions moving, 1 stopped"
    assert flow["problems"][0]["subject"] == "orders/0"
    assert "--accept-gap" in flow["problems"][0]["remedy"]
    gap = AcceptedGap(source="east", topic="orders", partition=0, token="t", at_ms=NOW, by="me")
    assert codes(report(gap, checkpoints=stopped)) == []
    both = {0: stopped[0], 1: stopped[0]}
    assert report(checkpoints=both)["state"] == "stopped"


def test_what_the_source_cannot_give_out_says_how_to_give_it_up():
    part = ProblemPart(code="SOURCE_DAMAGED", subject="orders/1", detail="no", remedy="Mend it.")
    rates = FlowRates(link="orders-dr", problems=(part,))
    flow = report(WORKER.model_copy(update={"flows": (rates,)}))
    (problem,) = flow["problems"]
    assert problem["remedy"].startswith("Mend it. If no replica has them whole")
    assert problem["remedy"].endswith(
        "replicator resume --flow 'east->west' --topic orders --partition 1 --accept-gap"
    )


def test_accepting_damaged_records_does_not_hide_a_stop():
    stopped = {0: {"problem": "TRUNCATED", "detail": "offsets 3 to 9 vanished"}, 1: {}}
    gap = AcceptedGap(
        source="east", topic="orders", partition=0, token="t", at_ms=NOW, by="me",
        problem="SOURCE_DAMAGED", lost=Lost(from_offset=3, to_offset=9),
    )  # fmt: skip
    assert codes(report(gap, checkpoints=stopped)) == ["TRUNCATED"]


def test_a_copy_without_positions_that_lost_records_says_how_to_get_them_again():
    stopped = {"problem": "TARGET_REGRESSED", "detail": "the target log ends at 3"}
    (problem,) = report(checkpoints={0: stopped, 1: {}})["problems"]
    assert "Delete 'orders' on west and create it again, empty" in problem["remedy"]
    assert "--partition 0 --accept-gap" in problem["remedy"]


def test_what_the_target_lost_is_reported_for_a_day_after_it_was_copied_again():
    def after(seconds):
        loss = TargetLoss(1, NOW - seconds * 1000, "source offsets 3 to 9 are copied again")
        return report(checkpoints={0: {"target_loss": loss}, 1: {}})["problems"]

    assert [(one["code"], one["subject"]) for one in after(3600)] == [
        ("TARGET_REGRESSED", "orders/0")
    ]
    assert after(25 * 3600) == []


@pytest.mark.parametrize(
    ("pause", "state", "states"),
    [
        ({}, "paused", {"paused"}),
        ({"link": "orders-dr"}, "paused", {"paused"}),
        ({"topic": "orders"}, "paused", {"paused"}),
        ({"topic": "orders", "partition": 1}, "replicating", {"replicating", "paused"}),
        ({"topic": "bills"}, "replicating", {"replicating"}),
    ],
)
def test_pauses_show_on_flow_and_partition(pause, state, states):
    flow = report(Pause(flow="east->west", at_ms=1, by="me", **pause))
    assert flow["state"] == state
    assert {part["state"] for part in flow["topics"][0]["partitions"]} == states


def test_a_silent_cluster_fails_the_flow_with_its_reason():
    silent = Problem("UNREACHABLE", "cluster:east", "no broker answers", "Check it.")
    flow = report(source_problem=silent, source_ends={}, source_starts={})
    assert (flow["state"], flow["reason"]) == ("failed", "east: no broker answers")
    assert flow["topics"][0]["partitions"][0]["position"] == 90
    assert flow["topics"][0]["partitions"][0]["lagRecords"] is None
    target = Problem("AUTHENTICATION_FAILED", "cluster:west", "wrong password", "Correct it.")
    flow = flow_report(PLAN.pairs[0], FLOW, PairFacts(NOW, applied=False, target_problem=target))
    assert (flow["state"], codes(flow)) == ("failed", ["AUTHENTICATION_FAILED"])


def test_what_the_controller_said_of_the_source_ends_when_the_source_answers():
    part = ProblemPart(code="UNREACHABLE", subject="cluster:east", detail="silent", remedy="")
    other = ProblemPart(code="TARGET_REFUSES", subject="bills", detail="no", remedy="")
    said = ProblemRecord(source="east", link="orders-dr", problems=(part, other), at_ms=NOW)
    assert codes(report(said)) == ["TARGET_REFUSES"]


def test_retention_that_is_about_to_overtake_the_copy_is_reported_in_time():
    flow = report(
        checkpoints={0: {"offset": 1010}},
        source_starts={("orders", 0): 1000, ("orders", 1): 0},
        source_ends={("orders", 0): 9000, ("orders", 1): 0},
    )
    assert codes(flow) == ["RETENTION_OVERTAKING"]


def test_quarantined_records_are_a_problem_until_they_are_dealt_with():
    kept = {0: {"quarantined": 2}, 1: {}}
    assert codes(report(checkpoints=kept)) == ["QUARANTINED"]
    settled = [
        QuarantineOutcome(
            id=str(number), source="east", topic="orders", partition=0, offset=number,
            outcome="discarded", at_ms=NOW, by="me",
        )
        for number in range(2)
    ]  # fmt: skip
    assert codes(report(*settled, checkpoints=kept)) == []


def test_a_refused_topic_shows_stopped_partitions_and_its_problem():
    part = ProblemPart(
        code="TARGET_FEWER_PARTITIONS", subject="orders", detail="2, not 4", remedy=""
    )
    refused = TOPIC.model_copy(update={"state": "refused", "problems": (part,)})
    flow = report(refused)
    assert {one["state"] for one in flow["topics"][0]["partitions"]} == {"stopped"}
    assert codes(flow) == ["TARGET_FEWER_PARTITIONS"]


def test_lag_in_seconds_is_unknown_rather_than_zero_without_a_figure():
    flow = report(oldest_waiting_ms={})
    assert flow["lagSeconds"] is None


SEED = BackfillRecord(
    source="east", link="orders-dr", topic="orders", partition=0, state="seeding", run="job.1",
    start=0, end=95,
)  # fmt: skip
STREAMED = replace(FLOW, policy=replace(FLOW.policy, runtime="spark"))


@pytest.mark.parametrize("state", ["seeding", "releasing"])
def test_a_flow_whose_history_spark_copies_is_seeding(state):
    told = report(SEED.model_copy(update={"state": state}))
    assert told["state"] == "seeding"
    assert told["reason"] == "Spark copies history of 1 of 2 partitions, 10 records behind"
    assert [each["state"] for each in told["topics"][0]["partitions"]] == ["seeding", "replicating"]


def test_a_flow_is_seeding_while_no_worker_runs():
    assert report(SEED, members=())["state"] == "seeding"


def test_a_partition_that_was_seeded_is_replicating():
    done = SEED.model_copy(update={"state": "done"})
    assert report(done)["state"] == "replicating"


def streamed(*records, **fields):
    return flow_report(PLAN.pairs[0], STREAMED, facts(*records, **fields))


def test_a_flow_that_spark_runs_is_stopped_without_its_stream_and_asks_for_no_worker():
    told = streamed(members=())
    assert (told["state"], told["reason"]) == ("stopped", "no stream of Spark runs it")
    assert "WORKER_MISSING" not in [problem["code"] for problem in told["problems"]]


def test_a_flow_that_spark_runs_is_replicating_while_its_stream_says_so():
    stream = WORKER.model_copy(update={"id": "spark-host-1", "lanes": ()})
    held = [SEED.model_copy(update={"purpose": "stream", "partition": number}) for number in (0, 1)]
    told = streamed(stream, *held, members=())
    assert told["state"] == "replicating"
    assert [each["state"] for each in told["topics"][0]["partitions"]] == ["replicating"] * 2
    late = stream.model_copy(update={"at_ms": NOW - 20_000})
    assert streamed(late, *held, members=())["state"] == "stopped"


def test_status_does_not_call_moving_what_a_worker_cannot_read():
    def told(*numbers):
        parts = tuple(
            ProblemPart(code="NOT_AUTHORIZED", subject=f"orders/{n}", detail="d", remedy="r")
            for n in numbers
        )
        rates = FlowRates(link="orders-dr", problems=parts)
        return report(WORKER.model_copy(update={"flows": (rates,)}))

    flow = told(0)
    assert flow["reason"] == "1 of 2 partitions moving, 1 failed"
    states = [each["state"] for each in flow["topics"][0]["partitions"]]
    assert states == ["failed", "replicating"]
    assert [each["subject"] for each in flow["problems"]] == ["orders/0"]

    flow = told(0, 1)
    assert (flow["state"], flow["reason"]) == ("failed", "0 of 2 partitions moving, 2 failed")


def test_records_behind_an_open_source_transaction_are_lag_and_shown_as_such():
    held = OpenTransaction("orders", 1, 90, 7, NOW - 2000, "billing", since_ms=NOW - 42_000)
    flow = report(
        source_highs={("orders", 0): 100, ("orders", 1): 140},
        open_transactions={("orders", 1): held},
        oldest_waiting_ms={},
    )
    waiting = flow["topics"][0]["partitions"][1]
    assert (waiting["sourceEnd"], waiting["lagRecords"], waiting["lagSeconds"]) == (140, 50, 42.0)
    assert waiting["openTransaction"]["records"] == 50
    assert waiting["openTransaction"]["transactionalId"] == "billing"
    assert flow["lagRecords"] == 60
    assert flow["reason"].startswith(
        "2 of 2 partitions moving, 50 records wait behind an open source"
    )
    assert "since 2023-11-14T22:12:38+00:00, transactional id 'billing', age 42 s" in flow["reason"]
    assert flow["topics"][0]["partitions"][0]["openTransaction"] is None


def test_a_transaction_whose_id_may_not_be_seen_is_named_by_its_producer():
    words = OpenTransaction("orders", 1, 90, 7, NOW).age_words(now_ms=NOW)
    assert "producer id 7, whose transactional id may not be seen, age 0 s" in words


def test_a_partition_whose_end_the_source_does_not_report_is_not_called_moving():
    silent = TransientBrokerError("no leader", remedy="Bring its brokers back.")
    flow = report(source_ends={("orders", 0): 100}, source_errors={("orders", 1): silent})
    assert flow["reason"] == "1 of 2 partitions moving, 1 failed"
    (problem,) = flow["problems"]
    assert (problem["code"], problem["subject"]) == ("UNREACHABLE", "orders/1")
    assert problem["remedy"] == "Bring its brokers back."
    assert flow["lagRecords"] is None


def test_what_is_wrong_with_the_login_of_any_worker_is_a_problem_of_its_flows():
    said = ProblemPart(
        code="TOKEN_NOT_RENEWED", subject="cluster:west", detail="it ends soon", remedy="Look."
    )
    other = WORKER.model_copy(update={"id": "w-2", "logins": (said,)})
    (problem,) = report(other)["problems"]
    assert problem["code"] == "TOKEN_NOT_RENEWED"
    assert problem["subject"] == "cluster:west"
    assert problem["detail"] == "worker w-2: it ends soon"

    lanes = said.model_copy(update={"detail": "lane process 7: it ends soon"})
    rates = FlowRates(link="orders-dr", problems=(lanes,))
    (problem,) = report(WORKER.model_copy(update={"flows": (rates,)}))["problems"]
    assert problem["detail"] == "lane process 7: it ends soon"
    (problem,) = report(other.model_copy(update={"flows": (rates,)}))["problems"]
    assert problem["detail"] == "worker w-2: it ends soon"
