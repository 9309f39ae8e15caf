import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.drill.file.abort_conditions import StatusLook, look_at, reasons_to_abort
from replicator.drill.file.plan import Abort
from replicator.drill.report.measure import Silence, longest_of, longest_silence, per_bucket


def test_an_interruption_is_the_longest_silence_that_ends_after_the_fault():
    times = [1, 2, 3, 4.0, 9.0, 9.5, 12.0, 12.1]
    assert longest_silence(times, after=4.0) == Silence(4.0, 9.0)
    assert longest_silence(times, after=4.1) == Silence(4.0, 9.0)
    assert longest_silence(times, after=9.4) == Silence(9.5, 12.0)


def test_what_trickled_in_after_the_fault_does_not_hide_the_interruption():
    assert longest_silence([1, 2, 2.2, 2.4, 8.0], after=2.1).seconds == pytest.approx(5.6)


def test_a_silence_that_never_ends_is_none_and_so_is_the_worst_of_several_with_it():
    assert longest_silence([1, 2, 3], after=3) is None
    assert longest_silence([], after=3) is None
    assert longest_of([Silence(1, 2), None]) is None
    assert longest_of([]) is None
    assert longest_of([Silence(1, 2), Silence(1, 4)]) == Silence(1, 4)


def test_without_anything_before_the_fault_the_interruption_begins_at_the_fault():
    assert longest_silence([7.0, 7.1], after=5.0) == Silence(5.0, 7.0)


@given(
    st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, unique=True),
    st.floats(min_value=0, max_value=1e6),
)
def test_no_silence_contains_an_event_and_none_is_longer(times, after):
    found = longest_silence(times, after=after)
    if found is None:
        assert all(at <= after for at in times)
        return
    assert found.ended_at > after
    assert not any(found.began_at < at < found.ended_at for at in times)
    for at in times:
        if at > after:
            before = [other for other in times if other < at] or [after]
            assert at - max(before) <= found.seconds + 1e-6


@given(st.lists(st.floats(min_value=10, max_value=20)))
def test_every_event_within_the_time_is_in_exactly_one_bucket(times):
    counts = per_bucket(times, start=10, end=20, bucket_seconds=0.5)
    assert sum(counts) == len(times)


def test_a_drill_within_its_limits_passes(report_of):
    report = report_of()
    assert report["verdict"] == "pass", report["checks"]
    assert report["rtoSeconds"] == 3.0
    assert report["interruptions"]["writesSeconds"] == 1.0
    assert (report["lostRecords"], report["rereadRecords"], report["skippedRecords"]) == (0, 0, 0)
    assert report["interrupted"] == {"from": 20.0, "to": 23.0}


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        ({"silence": (1010.0, 1018.0)}, {"maxRtoSeconds"}),
        ({"silence": (1010.0, float("inf"))}, {"maxRtoSeconds", "interruption ended"}),
        ({"lost": {5, 29}}, {"maxLostRecords"}),
        ({"reread": [4]}, {"maxReread"}),
        ({"skipped": {4}}, {"skippedRecords", "history"}),
        ({"trouble": "a worker ended by itself"}, {"played to its end"}),
    ],
)
def test_each_thing_that_goes_wrong_fails_the_drill_by_its_name(report_of, wrong, broken):
    report = report_of(**wrong)
    assert report["verdict"] == "fail"
    assert {each["check"] for each in report["checks"] if not each["ok"]} == broken


def test_lost_records_are_counted_by_partition_and_in_seconds_before_the_fault(report_of):
    report = report_of(lost={4, 8})
    assert report["lostRecords"] == 2
    assert report["lostSeconds"] == 6.0
    assert report["lostPartitions"] == {"t/0": 2}


def flow(lag, *codes, link="l"):
    problems = [{"code": code, "subject": "s"} for code in codes]
    return {"link": link, "lagSeconds": lag, "problems": problems}


def test_a_drill_on_a_real_link_is_aborted_by_what_its_file_names_and_nothing_else():
    abort = Abort(10.0, 5.0, ("UNREACHABLE",))
    calm = look_at({"flows": [flow(9.9, "CONFIG_DRIFT"), flow(99.0, link="other")]}, "l")
    assert not reasons_to_abort(abort, calm, known=frozenset(), write_silence_seconds=4.9)
    bad = look_at({"flows": [flow(None), flow(10.5, "UNREACHABLE")]}, "l")
    reasons = reasons_to_abort(abort, bad, known=frozenset(), write_silence_seconds=5.1)
    assert [reason.split()[0] for reason in reasons] == ["the", "no", "UNREACHABLE"]
    known = frozenset({("UNREACHABLE", "s")})
    assert len(reasons_to_abort(abort, bad, known=known, write_silence_seconds=0)) == 1
    never = Abort(None, None, ())
    assert not reasons_to_abort(
        never, StatusLook(1e9, known), known=frozenset(), write_silence_seconds=1e9
    )
