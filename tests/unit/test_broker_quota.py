"""What a lane makes of a broker that holds it back, and how much it sends then."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.policy.capacity.broker_quota import (
    FIRST_BYTES,
    LEAST_BYTES,
    LONGEST_SECONDS,
    MOST_BYTES,
    BrokerQuota,
)

NODE, OTHER = 1, 2
WINDOW_SECONDS, STEP_SECONDS = 10.0, 0.05
REQUEST_BYTES = 4 * 1024 * 1024


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
        quota.answered(NODE, seconds, used_bytes=size, now=now)
        if now >= 60.0:
            late, longest = late + size * share, max(longest, seconds)
        now = max(now + STEP_SECONDS, quota.until(NODE))
    assert longest <= 5.0 + 2 * share * LEAST_BYTES / rate
    assert late >= 0.5 * 60.0 * min(rate, share * REQUEST_BYTES / STEP_SECONDS)
