"""Where a worker should stand, and how `check --wan` says it."""

import json

import pytest
from topology_files import active_passive, plan_of

from replicator.cli.file.check_wan import lines_result, lines_text
from replicator.errors import UnreachableError
from replicator.policy.capacity.line_buffers import BrokerBuffers, buffers_advice, buffers_of
from replicator.policy.capacity.worker_place import Line, place_of_worker
from replicator.wire.probes.line_probe import LineMeasured

NEAR, FAR, LOSSY = Line(0.0004, 0.0), Line(0.1, 0.0), Line(0.1, 0.01)


@pytest.mark.parametrize(
    ("source", "target", "advice"),
    [
        (NEAR, NEAR, "stay"),
        (Line(0.0004, 0.01), NEAR, "stay"),
        (FAR, NEAR, "stay"),
        (NEAR, FAR, "near-target"),
        (FAR, FAR, "near-target"),
        (LOSSY, NEAR, "near-source"),
        (NEAR, LOSSY, "stay"),
        (LOSSY, LOSSY, "near-source"),
    ],
)
@pytest.mark.parametrize("bbr", [True, False])
def test_the_place_follows_from_both_lines(source, target, advice, bbr):
    place = place_of_worker(source, target, bbr=bbr)
    assert place.advice == advice
    assert ("modprobe" in place.reason) == (not bbr and "loses" in place.reason)


def test_the_result_names_clusters_flows_and_those_that_did_not_answer():
    plan = plan_of(active_passive(["orders"]))
    source, target = plan.flows[0].source, plan.flows[0].target
    near = LineMeasured("a:1", 0.0004, 0.0, 5e8)
    result = lines_result(
        plan,
        {source: near, target: LineMeasured("b:2", 0.1, 0.01, 2e6)},
        {source: BrokerBuffers(102400, 102400), target: BrokerBuffers(102400, -1)},
        bbr=True,
    )
    assert result["ok"]
    assert result["flows"][0]["advice"] == "stay"
    assert result["clusters"][1]["roundTripMs"] == 100
    assert json.loads(json.dumps(result)) == result
    assert result["clusters"][0]["advice"] == []
    assert result["clusters"][1]["socketBuffers"] == {"sendBytes": 102400, "receiveBytes": -1}
    told = lines_text(result)
    assert "socket.send.buffer.bytes of 102400 bounds what is read to about 1.0 MB/s" in told
    assert "set it to -1" in told
    assert "socket.receive.buffer.bytes" not in told
    assert "round trip 100 ms  loss 1.00% of what we send  2.0 MB/s" in lines_text(result)
    silent = UnreachableError("nobody answers", subject=f"cluster:{target}", remedy="Look.")
    result = lines_result(plan, {source: near, target: silent}, {}, bbr=True)
    assert (result["ok"], result["flows"]) == (False, [])
    assert "nobody answers. Look." in lines_text(result)


def test_buffers_are_named_where_they_bound_a_long_line():
    far = LineMeasured("b:2", 0.1, 0.0, 2e6)
    assert buffers_advice(BrokerBuffers(102400, 102400), 0.004) == []
    assert len(buffers_advice(BrokerBuffers(102400, 102400), 0.1)) == 2
    assert buffers_advice(BrokerBuffers(6_000_000, -1), 0.1) == []
    plan = plan_of(active_passive(["orders"]))
    source, target = plan.flows[0].source, plan.flows[0].target
    result = lines_result(plan, {source: far, target: far}, {source: None}, bbr=False)
    for each in result["clusters"]:
        assert each["socketBuffers"] is None
        assert "could not be read" in each["advice"][0]


def test_buffers_are_read_from_what_a_broker_shows_of_its_settings():
    shown = {"socket.send.buffer.bytes": "102400", "socket.receive.buffer.bytes": "-1", "x": None}
    assert buffers_of(shown) == BrokerBuffers(102400, -1)
    assert buffers_of({**shown, "socket.send.buffer.bytes": None}) is None
    assert buffers_of({}) is None
