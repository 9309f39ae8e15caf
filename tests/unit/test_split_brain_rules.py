"""What counts as a copy on the passive side, and on which links that is looked at."""

import pytest
from topology_files import active_passive, plan_of

from replicator.control.tasks.watch.split_brain import HEADER_ROOM_BYTES, _goes_on, _is_copy
from replicator.policy.copies.provenance import Arrivals, Hop, encode_hop, find_hops, with_hop

LIMIT = 1_000_000


class Record:
    """A record as the client library gives it."""

    def __init__(self, *, headers=(), value=b"v", key=b"k", readable=True):
        self._headers, self._value, self._key, self._readable = headers, value, key, readable

    def headers(self):
        if not self._readable:
            raise SystemError("a header name that is no text")
        return list(self._headers)

    def topic(self):
        return "orders"

    def partition(self):
        return 0

    def value(self):
        return self._value

    def key(self):
        return self._key


def come_through(*clusters):
    headers = (("app", b"1"),)
    for cluster in clusters:
        hop = encode_hop(Hop(cluster, "orders", 0, 7))
        headers = tuple(with_hop(headers, find_hops(headers), hop))
    return headers


def test_a_record_that_came_over_the_flow_is_a_copy_however_long_its_way_was():
    assert _is_copy(Record(headers=come_through("east")), "east", LIMIT, Arrivals())
    assert _is_copy(Record(headers=come_through("north", "east")), "east", LIMIT, Arrivals())


@pytest.mark.parametrize("headers", [(), (("app", b"1"),), come_through("north")])
def test_a_record_without_the_source_among_its_hops_was_written_there(headers):
    assert not _is_copy(Record(headers=headers), "east", LIMIT, Arrivals())


def test_a_record_whose_header_was_forwarded_from_another_topic_was_written_there():
    headers = (("replicator-hops", encode_hop(Hop("east", "inbox", 0, 7))),)
    assert not _is_copy(Record(headers=headers), "east", LIMIT, Arrivals())


def test_a_record_whose_header_found_no_room_or_cannot_be_read_proves_nothing():
    assert _is_copy(Record(value=b"v" * (LIMIT - HEADER_ROOM_BYTES)), "east", LIMIT, Arrivals())
    assert not _is_copy(Record(value=None, key=None), "east", LIMIT, Arrivals())
    assert _is_copy(Record(readable=False), "east", LIMIT, Arrivals())


def test_links_that_go_on_from_their_passive_side_are_left_out():
    plan = plan_of(
        active_passive(["x"], name="one", active="a", passive="b"),
        active_passive(["x", "y"], name="two", active="b", passive="c"),
        clusters=("a", "b", "c"),
    )
    one, two = plan.link("one").flows[0], plan.link("two").flows[0]
    assert _goes_on(one, two)
    assert not _goes_on(two, one)
