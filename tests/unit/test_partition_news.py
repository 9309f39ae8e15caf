"""A loss, a gap and a stop are told once: a decision made again because nothing of it was stored is the same one."""

from dataclasses import replace

from session_lab import SETTINGS

from replicator.dataplane.lane.partition_news import PartitionNews
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.start_position import (
    SourceLog,
    StartDecision,
    after_target_loss,
    decide_start,
)
from replicator.dataplane.takeover.takeover import apply_decision
from replicator.dataplane.takeover.target_loss import SeenTarget, find_loss, moved_back
from replicator.dataplane.transport.messages import LostRange
from replicator.dataplane.transport.spec import LaneSpec, PartitionWork
from replicator.formats.checkpoint import Checkpoint, TargetClaim
from replicator.policy.values import StartFrom
from replicator.topology.plan import ClusterPlan

WORK = PartitionWork("orders", 0, "orders", "")
SPEC = LaneSpec(
    topology="lab", link="link", source=ClusterPlan("east", ("east:9092",)),
    target=ClusterPlan("west", ("west:9092",)), lane=0, layout_epoch=1, settings=SETTINGS,
    work=(WORK,),
)  # fmt: skip
HELD = Checkpoint("orders", 0, 300, start=0, target=TargetClaim("T", 306, 3, 299))
SOURCE = SourceLog(topic_id="S", earliest=0, latest=330)


class Sessions:
    """One lane's news, and sessions that decide from what is stored, one after the other."""

    def __init__(self) -> None:
        self.said = []
        self.news = PartitionNews(lambda: SPEC, post=self.said.append)
        self.stored = HELD

    def decides(self, *, last_copy=None, end=50, source=SOURCE, lost=True, policy="stop"):
        """A session decides where the partition starts; what it would store with its first commit."""
        state = PartitionState(WORK, source_alias="east", provenance="full")
        checkpoint, loss = self.stored, None
        if lost:
            seen = SeenTarget("T", 0, end, 4)
            loss = find_loss(checkpoint, seen, last_copy, marked=True, earliest=source.earliest)
            checkpoint = moved_back(checkpoint, loss, at_ms=7)
        decision = decide_start(
            checkpoint, source, start_from=StartFrom(), on_truncation=policy, accept_gap=""
        )
        if loss is not None:
            decision = replace(decision, store=True, target_loss=checkpoint.target_loss.detail)
        self.told(state, decision, source, checkpoint)
        return state.checkpoint(at_ms=8)

    def told(self, state, decision: StartDecision, source=SOURCE, checkpoint=HELD) -> None:
        apply_decision(state, decision, source, checkpoint)
        self.news.decided(state, decision)

    @property
    def events(self):
        return [each.kind if isinstance(each, LostRange) else each.event for each in self.said]


LOST = "target lost records, they are copied again"


def test_a_loss_that_is_decided_again_before_it_is_stored_is_told_once():
    sessions = Sessions()
    sessions.decides(end=50)
    sessions.decides(end=51)  # with the marker that ended what was left open
    assert sessions.events == [LOST]
    sessions.decides(end=51, last_copy=119)  # without transactions some of it is there by now
    sessions.decides(end=51)
    assert sessions.events == [LOST]


def test_the_next_loss_is_told_once_the_last_one_is_stored():
    sessions = Sessions()
    sessions.stored = sessions.decides()
    assert sessions.stored.target_loss.count == 1
    sessions.decides(lost=False)
    sessions.stored = replace(sessions.stored, offset=300, target=HELD.target)
    sessions.decides()
    assert sessions.events == [LOST, LOST]


def test_a_loss_that_turns_out_larger_is_told_again():
    sessions = Sessions()
    sessions.decides(last_copy=199)
    sessions.decides(last_copy=99)
    assert sessions.events == [LOST, LOST]
    assert "source offsets 100 to 299" in sessions.said[1].fields["detail"]


def test_a_loss_that_was_none_does_not_silence_the_next_one():
    sessions = Sessions()
    sessions.decides()
    sessions.decides(lost=False)  # all copies are there after all, and nothing of a loss was stored
    sessions.decides()
    assert sessions.events == [LOST, LOST]


def test_a_loss_that_was_looked_at_again_within_its_session_is_the_same_one():
    sessions = Sessions()
    before, sessions.stored = sessions.stored, sessions.decides()
    sessions.decides(lost=False)  # examined once more, from its own state
    sessions.stored = before  # and then its session ended
    sessions.decides()
    assert sessions.events == [LOST]


def test_records_that_are_copied_again_may_be_of_older_leaders():
    sessions = Sessions()
    sessions.stored = replace(HELD, leader_epoch=7)
    assert sessions.decides(lost=False).leader_epoch == 7
    assert sessions.decides().leader_epoch == -1


def test_source_data_that_is_given_up_enters_the_journal_once():
    sessions = Sessions()
    gone = replace(SOURCE, earliest=310)
    sessions.decides(source=gone, lost=False, policy="report")
    sessions.decides(source=gone, lost=False, policy="report")
    assert sessions.events == ["gap"]
    sessions.decides(source=replace(SOURCE, earliest=320), lost=False, policy="report")
    assert sessions.events == ["gap", "gap"]


def test_a_partition_that_stays_stopped_is_told_once_and_once_more_when_it_stops_again():
    sessions = Sessions()
    stopped = after_target_loss(HELD, "the target log ends at 5", accept_gap="")
    state = PartitionState(WORK, source_alias="east", provenance="full")
    sessions.told(state, stopped)
    sessions.told(state, stopped)
    assert sessions.events == ["partition stopped"]
    sessions.decides(lost=False)
    sessions.told(state, stopped)
    assert sessions.events == ["partition stopped"] * 2


def test_a_partition_that_comes_back_to_the_lane_begins_anew():
    sessions = Sessions()
    sessions.decides()
    sessions.news.forget(("orders", 0))
    sessions.decides()
    assert sessions.events == [LOST, LOST]
