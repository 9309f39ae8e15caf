"""Records come briskly where there are many of them and few in each step; what is calm for long ends it."""

import pytest

from replicator.dataplane.session.fetch_paces import CALM_WINDOWS, WINDOW_SECONDS, Briskness
from replicator.dataplane.session.trickle_rest import BACKLOG_RECORDS, SLOW_RECORDS_PER_SECOND


class Steps:
    """Steps at even distances; ``second`` returns whether records come briskly at its end."""

    def __init__(self):
        self.now = 0.0
        self._briskness = Briskness(0.0)

    def second(self, records, *, steps=100):
        began, brisk = self.now, False
        for number in range(1, steps + 1):
            self.now = began + WINDOW_SECONDS * number / steps
            brisk = self._briskness.stepped(records // steps, self.now)
        return brisk


@pytest.mark.parametrize(
    ("records", "steps", "brisk"),
    [
        (10_000, 200, True),
        (SLOW_RECORDS_PER_SECOND, 100, True),
        (1_000, 1_000, False),
        (0, 4, False),
        (100_000, 100_000 // BACKLOG_RECORDS, False),
    ],
)
def test_one_second_tells(records, steps, brisk):
    assert Steps().second(int(records), steps=steps) == brisk


def test_it_is_not_told_before_a_second_is_over():
    assert not Briskness(0.0).stepped(100, 0.5 * WINDOW_SECONDS)


def test_a_pause_does_not_end_it_and_a_long_one_does():
    steps = Steps()
    assert steps.second(10_000)
    assert all(steps.second(100) for _ in range(CALM_WINDOWS - 1))
    assert steps.second(1_000), "not calm"
    assert all(steps.second(0, steps=1) for _ in range(CALM_WINDOWS - 1))
    assert not steps.second(0, steps=1)


def test_a_backlog_does_not_change_what_it_is():
    steps = Steps()
    assert not steps.second(300_000, steps=500)
    assert steps.second(10_000)
    assert all(steps.second(300_000, steps=500) for _ in range(2 * CALM_WINDOWS))
