"""The partitions of a running lane: added, removed, stopped and resumed.

Each change commits first, so that whatever happens next starts from what is stored. No partition is
read before ``decide_start`` has said where, and none that it stopped.
"""

from collections.abc import Collection, Iterable, Mapping, MutableMapping

from replicator.clock import Clock
from replicator.dataplane.health.damaged_source import why_still
from replicator.dataplane.health.silent_partitions import SilentPartitions
from replicator.dataplane.health.unheard_records import unheard_error
from replicator.dataplane.lane.misled_clients import MisledClients
from replicator.dataplane.lane.partition_news import PartitionNews
from replicator.dataplane.lane.refused_targets import Refusals, RefusedTargets
from replicator.dataplane.lane.two_ids import TwoIds
from replicator.dataplane.progress.partition_health import PartitionHealth, Side
from replicator.dataplane.progress.partition_state import PartitionState, partition_table
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.dataplane.takeover.start_position import StartDecision
from replicator.dataplane.takeover.target_looks import read_targets
from replicator.dataplane.takeover.target_loss import SeenTarget, needs_look
from replicator.dataplane.transport.spec import LaneSpec, PartitionWork, lane_client_id
from replicator.errors import (
    NotMovingError,
    PartitionsRefusedError,
    ReplicatorError,
    TargetRegressedError,
    UnreachableError,
)
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition
from replicator.policy.capacity.answer_size import AnswerSize

TARGET_REGRESSED = TargetRegressedError.code

QUIET_SECONDS = 4.0
"""So long no partition of a lane may have moved before answers of the source count as too large for the line."""


class UnlookedTargetError(UnreachableError):
    """A look at the target got no answer: of what the lane writes there that says nothing."""


class LanePartitions:
    """Used by the lane's thread only; lives as long as one session.

    Attributes:
        states: every partition of the lane's spec, by topic and partition.
    """

    def __init__(
        self,
        spec: LaneSpec,
        *,
        clients: SessionClients,
        checkpoints: Mapping[TopicPartition, Checkpoint],
        news: PartitionNews,
        clock: Clock,
        healths: MutableMapping[TopicPartition, PartitionHealth],
        refusals: Refusals,
        changed: ChangedLogs,
        misled: MisledClients,
        answers: AnswerSize,
    ) -> None:
        """``healths``, ``news``, ``changed``, ``misled`` and ``answers`` outlive sessions."""
        self.states: dict[TopicPartition, PartitionState] = {}
        self._spec = spec
        self._clients = clients
        self._checkpoints = dict(checkpoints)
        self._news = news
        self._clock = clock
        self._healths = healths
        self._targets = RefusedTargets(refusals, clock=clock, on_failure=self.on_failure)
        self._changed = changed
        self._silent = SilentPartitions()
        self._two_ids = TwoIds()
        self._misled = misled
        self._answers = answers
        self._moves, self._moved_at = 0, clock.monotonic()

    def follow(self, spec: LaneSpec) -> None:
        """Goes on with another list of work; only partitions that differ are touched."""
        self._spec = spec
        wanted = {(work.topic, work.partition): work for work in spec.work}
        self._remove([key for key in self.states if key not in wanted])
        again: set[PartitionState] = set()
        for key, state in self.states.items():
            old, new = state.work, wanted[key]
            state.work = new
            if (old.topic_id, old.accept_gap) != (new.topic_id, new.accept_gap):
                again.add(state)
        if again:
            self._suspend(again)
            self.examine(again)
        self._add([work for key, work in wanted.items() if key not in self.states])

    def recheck(self) -> None:
        """Asks again about partitions for which the source had no answer."""
        now = self._clock.monotonic()
        to_check = {
            state
            for state in self.states.values()
            if state.needs_check and state.health.retry_at <= now
        }
        if to_check:
            self.examine(to_check)

    def check_targets(self) -> None:
        """Looks whether the target still holds what it acknowledged, while the lane copies on.

        A partition that stopped because of that goes on once its copy was made anew, and empty.

        Raises:
            UnlookedTargetError: the target did not answer; nothing has changed.
            ReplicatorError: the session is over.
        """
        running = [
            state
            for state in self.states.values()
            if state.is_read or state.problem == TARGET_REGRESSED
        ]
        if not running:
            return
        places = [(state.target_topic, state.partition) for state in running]
        try:
            seen = read_targets(self._spec.target, places, client_id=lane_client_id(self._spec))
        except ReplicatorError as error:
            raise UnlookedTargetError(
                f"cannot look whether the target still holds its copies: {error.message}",
                subject=error.subject,
                remedy=error.remedy,
            ) from error
        self._set_idle_aside(running, seen)
        # What was written since belongs to the claim only once it is acknowledged.
        claims = {state: state.target.acknowledged() for state in running}
        suspects = {
            state
            for state in running
            if (one := seen.get((state.target_topic, state.partition))) is not None
            and needs_look(claims[state], one)
            and (state.is_read or one.start == one.end)
        }
        if suspects:
            self._suspend(suspects)
            self.examine(suspects)

    def _set_idle_aside(
        self, running: Iterable[PartitionState], seen: Mapping[TopicPartition, SeenTarget]
    ) -> None:
        """Suspends partitions that take no writes before one of their records is in a transaction."""
        doubtful: set[PartitionState] = set()
        for state in running:
            one = seen.get((state.target_topic, state.partition))
            idle = state.is_read and state.position == state.committed
            if idle and (one is None or not one.all_in_sync):
                doubtful.add(state)
        refused = self._targets.refused(doubtful)
        if refused:
            self._suspend(refused)

    def examine_reported(self, states: set[PartitionState]) -> None:
        """As ``examine``, of partitions whose logs have changed by the word of the client that reads them."""
        before = {state: state.position for state in states}
        self.examine(states)
        refuted = [
            state.key
            for state, position in before.items()
            if not state.problem and state.position == position
        ]
        self._misled.refuted(refuted, now=self._clock.monotonic())

    def examine(self, states: set[PartitionState]) -> None:
        """Decides where each partition starts, from what is stored and what the source says now."""
        stored = dict(self._checkpoints)
        for state in states:
            if state.position >= 0:
                stored[state.key] = state.checkpoint(at_ms=state.committed_at_ms)
        start: list[PartitionState] = []
        session = self._clients.session
        decisions = self._clients.decide(
            self._spec,
            states,
            stored,
            on_failure=self.on_failure,
        )
        self._clients.learn_leaders({state.topic for state in decisions if not state.problem})
        for state, decision in decisions.items():
            self._news.decided(state, decision)
            if decision.store:
                session.unit.store_soon(state)
            if decision.lost is not None or _copy_was_made_anew(stored.get(state.key), state):
                session.unit.forget_index(state)
            if decision.problem:
                continue
            if session.events.reads_another_topic(state):
                state.needs_check = True  # asked again: soon both mean the same topic
                self._means_another_topic(state)
            else:
                self._two_ids.forget(state.key)
                start.append(state)
        self._store_losses(decisions.values())
        waiting = self._targets.waiting(start)
        for state in start:
            state.needs_check = state in waiting
        start = [state for state in start if not state.needs_check]
        if start:
            self._clients.read_from(start)

    def _store_losses(self, decisions: Iterable[StartDecision]) -> None:
        """Before anything is written behind what is left: a later look could take that for what was lost."""
        if any(decision.target_loss for decision in decisions):
            self._clients.session.unit.commit()

    def _means_another_topic(self, state: PartitionState) -> None:
        read = self._clients.session.events.topic_id(state.topic)
        error = self._two_ids.lasting(state, read, now=self._clock.monotonic())
        if error is not None:
            self.on_failure(state, "source", error)

    def find_silent(
        self,
        *,
        free: bool,
        held: Collection[TopicPartition] = (),
        unheard: Mapping[TopicPartition, int],
    ) -> None:
        """Looks for partitions that bring none of the records that the source says it has.

        ``free`` says whether the lane could read all the time since the last call, ``held`` which partitions make
        way for others, ``unheard`` where logs end of which the client says that nothing comes.
        """
        self._note_moves()
        if not free:
            self._silent.forget()
            return
        suspects = self._silent.suspects(
            (state for key, state in self.states.items() if key not in held), unheard
        )
        misled = [state for state in suspects if state.source_end <= state.position]
        for state in misled:
            self.on_failure(state, "source", unheard_error(state, unheard[state.key]))
        self._misled.refuted((state.key for state in misled), now=self._clock.monotonic())
        self._suspend_silent([state for state in suspects if state.source_end > state.position])

    def _suspend_silent(self, suspects: list[PartitionState]) -> None:
        if not suspects:
            return
        stable = self._clients.stable_ends([state.key for state in suspects])
        ends = {state: stable.get(state.key, -1) for state in suspects}
        silent = {state: end for state, end in ends.items() if end > state.position}
        if not silent:
            return
        found = why_still(self._spec.source, silent, client_id=lane_client_id(self._spec))
        self._suspend(set(silent))
        for state, error in found.items():
            self.on_failure(state, "source", error)
        self.stand_still(found)

    def stand_still(self, found: Mapping[PartitionState, ReplicatorError]) -> None:
        """Takes in why partitions bring none of the records that wait; all of them may want smaller answers."""
        now = self._clock.monotonic()
        if not self._clients.needs_whole_answers or now - self._moved_at < QUIET_SECONDS:
            return
        unexplained = {state for state, why in found.items() if isinstance(why, NotMovingError)}
        others = {
            state
            for state in self.states.values()
            if state not in unexplained and state.source_end > state.position >= 0
        }
        if unexplained and all(state.problem or state.health.failure for state in others):
            self._answers.none_came(now=now)

    def _note_moves(self) -> None:
        now, moves = self._clock.monotonic(), sum(each.position for each in self.states.values())
        if moves != self._moves:
            self._moves, self._moved_at = moves, now
        self._answers.look(now=now)

    def on_failure(self, state: PartitionState, side: Side, error: ReplicatorError) -> None:
        """Keeps why a partition could not be read or written; what is news is logged."""
        news = state.health.failed(
            side,
            error,
            position=state.position if side == "source" else state.committed,
            now=self._clock.monotonic(),
            at_ms=int(self._clock.now() * 1000),
        )
        if news:
            self._news.failed(state, error)

    def set_aside(self, refused: PartitionsRefusedError) -> None:
        """The next session goes on without these partitions, and tries them again by and by."""
        for state in self.states.values():
            error = refused.refusals.get((state.target_topic, state.partition))
            if error is not None:
                self.on_failure(state, "target", error)

    def note_recoveries(self) -> None:
        """Ends the failures of partitions that made progress since."""
        for state in self.states.values():
            ended = state.health.recovered(position=state.position, committed=state.committed)
            if ended is not None:
                self._news.recovered(state, ended)

    def _add(self, work: list[PartitionWork]) -> None:
        if not work:
            return
        fresh = set()
        for item in work:
            state = PartitionState(
                item,
                source_alias=self._spec.source.alias,
                provenance=self._spec.settings.provenance,
            )
            state.needs_check = True  # until its start is decided
            state.health = self._healths.setdefault(state.key, state.health)
            self.states[state.key] = state
            fresh.add(state)
        self._publish()
        self.examine(fresh)

    def _remove(self, keys: list[TopicPartition]) -> None:
        if not keys:
            return
        self._clients.session.unit.commit()
        self._unassign(self.states[key] for key in keys)
        for key in keys:
            state = self.states.pop(key)
            self._healths.pop(key, None)
            self._two_ids.forget(key)
            self._news.forget(key)
            self._changed.forget((state.target_topic, state.partition))
            if state.position >= 0:
                # Should it come back (resume), it goes on from here, not from the take-over.
                self._checkpoints[key] = state.checkpoint(at_ms=state.committed_at_ms)
        self._publish()

    def _suspend(self, states: set[PartitionState]) -> None:
        self._clients.session.unit.commit()
        self._unassign(states)
        for state in states:
            state.needs_check = True

    def _unassign(self, states: Iterable[PartitionState]) -> None:
        reading = [state for state in states if state.is_read]
        if reading:
            self._clients.stop_reading(reading)

    def _publish(self) -> None:
        """The engine looks partitions up in the session's table, which stays the same object."""
        table = self._clients.session.table
        table.clear()
        table.update(partition_table(list(self.states.values())))


def _copy_was_made_anew(checkpoint: Checkpoint | None, state: PartitionState) -> bool:
    """Whether the target topic is another one than at the checkpoint: then no entry of the offset map holds."""
    held = "" if checkpoint is None else checkpoint.target.topic_id
    now = state.target.claim().topic_id
    return bool(held and now) and held != now
