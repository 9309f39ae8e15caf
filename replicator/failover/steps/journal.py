"""The journal of a transition: the lock of its link, every step before and after, and role records.

It is kept in the control topic of the cluster that survives, the journal cluster (``home``). All writes
carry one transactional id per link, so of two operators who write, the later one fences the earlier. A
fenced operator reads again: it continues while the token says that the transition is still its own.
"""

import secrets
from collections.abc import Mapping, Sequence

from replicator.clock import Clock
from replicator.control.records.base import Record
from replicator.control.records.role_records import RoleRecord, StepRecord, TransitionRecord
from replicator.control.roles.open_transitions import open_transition
from replicator.control.store.state import ControlState
from replicator.errors import (
    FencedError,
    RefusedError,
    ReplicatorError,
    TransientBrokerError,
)
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.failover.rules.locks import Lock
from replicator.failover.rules.machine import Step, TransitionProgress
from replicator.identifiers import control_topic, transition_transactional_id
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import ClusterPlan

ATTEMPTS = 3
ROLLBACK_REASON = "takingBack"
"""Among the options of a transition: why it is being rolled back."""


class TakenOverError(RefusedError):
    """Another operator has taken this transition over."""


class Journal:
    """Reads and writes for one transition; for one thread."""

    def __init__(self, clusters: LinkClusters, header: TransitionRecord, *, clock: Clock) -> None:
        self.header = header
        self.state = ControlState()
        self._clusters = clusters
        self._clock = clock
        self._cluster = clusters.plan.cluster(header.home)
        self._writer = self._open(self._cluster)

    def close(self) -> None:
        """Closes the connections; what is recorded stays."""
        self._writer.close()

    def now_ms(self) -> int:
        """Now, in milliseconds."""
        return round(self._clock.now() * 1000)

    # The lock.

    def begin(self) -> None:
        """Takes the lock of the link.

        Raises:
            RefusedError: another transition has it.
            ReplicatorError: the journal cluster does not answer.
        """
        admin = self._clusters.admin(self._cluster)
        ensure_compacted_topic(admin, control_topic(self._clusters.topology), partitions=1)
        refused: FencedError | TransientBrokerError | None = None
        for _ in range(ATTEMPTS):
            self.refresh()
            held = open_transition([self.state], self.header.link)
            if held is not None and held.id != self.header.id:
                raise Lock(held).refusal(self.now_ms())
            try:
                self._writer.open()
                self.refresh()  # what others wrote before we fenced them
                held = open_transition([self.state], self.header.link)
                if held is not None and held.id != self.header.id:
                    raise Lock(held).refusal(self.now_ms())
                self._writer.write([self.header.encode()])
            except (FencedError, TransientBrokerError) as error:
                # Nothing was written. Who came between us and the broker's answer shows when it is read again.
                refused = error
                self._reopen()
                continue
            self.state = self.state.fold([self.header.encode()])
            return
        if isinstance(refused, TransientBrokerError):
            raise refused
        raise RefusedError(
            "other operators keep starting transitions of this link",
            subject=self.header.link,
            remedy="Agree on one of them, then try again.",
        )

    def withdraw(self, reason: str) -> RefusedError:
        """Releases the lock before anything was done; returns the error for the operator."""
        options = {**self.header.options, ROLLBACK_REASON: reason}
        self.write([self.header.model_copy(update={"state": "rolled-back", "options": options})])
        return RefusedError(
            f"{reason}; nothing was changed", subject=self.header.link,
            remedy=f"Look at 'replicator history --link {self.header.link}', then ask again.",
        )  # fmt: skip

    def record_rollback(self, reason: str) -> None:
        """From now on this transition can only be rolled back, also by ``--resume``."""
        if ROLLBACK_REASON not in self.header.options:
            options = {**self.header.options, ROLLBACK_REASON: reason}
            self.header = self.header.model_copy(update={"options": options})
            self.write([self.header])

    def end_other(self, record: TransitionRecord) -> None:
        """Ends another transition of the link for good; its runner finds that out at its next write."""
        if record.home == self._cluster.alias:
            self._writer.write([record.encode()])
        else:
            self.write_to(self._clusters.plan.cluster(record.home), [record])

    def seize(self) -> None:
        """Takes an open transition over: the process that runs it now is fenced and finds a new token.

        Raises:
            RefusedError: it ended meanwhile.
        """
        self.header = self.header.model_copy(update={"token": secrets.token_hex(8)})
        self._writer.open()
        held = open_transition([self.refresh()], self.header.link)
        if held is None or held.id != self.header.id:
            raise RefusedError(
                "the transition ended before it could be taken over", subject=self.header.link,
                remedy=f"Look at 'replicator history --link {self.header.link}'.",
            )  # fmt: skip
        self._writer.write([self.header.encode()])
        self.refresh()

    def refresh(self) -> ControlState:
        """Reads the journal cluster's control topic again."""
        self.state = self._clusters.control(self._cluster, known_to_exist=True)
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
                self._writer.write(entries)
            except (FencedError, TransientBrokerError) as error:
                refused = error
                self._reopen()
                self.check_ours()
            else:
                return
        if isinstance(refused, TransientBrokerError):
            raise refused
        raise TakenOverError(
            "other operators keep taking over",
            subject=self.header.link,
            remedy="Agree on one of them, then resume.",
        )

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
        self._writer.close()
        self._writer = self._open(self._cluster)

    def _open(self, cluster: ClusterPlan) -> LogWriter:
        topology, link = self._clusters.topology, self.header.link
        return LogWriter(
            cluster,
            control_topic(topology),
            client_id=CLIENT_ID,
            transactional_id=transition_transactional_id(topology, link),
        )

    def write_to(self, cluster: ClusterPlan, records: Sequence[Record]) -> ReplicatorError | None:
        """Writes records on the other cluster as well; returns why that failed.

        A role older than the stored one is left out: another operator continued this transition
        while this process slept.
        """
        return self._write_to(cluster, records)

    def erase_on(self, cluster: ClusterPlan, record: Record) -> ReplicatorError | None:
        """Deletes a record on the other cluster as well; returns why that failed."""
        return self._write_to(cluster, [record], erase=True)

    def _write_to(
        self, cluster: ClusterPlan, records: Sequence[Record], *, erase: bool = False
    ) -> ReplicatorError | None:
        topic = control_topic(self._clusters.topology)
        try:
            with self._open(cluster) as writer:
                ensure_compacted_topic(self._clusters.admin(cluster), topic, partitions=1)
                writer.open()  # other writers are fenced from here on, so what is read next is final
                fresh = [one for one in records if not self._outdated(cluster, one)]
                writer.write([one.tombstone() if erase else one.encode() for one in fresh])
        except ReplicatorError as error:
            return error
        return None

    def _outdated(self, cluster: ClusterPlan, record: Record) -> bool:
        if not isinstance(record, RoleRecord):
            return False
        held = self._clusters.control(cluster, known_to_exist=True).role(record.link)
        return held is not None and held.role().rank > record.role().rank


def why_ended(one: TransitionRecord) -> str:
    """Why a transition is or was rolled back; empty otherwise."""
    return str(one.options.get(ROLLBACK_REASON, ""))
