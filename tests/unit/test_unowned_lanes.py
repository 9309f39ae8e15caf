"""Lanes that nobody works on, from layout and worker records."""

from replicator.control.records.pair_records import Block, Layout
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.status.unowned_lanes import unowned_lanes
from replicator.control.store.state import ControlState

NOW_MS = 1_000_000


def state(*workers, layout="stable"):
    blocks = (Block(link="orders", first=0, count=4), Block(link="other", first=4, count=2))
    records = [Layout(source="east", epoch=1, state=layout, blocks=blocks, total=6), *workers]
    return ControlState().fold([record.encode() for record in records])


def worker(name, lanes, *, silent_ms=0):
    return WorkerRecord(source="east", id=name, at_ms=NOW_MS - silent_ms, lanes=lanes)


def unowned(control):
    return unowned_lanes(control, source="east", link="orders", now_ms=NOW_MS)


def test_lanes_that_workers_claim_have_an_owner():
    assert unowned(state(worker("a", (0, 1)), worker("b", (2, 3, 4)))) == ()


def test_lanes_of_a_worker_that_fell_silent_have_none():
    assert unowned(state(worker("a", (0, 1)), worker("b", (2, 3), silent_ms=16_000))) == (2, 3)


def test_only_lanes_of_the_link_count():
    assert unowned(state()) == (0, 1, 2, 3)


def test_without_a_layout_to_go_by_nothing_is_reported():
    assert unowned(ControlState()) is None
    assert unowned(state(layout="changing")) is None
