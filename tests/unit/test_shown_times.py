"""Points in time as JSON and people see them, also those that no calendar has."""

from replicator.cli.operation.offsets import _table
from replicator.clock import json_time
from replicator.offsets.translation.trace import Place

LONGEST = 2**63 - 1


def test_a_time_is_shown_in_utc_to_the_millisecond():
    assert json_time(0) == "1970-01-01T00:00:00.000Z"
    assert json_time(1_767_225_600_123) == "2026-01-01T00:00:00.123Z"


def test_a_time_that_no_calendar_has_is_clipped():
    assert json_time(LONGEST) == "9999-12-31T23:59:59.999Z"
    assert json_time(-LONGEST) == "0001-01-01T00:00:00.000Z"


def test_a_record_with_any_time_can_be_traced():
    place = Place(
        cluster="east", topic="orders", partition=0, offset=1, state="origin", flow=None,
        timestamp_ms=LONGEST,
    )  # fmt: skip
    (times,) = (column.cells for column in _table([place]).columns if column.header == "time")
    assert list(times) == ["9999-12-31T23:59:59.999Z"]
