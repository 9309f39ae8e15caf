"""Somebody writes on the passive side: the alarm names both positions, and goes on while it does."""

from replicator.testing import Recorder, Writer, wait_until

FLOW = "east->west"


def alarms(scene):
    found = scene.asked().status().get(FLOW, {"problems": []})["problems"]
    return [each for each in found if each["code"] == "SPLIT_BRAIN"]


def test_a_write_on_the_passive_side_raises_an_alarm_with_both_positions(east, west, scene):
    scene.active_passive(east, west)
    scene.worker()
    scene.writer(east, rate=200)
    scene.copying(FLOW)
    assert alarms(scene) == []  # copies are none
    # What it writes is no case for the history: nobody promised anything for it.
    intruder = Writer(west, [scene.topic], history=Recorder(), rate_per_second=50.0).start()
    try:
        alarm, *_ = wait_until(
            lambda: alarms(scene), timeout_seconds=60.0, describe="a SPLIT_BRAIN on the flow"
        )
    finally:
        intruder.stop()
    assert alarm["subject"] == "link-0"
    assert f"{scene.topic}/" in alarm["detail"]
    assert "on west has a record at" in alarm["detail"]
    assert "while east is active (its log ends at " in alarm["detail"]
    assert "Find who writes on west" in alarm["remedy"]
