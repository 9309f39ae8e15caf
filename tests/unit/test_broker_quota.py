"""What a lane makes of a broker that holds it back, and how much it sends then."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.policy.capacity.broker_quota import (
    FIRST_BYTES,
    LEAST_BYTES,
    LONGEST_SECONDS,
    MOST_BYTES,
    SLOW_SECONDS,
    BrokerQuota,
)

NODE, OTHER = 1, 2
WINDOW_SECONDS, STEP_SECONDS = 10.0, 0.05
REQUEST_BYTES, REQUESTS_IN_FLIGHT = 4 * 1024 * 1024, 5


def fresh():
    return BrokerQuota("west", first_bytes=FIRST_BYTES)


def test_who_is_not_held_back_sends_more_each_time_until_nothing_is_bounded():
    quota, answers = fresh(), 0
    while quota.bounded:
        before = quota.most_bytes
        quota.answered(NODE, 0.0, used_bytes=before, now=0.0)
        assert quota.most_bytes == 2 * before
        answers += 1
    assert (answers, quota.most_bytes) == (5, MOST_BYTES)
    assert quota.problem(0.0) is None


def test_a_trickle_says_nothing_of_what_a_cluster_takes_at_once():
    quota = fresh()
    for _ in range(100):
        quota.answered(NODE, 0.0, used_bytes=1000, now=0.0)
    assert quota.most_bytes == FIRST_BYTES


def test_small_batches_of_few_partitions_show_what_gets_through_too():
    """Five requests of 64 KB are never much at once, and yet 32 MB a second."""
    quota, now = fresh(), 0.0
    while quota.bounded and now < 10.0:
        now += 0.002
        quota.answered(
            NODE, 0.0, used_bytes=320_000, answered_bytes=64_000, now=now, took_seconds=0.01
        )
    assert not quota.bounded
    assert now < 3.0
    slow = fresh()
    for second in range(1000):
        slow.answered(
            NODE,
            0.0,
            used_bytes=320_000,
            answered_bytes=64_000,
            now=float(second),
            took_seconds=0.9,
        )
    assert slow.most_bytes == FIRST_BYTES, (
        "nobody knows what a line does that carried 64 KB a second"
    )


def test_a_connection_that_is_held_back_waits_and_others_do_not():
    quota = fresh()
    quota.answered(NODE, 3.0, used_bytes=FIRST_BYTES, now=100.0)
    assert (quota.until(NODE), quota.until(OTHER)) == (103.0, 0.0)
    assert quota.seconds_held(101.0) == 2.0
    assert quota.seconds_held(103.0) == float("inf")
    assert quota.most_bytes == FIRST_BYTES // 3


def test_a_debt_longer_than_the_window_is_waited_for_once_and_then_the_connection_is_made_anew():
    quota = fresh()
    quota.answered(NODE, 90.0, used_bytes=FIRST_BYTES, now=100.0)
    assert quota.until(NODE) == 100.0 + LONGEST_SECONDS
    assert quota.take_overdue(100.0 + LONGEST_SECONDS - 1) == []
    assert quota.take_overdue(100.0 + LONGEST_SECONDS) == [NODE]
    quota.lost(NODE)
    assert quota.until(NODE) == 0.0
    assert quota.take_overdue(1000.0) == []


def test_it_is_told_while_it_lasts_and_slight_ones_are_not():
    quota = fresh()
    quota.answered(NODE, 0.01, used_bytes=1, now=100.0)
    assert quota.problem(100.0) is None
    quota.answered(NODE, 2.0, used_bytes=1, now=100.0)
    problem = quota.problem(110.0)
    assert (problem.code, problem.subject) == ("QUOTA_EXCEEDED", "cluster:west")
    assert quota.problem(118.0) is None


@settings(max_examples=50)
@given(rate=st.integers(20_000, 50_000_000), share=st.integers(1, 8))
def test_under_any_quota_nobody_is_held_back_for_long_and_most_of_it_is_used(rate, share):
    """A broker as Kafka's: it holds back by how much more than allowed came in its window."""
    quota, now, window, late, longest = fresh(), 0.0, deque(), 0, 0.0
    while now < 120.0:
        size = min(quota.most_bytes, REQUEST_BYTES)
        window.append((now, size * share))  # as many lanes as share it, all alike
        while now - window[0][0] > WINDOW_SECONDS:
            window.popleft()
        came = sum(each for _, each in window) / WINDOW_SECONDS
        seconds = max(0.0, (came - rate) / rate * WINDOW_SECONDS)
        quota.answered(NODE, seconds, used_bytes=size, answered_bytes=size, now=now)
        if now >= 60.0:
            late, longest = late + size * share, max(longest, seconds)
        now = max(now + STEP_SECONDS, quota.until(NODE))
    assert longest <= 5.0 + 2 * share * LEAST_BYTES / rate
    assert late >= 0.5 * 60.0 * min(rate, share * REQUEST_BYTES / STEP_SECONDS)


def test_what_was_sent_before_a_change_says_nothing_of_it():
    quota = fresh()
    quota.answered(NODE, 0.0, used_bytes=FIRST_BYTES, now=10.0, took_seconds=4.0)
    lessened = quota.most_bytes
    assert lessened == FIRST_BYTES // 4
    quota.answered(NODE, 0.0, used_bytes=FIRST_BYTES, now=11.0, took_seconds=4.0)
    assert quota.most_bytes == lessened
    assert quota.problem(11.0) is None, "a slow line is no quota"
    quota.answered(NODE, 0.0, used_bytes=lessened, now=12.0, took_seconds=0.5)
    assert quota.most_bytes > lessened


def test_what_was_never_answered_is_not_tried_again_at_that_size():
    quota = fresh()
    quota.unanswered(FIRST_BYTES, 30.0)
    assert quota.most_bytes == FIRST_BYTES // 8


@settings(max_examples=50)
@given(rate=st.integers(200_000, 100_000_000), share=st.integers(1, 8), far=st.floats(0.0, 0.3))
def test_over_any_line_answers_come_in_time_and_the_line_is_full(rate, share, far):
    """A line that carries so much, shared by lanes that are all alike, with so long a way there and back."""
    quota, now, free_at, way, carried, longest = fresh(), 0.0, 0.0, deque(), 0, 0.0
    while now < 120.0:
        while sum(size for _, _, size in way) < quota.most_bytes and len(way) < REQUESTS_IN_FLIGHT:
            room = quota.most_bytes - sum(size for _, _, size in way)
            size = min(REQUEST_BYTES, max(room, LEAST_BYTES))
            free_at = max(free_at, now) + size * share / rate
            way.append((now, free_at + far, size))
        used = sum(size for _, _, size in way)
        sent, now, size = way.popleft()
        quota.answered(
            NODE, 0.0, used_bytes=used, answered_bytes=size, now=now, took_seconds=now - sent
        )
        if now >= 60.0:
            carried, longest = carried + size * share, max(longest, now - sent)
    assert longest <= 3 * SLOW_SECONDS + 8 * share * LEAST_BYTES / rate + 2 * far
    # Five requests at a time are what bounds a line that is both wide and long.
    wide = share * REQUESTS_IN_FLIGHT * REQUEST_BYTES / (far + 0.001)
    assert carried >= 0.7 * (120.0 - 60.0) * min(rate, wide)
