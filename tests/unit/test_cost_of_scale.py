"""What grows with the number of topics, and what does not: counted, or timed with ample room."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from replicator.control.reconcile.cluster_view import TopicFacts
from replicator.control.reconcile.decide import Reconciler
from replicator.control.reconcile.topic_selection import TopicSelector

FEW, MANY = 200, 2_000
MOST_TIMES_SLOWER = 50
"""Ten times as many topics may take ten times as long; a step that compares all with all takes a
hundred times as long."""

_SPEC = importlib.util.spec_from_file_location(
    "scale", Path(__file__).parents[1] / "bench" / "scale.py"
)
scale = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(scale)


@pytest.mark.parametrize("topics", [FEW, MANY])
def test_a_round_takes_as_many_decisions_as_topics_changed(topics):
    scene = scale.scene(topics)
    seen = scene.snapshot
    reconciler = Reconciler(TopicSelector(scene.pair, seen.aliases))
    assert reconciler.decide(seen).actions == ()
    assert reconciler.taken == topics
    recreated = dict.fromkeys(scene.names[:3], TopicFacts("b", 4, 1, scale.SETTINGS))
    changed = replace(seen, source=seen.source.described(recreated))
    assert len(reconciler.decide(changed).actions) == 3
    assert reconciler.taken == topics + 3
    pause = scale.Pause(flow="east->west", topic=scene.names[9], at_ms=1, by="test")
    paused = seen.control.fold([pause.encode()])
    reconciler.decide(replace(changed, control=paused))
    assert reconciler.taken == topics + 6  # those whose record is not written yet, again
    written = paused.fold([action.record.encode() for action in reconciler.decide(changed).actions])
    assert reconciler.decide(replace(changed, control=written)).actions == ()
    taken = reconciler.taken
    reconciler.decide(replace(changed, control=written, at_ms=seen.at_ms + 5_000))
    assert reconciler.taken == taken


def test_no_step_compares_all_topics_with_all():
    few, many = scale.measured(scale.scene(FEW)), scale.measured(scale.scene(MANY))
    slower = {
        step: many[step] / few[step]
        for step in many
        if many[step] > 5.0  # what takes less than 5 ms is no matter, and hard to time
    }
    assert {step: times for step, times in slower.items() if times > MOST_TIMES_SLOWER} == {}
