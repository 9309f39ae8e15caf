"""An offset that the client library makes up where no broker told one is an error, and never a place in a log."""

import pytest
from confluent_kafka.admin import ListOffsetsResultInfo

from replicator.errors import TransientBrokerError, UnreachableError
from replicator.kafka.admin.offsets import known

PLACE = "orders/1"


@pytest.mark.parametrize(
    ("at", "offset"),
    [("latest", -1001), ("earliest", -1001), (1_700_000_000_000, -1001), ("latest", -1)],
)
def test_an_offset_that_no_broker_told_is_unknown(at, offset):
    found = known(ListOffsetsResultInfo(offset, -1, -1), PLACE, at, subject="cluster:west")
    assert isinstance(found, TransientBrokerError), "it is asked again, and never taken for an end"
    assert PLACE in found.message


@pytest.mark.parametrize(
    ("at", "offset"), [("latest", 0), ("earliest", 7), (1_700_000_000_000, -1)]
)
def test_what_a_broker_told_is_the_answer(at, offset):
    told = ListOffsetsResultInfo(offset, -1, -1)
    assert known(told, PLACE, at, subject="cluster:west") is told


def test_an_error_stays_the_error_that_it_is():
    error = UnreachableError("no answer", subject="cluster:west")
    assert known(error, PLACE, "latest", subject="cluster:west") is error
