"""What a lane reports of its partitions, to the log and the journal of gaps: what was lost, stopped or stuck.

A decision that was not stored because its session ended is made again by the next session. It is about the same
loss then, which is reported once per lane, by its number. A decision that was stored is not made again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.start_position import StartDecision
from replicator.dataplane.transport.messages import LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.formats.partition_failure import PartitionFailure
from replicator.identifiers import TopicPartition


@dataclass(frozen=True, slots=True)
class _Reported:
    """What was reported of a partition, with the last decision about it.

    ``loss`` is the number of the target's loss that was reported, 0 for none, and ``back_to`` the lowest source
    offset that was named for it. ``gap`` is the last one, with when the checkpoint was made that it was found with:
    the same gap found with a later one is another; ``stop`` is None while the partition is copied.
    """

    loss: int = 0
    back_to: int = -1
    gap: tuple[int, int, str, str, int] | None = None
    stop: tuple[str, str] | None = None


class PartitionNews:
    """Reports for one lane, across its sessions; used by the lane's thread only."""

    def __init__(
        self, spec: Callable[[], LaneSpec], *, post: Callable[[LostRange | LogLine], None]
    ) -> None:
        """``spec`` gives the lane's newest one."""
        self._spec = spec
        self._post = post
        self._reported: dict[TopicPartition, _Reported] = {}

    def forget(self, key: TopicPartition) -> None:
        """The partition no longer belongs to the lane."""
        self._reported.pop(key, None)

    def decided(self, state: PartitionState, decision: StartDecision) -> None:
        """Reports what a decision gives up, copies again or stops, unless the last one was the same."""
        before = self._reported.get(state.key, _Reported())
        gap = before.gap
        if decision.lost is not None:
            gap = (*decision.lost, decision.detail, decision.accepted_gap, state.committed_at_ms)
            if gap != before.gap:
                self._gave_up(state, decision, decision.lost)
        stop = (decision.problem, decision.detail) if decision.problem else None
        loss, back_to = 0, -1
        if state.target_loss.count == before.loss:
            loss, back_to = before.loss, before.back_to
        if decision.target_loss and not (loss and back_to <= decision.offset):
            # The same loss, of which a part was copied again meanwhile, has been reported already.
            loss, back_to = state.target_loss.count, decision.offset
            lost = {"problem": "TARGET_REGRESSED", "detail": decision.target_loss}
            self._log("error", "target lost records, they are copied again", state, lost)
        if stop is not None and stop != before.stop:
            fields = {"problem": decision.problem, "detail": decision.detail}
            self._log("error", "partition stopped", state, fields)
        self._reported[state.key] = _Reported(loss, back_to, gap, stop)

    def failed(self, state: PartitionState, error: ReplicatorError) -> None:
        """Reports why a partition does not move."""
        fields = {"problem": error.code, "detail": error.message, "remedy": error.remedy}
        self._log("warning", "partition does not move", state, fields)

    def recovered(self, state: PartitionState, ended: PartitionFailure) -> None:
        """Reports that a partition moves again, and what had stopped it."""
        self._log("info", "partition moves again", state, {"problem": ended.code})

    def _gave_up(
        self, state: PartitionState, decision: StartDecision, lost: tuple[int, int]
    ) -> None:
        self._post(
            LostRange(
                pair=self._spec().pair,
                link=self._spec().link,
                topic=state.topic,
                partition=state.partition,
                lost_from=lost[0],
                lost_to=lost[1],
                detail=decision.detail,
            )
        )

    def _log(
        self,
        level: Literal["info", "warning", "error"],
        event: str,
        state: PartitionState,
        fields: Mapping[str, str],
    ) -> None:
        place = {
            "flow": self._spec().pair,
            "link": self._spec().link,
            "topic": state.topic,
            "partition": str(state.partition),
        }
        self._post(LogLine(level, event, {**place, **fields}))
