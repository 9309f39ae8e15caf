"""What a long line does to packets: delay, order, rate, queue and loss."""

import pytest

from replicator.testing import LineQuality
from replicator.testing.wan.line_rules import LineDirection

SIZE = 1000


def direction(**quality):
    return LineDirection(LineQuality(**quality), number=0)


def test_a_packet_arrives_half_a_round_trip_later():
    assert direction(round_trip_seconds=0.1).offer(7.0, SIZE) == pytest.approx(7.05)


def test_the_rate_spaces_packets_and_an_idle_line_saves_nothing_up():
    line = direction(round_trip_seconds=0.0, bytes_per_second=100_000.0)
    assert [line.offer(0.0, SIZE) for _ in range(3)] == pytest.approx([0.01, 0.02, 0.03])
    assert line.offer(5.0, SIZE) == pytest.approx(5.01)


def test_what_finds_the_queue_full_is_lost_and_the_line_goes_on_afterwards():
    line = direction(round_trip_seconds=0.0, bytes_per_second=100_000.0, queue_seconds=0.05)
    came = [line.offer(0.0, SIZE) for _ in range(10)]
    assert came[5] == pytest.approx(0.06)
    assert came[6:] == [None] * 4
    assert (line.offered, line.lost, line.overflowed) == (10, 0, 4)
    assert line.offer(0.05, SIZE) == pytest.approx(0.07)


def test_loss_is_the_share_asked_for_and_the_same_with_the_same_seed():
    def lost(seed, number=0):
        line = LineDirection(LineQuality(loss=0.01, seed=seed), number=number)
        return [at for at in range(20_000) if line.offer(0.0, SIZE) is None]

    assert 150 < len(lost(1)) < 250
    assert lost(1) == lost(1)
    assert lost(1) != lost(2)
    assert lost(1) != lost(1, number=1), "both directions must not lose the same packets"


def test_packets_never_overtake_each_other_when_the_line_gets_shorter():
    line = direction(round_trip_seconds=1.0)
    first = line.offer(0.0, SIZE)
    line.change(LineQuality(round_trip_seconds=0.0))
    assert line.offer(0.1, SIZE) == first == 0.5
    assert line.offer(2.0, SIZE) == 2.0


@pytest.mark.parametrize(
    "wrong", [{"loss": 1.1}, {"round_trip_seconds": -1}, {"bytes_per_second": -1}]
)
def test_a_line_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011  the sentence is for the test's author
        LineQuality(**wrong)
