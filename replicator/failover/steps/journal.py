"""The journal of a transition: the lock of its link, every step before and after, and role records.

It is kept in the control topic of the cluster that survives, the journal cluster (``home``). All writes
carry one transactional id per link, so of two operators who write, the later one fences the earlier. A
fenced operator reads again: it continues while the token says that the transition is still its own.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence

from replicator.clock import Clock
from replicator.control.records.base import Record
from replicator.control.records.role_records import (
    FenceRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.control.roles.open_transitions import open_transition, others_open
from replicator.control.store.state import ControlState
from replicator.errors import (
    FencedError,
    RefusedError,
    ReplicatorError,
    TransientBrokerError,
)
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.rules.locks import Lock
from replicator.failover.rules.machine import Step, TransitionProgress
from replicator.failover.steps.journal_writer import open_writer, write_once
from replicator.identifiers import control_topic
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.topology.plan import ClusterPlan

ATTEMPTS = 3
ROLLBACK_REASON = "takingBack"
"""Among the options of a transition: why it is being rolled back."""


class TakenOverError(RefusedError):
    """Another operator has taken this transition over."""


class WithdrawnError(RefusedError):
    """The transition gave its lock back before it had changed anything."""


class Journal:
    """Reads and writes for one transition; for one thread."""

    def __init__(self, clusters: LinkClusters, header: TransitionRecord, *, clock: Clock) -> None:
        self.header = header
        self.state = ControlState()
        self._clusters = clusters
        self._clock = clock
        self._cluster = clusters.plan.cluster(header.home)
        self._writer = open_writer(self._clusters, self._cluster)
        self._owned = False
        self._reaches = 0

    def close(self) -> None:
        """Closes the connections; what is recorded stays."""
        self._writer.close()

    def now_ms(self) -> int:
        """Now, in milliseconds."""
        return round(self._clock.now() * 1000)

    # The lock.

    def begin(self, *, replacing: str = "") -> None:
        """Takes the lock of the link; another transition that has it and is to be replaced goes on until ``supersede``.

        Raises:
            RefusedError: another transition has it.
            ReplicatorError: the journal cluster does not answer.
        """
        admin = self._clusters.admin(self._cluster)
        ensure_compacted_topic(admin, control_topic(self._clusters.topology), partitions=1)
        refused: FencedError | TransientBrokerError | None = None
        for _ in range(ATTEMPTS):
            self._refuse_others(replacing)
            try:
                self._fence_others()
                self._refuse_others(replacing)  # by what was written before we fenced the others
                self._writer.write([self.header.encode()])
            except (FencedError, TransientBrokerError) as error:
                # Nothing was written. Who came between us and the broker's answer shows when it is read again.
                refused = error
                self._reopen()
                continue
            self._owned = True
            self.state = self.state.fold([self.header.encode()])
            return
        if isinstance(refused, TransientBrokerError):
            raise refused
        raise RefusedError(
            "other operators keep starting transitions of this link",
            subject=self.header.link,
            remedy="Agree on one of them, then try again.",
        )

    def _refuse_others(self, replacing: str) -> None:
        held = others_open([self.refresh()], self.header, besides=replacing)
        if held is not None:
            raise Lock(held).refusal(self.now_ms())

    def withdraw(self, reason: str) -> WithdrawnError:
        """Releases the lock before anything was done; returns the error for the operator."""
        options = {**self.header.options, ROLLBACK_REASON: reason}
        self.write([self.header.model_copy(update={"state": "rolled-back", "options": options})])
        return WithdrawnError(
            f"{reason}; nothing was changed", subject=self.header.link,
            remedy=f"Look at 'replicator history --link {self.header.link}', then ask again.",
        )  # fmt: skip

    def record_rollback(self, reason: str) -> None:
        """From now on this transition can only be rolled back, also by ``--resume``."""
        if ROLLBACK_REASON not in self.header.options:
            options = {**self.header.options, ROLLBACK_REASON: reason}
            self.header = self.header.model_copy(update={"options": options})
            self.write([self.header])

    def supersede(self, record: TransitionRecord, check: Callable[[], None]) -> None:
        """Ends another transition of the link for good; its runner finds that out at its next write.

        ``check`` is asked where the other's runner may have written since it was looked at, and cannot any
        more; it raises to leave the other transition as it is.
        """
        ended = record.model_copy(update={"state": "superseded"})
        if record.home != self._cluster.alias:
            self._write_to(self._clusters.plan.cluster(record.home), [ended], check=check)
            return
        for _ in range(ATTEMPTS):
            try:
                if not self._owned:
                    self._own()
                    check()
                self._writer.write([ended.encode()])
            except (FencedError, TransientBrokerError):
                self._reopen()
            else:
                self.state = self.state.fold([ended.encode()])
                return
        raise self._keep_taking_over()

    def seize(self) -> None:
        """Takes an open transition over: the process that runs it now is fenced and finds a new token.

        Raises:
            RefusedError: it ended meanwhile.
        """
        self.header = self.header.model_copy(update={"token": secrets.token_hex(8)})
        self._fence_others()
        held = open_transition([self.refresh()], self.header.link)
        if held is None or held.id != self.header.id:
            raise RefusedError(
                "the transition ended before it could be taken over", subject=self.header.link,
                remedy=f"Look at 'replicator history --link {self.header.link}'.",
            )  # fmt: skip
        self._writer.write([self.header.encode()])
        self._owned = True
        self.refresh()

    def refresh(self) -> ControlState:
        """Reads the journal cluster's control topic again."""
        self.state = self._clusters.control(
            self._cluster, known_to_exist=True, reaches=self._reaches
        )
        return self.state

    # Steps.

    def progress(self, steps: tuple[Step, ...], *, rolling_back: bool) -> TransitionProgress:
        """What is done so far, by the records read last."""
        done = {
            Step(record.step)
            for record in self.state.steps(self.header.link, self.header.id)
            if record.state == "done" and record.step in set(steps)
        }
        return TransitionProgress(steps, frozenset(done), rolling_back)

    def step(self, step: Step) -> StepRecord | None:
        """The record of a step."""
        for record in self.state.steps(self.header.link, self.header.id):
            if record.step == step:
                return record
        return None

    def evidence(self, step: Step) -> Mapping[str, object]:
        """What a step left as evidence; empty before it was done."""
        record = self.step(step)
        return record.evidence if record is not None else {}

    def intend(self, step: Step, *also: Record, evidence: Mapping[str, object]) -> None:
        """Records that a step begins, with other records in the same transaction.

        What an earlier attempt left as evidence stays.
        """
        known = {**evidence, **self.evidence(step)}
        self.write([self._record(step, "intent", evidence=known), *also])

    def finish(
        self,
        step: Step,
        *also: Record,
        seconds: float,
        result: str,
        evidence: Mapping[str, object],
    ) -> None:
        """Records that a step is done."""
        held = dict(self.evidence(step))
        record = self._record(
            step, "done", seconds=seconds, result=result, evidence={**held, **evidence}
        )
        self.write([record, *also])

    def _record(
        self,
        step: Step,
        state: str,
        *,
        seconds: float = 0.0,
        result: str = "",
        evidence: Mapping[str, object] | None = None,
    ) -> StepRecord:
        return StepRecord.model_validate(
            {
                "link": self.header.link,
                "id": self.header.id,
                "step": step.value,
                "state": state,
                "at_ms": self.now_ms(),
                "by": self.header.by,
                "seconds": seconds,
                "result": result,
                "evidence": dict(evidence or {}),
            }
        )

    # Writing.

    def write(self, records: Sequence[Record]) -> None:
        """Writes records on the journal cluster, all or nothing.

        Raises:
            TakenOverError: another operator has the transition now.
            ReplicatorError: the journal cluster does not answer; the records must be read again.
        """
        entries = [record.encode() for record in records]
        self._write(entries)
        self.state = self.state.fold(entries)

    def erase(self, record: Record) -> None:
        """Deletes a record."""
        self._write([record.tombstone()])
        self.state = self.state.fold([record.tombstone()])

    def _write(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        refused: FencedError | TransientBrokerError | None = None
        for _ in range(ATTEMPTS):
            try:
                self._own()
                self._writer.write(entries)
            except (FencedError, TransientBrokerError) as error:
                refused = error
                self._reopen()
            except ReplicatorError:
                self._reopen()  # after a commit without an answer the writer would take over by itself
                raise
            else:
                return
        if isinstance(refused, TransientBrokerError):
            raise refused
        raise self._keep_taking_over()

    def _keep_taking_over(self) -> TakenOverError:
        return TakenOverError(
            "other operators keep taking over", subject=self.header.link,
            remedy="Agree on one of them, then resume.",
        )  # fmt: skip

    def _own(self) -> None:
        """Fences other writers unless that was done, and looks what they wrote before.

        Raises:
            TakenOverError: one of them has the transition.
        """
        if self._owned:
            return
        self.check_ours()  # first, so that nobody is fenced for nothing
        self._fence_others()
        self.check_ours()
        self._owned = True

    def _fence_others(self) -> None:
        """No other writer writes from here on, and what is read next holds all that they wrote."""
        self._writer.open()
        self._reaches = self._writer.end()

    def check_ours(self) -> None:
        """Reads again whether this transition is still ours.

        Raises:
            TakenOverError: another operator has it, or it was ended.
            ReplicatorError: the journal cluster does not answer.
        """
        held = next(
            (one for one in self.refresh().transitions(self.header.link)
             if one.id == self.header.id), None,
        )  # fmt: skip
        if held is not None and (held.token != self.header.token or held.state != "open"):
            raise TakenOverError(
                f"{held.by} has taken this {held.kind} over (it is {held.state})",
                subject=self.header.link,
                remedy=f"Look at it: 'replicator history --link {held.link}'.",
            )

    def _reopen(self) -> None:
        self._owned = False
        self._writer.close()
        self._writer = open_writer(self._clusters, self._cluster)

    def write_to(self, cluster: ClusterPlan, records: Sequence[Record]) -> ReplicatorError | None:
        """Writes records on the other cluster as well, see ``write_once``; returns why that failed.

        Raises:
            TakenOverError: a fence that another operator has rolled back.
        """
        return self._write_to(cluster, records)

    def erase_on(self, cluster: ClusterPlan, record: Record) -> ReplicatorError | None:
        """Deletes a record on the other cluster as well; returns why that failed."""
        return self._write_to(cluster, [record], erase=True)

    def _write_to(
        self,
        cluster: ClusterPlan,
        records: Sequence[Record],
        *,
        erase: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> ReplicatorError | None:
        def last_look() -> None:
            check()
            if any(isinstance(one, FenceRecord) for one in records):
                self.check_ours()  # who rolled back meanwhile has removed the fence, with its record

        try:
            write_once(self._clusters, cluster, records, erase=erase, check=last_look)
        except (TakenOverError, WithdrawnError):
            raise
        except ReplicatorError as error:
            return error
        return None


def why_ended(one: TransitionRecord) -> str:
    """Why a transition is or was rolled back; empty otherwise."""
    return str(one.options.get(ROLLBACK_REASON, ""))
