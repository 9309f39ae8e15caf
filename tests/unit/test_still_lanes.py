"""A lane whose thread waits inside one step is shown with what its clients reported meanwhile."""

from session_lab import SessionLab

from replicator.dataplane.lane.lane import Lane
from replicator.dataplane.process.still_lanes import STILL_SECONDS, StillLanes
from replicator.kafka.clients.client import KafkaError
from replicator.testing import ManualClock


class Waiting:
    """A lane that runs, and waits whenever its time is not told anew."""

    def __init__(self) -> None:
        self.clock = ManualClock(monotonic=100.0)
        self.said = []
        self.lane = Lane(
            SessionLab().spec, post=self.said.append, may_start=lambda *_: True, clock=self.clock
        )
        self.still = StillLanes(clock=self.clock, post=self.said.append)
        self.state("running")

    def state(self, state: str) -> None:
        self.lane._report.set(state, "as a test says")
        self.lane._report.publish()

    def seen(self, seconds: float = 0.0):
        self.clock.advance(seconds)
        return self.still.pictures([self.lane])[self.lane]

    def steps(self) -> None:
        self.lane.active_at = self.clock.monotonic()


def test_what_clients_report_meanwhile_is_shown_and_told_once():
    waiting = Waiting()
    waiting.clock.advance(3600)  # before it ran
    assert waiting.seen() is waiting.lane.stats
    refused = KafkaError(KafkaError._TRANSPORT, "west:9092/2: Connection refused")
    waiting.lane._context.problems.note("target", refused)
    assert waiting.seen(STILL_SECONDS - 1).target_problem == ""
    assert waiting.said == []
    shown = waiting.seen(2)
    assert shown.target_problem.startswith("UNREACHABLE cannot connect: broker 2 at west:9092")
    (line,) = waiting.said
    assert "broker 2 at west:9092" in line.fields["detail"]
    assert waiting.seen(30) is shown, "nothing is sent again"
    assert len(waiting.said) == 1
    waiting.steps()
    assert waiting.seen(1) is waiting.lane.stats
    waiting.seen(STILL_SECONDS)
    assert len(waiting.said) == 2, "the next time is another one"


def test_a_lane_of_which_no_client_reports_anything_is_told_all_the_same():
    waiting = Waiting()
    waiting.seen()
    assert waiting.seen(STILL_SECONDS + 1) is waiting.lane.stats
    assert [line.level for line in waiting.said] == ["warning"]
    assert waiting.said[0].fields["remedy"]


def test_a_lane_that_goes_round_or_says_by_itself_why_it_waits_is_left_alone():
    waiting = Waiting()
    for _ in range(10):
        waiting.steps()
        waiting.seen(STILL_SECONDS - 1)
    waiting.state("recovering")
    for _ in range(10):
        waiting.seen(STILL_SECONDS)
    waiting.state("running")
    waiting.seen()
    waiting.seen(STILL_SECONDS - 1)
    assert waiting.said == []
