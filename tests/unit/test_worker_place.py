"""Where a worker should stand, and how `check --wan` says it."""

import json

import pytest
from topology_files import active_passive, plan_of

from replicator.cli.file.check_wan import lines_result, lines_text
from replicator.errors import UnreachableError
from replicator.policy.worker_place import Line, place_of_worker
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
        plan, {source: near, target: LineMeasured("b:2", 0.1, 0.01, 2e6)}, bbr=True
    )
    assert result["ok"]
    assert result["flows"][0]["advice"] == "stay"
    assert result["clusters"][1]["roundTripMs"] == 100
    assert json.loads(json.dumps(result)) == result
    assert "round trip 100 ms  loss 1.00% of what we send  2.0 MB/s" in lines_text(result)
    silent = UnreachableError("nobody answers", subject=f"cluster:{target}", remedy="Look.")
    result = lines_result(plan, {source: near, target: silent}, bbr=True)
    assert (result["ok"], result["flows"]) == (False, [])
    assert "nobody answers. Look." in lines_text(result)
