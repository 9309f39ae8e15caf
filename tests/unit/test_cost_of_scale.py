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


class Counted(dict):
    """Facts of topics, and which of them were asked for."""

    def __init__(self, facts):
        super().__init__(facts)
        self.asked = set()

    def get(self, name):
        self.asked.add(name)
        return super().get(name)

    def since(self):
        """Those that were asked for since the last call."""
        asked, self.asked = self.asked, set()
        return asked


@pytest.mark.parametrize("topics", [FEW, MANY])
def test_a_round_takes_as_many_decisions_as_topics_changed(topics):
    scene = scale.scene(topics)
    facts = Counted(scene.snapshot.target.topics)
    seen = replace(scene.snapshot, target=replace(scene.snapshot.target, topics=facts))
    reconciler = Reconciler(TopicSelector(scene.pair, seen.aliases))
    assert reconciler.decide(seen).actions == ()
    assert facts.since() == set(scene.names)

    changed = set(scene.names[:3])
    recreated = dict.fromkeys(changed, TopicFacts("b", 4, 1, scale.SETTINGS))
    seen = replace(seen, source=seen.source.described(recreated))
    writes = [action.record.encode() for action in reconciler.decide(seen).actions]
    assert (len(writes), facts.since()) == (3, changed)

    pause = scale.Pause(flow="east->west", topic=scene.names[9], at_ms=1, by="test")
    seen = replace(seen, control=seen.control.fold([pause.encode()]))
    reconciler.decide(seen)
    assert facts.since() == changed  # their records are not written yet

    seen = replace(seen, control=seen.control.fold(writes))
    assert reconciler.decide(seen).actions == ()
    assert facts.since() == changed
    reconciler.decide(replace(seen, at_ms=seen.at_ms + 5_000))
    assert facts.since() == set()


def test_no_step_compares_all_topics_with_all():
    few, many = scale.measured(scale.scene(FEW)), scale.measured(scale.scene(MANY))
    slower = {
        step: many[step] / few[step]
        for step in many
        if many[step] > 5.0  # what takes less than 5 ms is no matter, and hard to time
    }
    assert {step: times for step, times in slower.items() if times > MOST_TIMES_SLOWER} == {}
