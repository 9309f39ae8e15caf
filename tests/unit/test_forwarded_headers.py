"""A hop list counts where a flow wrote it; forwarded by an application, it is part of a new record."""

import pytest

from replicator.dataplane.copy.rewrite import Rewriter
from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import (
    Arrivals,
    Hop,
    append,
    encode_hop,
    find_hops,
    parse_hops,
    path_hop,
    without_last_hop,
)
from replicator.policy.values import Naming

COPIES_OF_WEST = Arrivals((("west", Naming("template", "{source}_{topic}")),))


class Message:
    """A record of ``east`` as the client library gives it."""

    def __init__(self, topic, partition, value):
        self._place = (topic, partition)
        self.hops = value

    def topic(self):
        return self._place[0]

    def partition(self):
        return self._place[1]

    def offset(self):
        return 7

    def key(self):
        return b"k"

    def value(self):
        return b"v"


def rewritten(topic, partition, value, arrivals=COPIES_OF_WEST):
    """The headers of the copy of a record found there with this hop list; None if it is dropped."""
    rewriter = Rewriter(blocked=("west",), arrivals=arrivals, filters=(), transforms=())
    outcome = CopyOutcome()
    record = rewriter.rewrite(
        Message(topic, partition, value), [(HOPS_HEADER, value)], f"east/{topic}/{partition}/7",
        outcome,
    )  # fmt: skip
    assert (record is None) == (outcome.dropped == {"loop": 1})
    return None if record is None else list(record.headers)


@pytest.mark.parametrize("topic", ["orders", "west.orders", "west_orders"])
def test_a_copy_does_not_go_back_under_any_name_a_flow_may_have_given_it(topic):
    assert rewritten(topic, 3, encode_hop(Hop("west", "orders", 3, 5))) is None


@pytest.mark.parametrize(
    ("topic", "partition"), [("orders-enriched", 3), ("orders", 2), ("west.orders.dlq", 3)]
)
def test_a_record_derived_from_a_copy_is_copied_with_the_forwarded_list_as_it_was(topic, partition):
    forwarded = encode_hop(Hop("west", "orders", 3, 5))
    written = rewritten(topic, partition, forwarded)
    assert written == [
        (HOPS_HEADER, forwarded),
        (HOPS_HEADER, f"east/{topic}/{partition}/7".encode()),
    ]
    # On the other side the newest list counts, so the record does not come back.
    back = Rewriter(blocked=("east",), arrivals=Arrivals(), filters=(), transforms=())
    message = Message(topic, partition, None)
    assert back.rewrite(message, written, f"west/{topic}/{partition}/9", CopyOutcome()) is None


def test_a_path_hop_names_its_topic_by_its_mark():
    copied = path_hop("west", "orders")
    assert rewritten("orders", 0, copied) is None
    assert rewritten("orders-enriched", 0, copied) is not None
    assert rewritten("orders-enriched", 0, b"west") is None  # of a release without marks


def test_a_mark_is_no_station_and_only_the_last_one_stays():
    value = append(path_hop("west", "orders"), path_hop("east", "east.orders"))
    assert parse_hops(value) == (Hop("west"), Hop("east"))
    assert value.count(b"at--") == 1
    assert find_hops([(HOPS_HEADER, value)]).value == value
    assert without_last_hop(value) == (b"west", b"east")
