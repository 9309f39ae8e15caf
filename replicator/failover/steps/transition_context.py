"""What the steps of one transition share: sides, journal, roles, and telling people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.clock import Clock
from replicator.control.store.role_records import FenceRecord, RoleRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.hooks import hook_evidence, run_hooks
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.rules.locks import overtaken
from replicator.failover.rules.machine import Step
from replicator.failover.rules.next_role import next_role, stands
from replicator.failover.rules.report import Loss
from replicator.failover.rules.request import OnStep, StepEvent, TransitionRequest
from replicator.failover.steps.journal import Journal, TakenOverError
from replicator.policy.procedure import Fencing, Moment
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role, RoleState, first_role, role_in_force


class RollBackError(ReplicatorError):
    """A step found out that the transition must be taken back."""

    code = "REFUSED"
    exit_code = 3


@dataclass(slots=True)
class TransitionContext:
    """One run of one transition; for one thread.

    Attributes:
        fencing: the method in force; None where the operator needs none (failover).
        loss: as it was stated, and made exact where that became possible.
    """

    sides: LinkClusters
    journal: Journal
    request: TransitionRequest
    clock: Clock
    on_step: OnStep
    fencing: Fencing | None
    loss: Loss = field(default_factory=Loss)

    @property
    def home(self) -> ClusterPlan:
        """The side that has the journal."""
        return self.sides.plan.cluster(self.journal.header.home)

    @property
    def away(self) -> ClusterPlan:
        """The other side."""
        return self.sides.other(self.home)

    def say(self, step: Step, text: str) -> None:
        """Progress within a step."""
        self.on_step(StepEvent(step.value, "says", text))

    # Roles.

    def role(self) -> Role:
        """The role in force, by the journal's side and by the other where it answers."""
        records = self._role_records()
        return role_in_force(self.sides.link, [record.role() for record in records])

    def _role_records(self) -> list[RoleRecord]:
        states = [self.journal.state]
        if self.sides.answers(self.away):
            try:
                states.append(self.sides.control(self.away))
            except ReplicatorError as error:
                self.sides.silent[str(self.away.alias)] = error
        name = self.sides.link.name
        return [record for state in states if (record := state.role(name)) is not None]

    def transition_owns_role(self) -> bool:
        """Whether the role in force was written by this transition."""
        records = self._role_records()
        newest = max(records, key=lambda record: record.role().rank, default=None)
        return newest is not None and newest.transition == self.journal.header.id

    def role_record(self, active: ClusterPlan, state: RoleState, reason: str) -> RoleRecord:
        """The record that says so: the one that stands already, or the next one.

        Raises:
            TakenOverError: another transition began an epoch since this one had begun.
        """
        records = self._role_records()
        transition = self.journal.header.id
        held = max(records, key=lambda record: record.role().rank, default=None)
        if held is not None and stands(
            held, active=active.alias, state=state, transition=transition
        ):
            return held
        if held is not None and overtaken(self.journal.header, held):
            raise TakenOverError(
                f"the link has gone on without this {self.journal.header.kind}: {held.active} is "
                f"active in epoch {held.epoch}, by {held.by}",
                subject=self.sides.link.name,
                remedy="Nothing more is done. Look at 'replicator history'.",
            )
        now = held.role() if held is not None else first_role(self.sides.link)
        return next_role(
            now, active=active.alias, state=state, at_ms=self.journal.now_ms(),
            by=self.journal.header.by, reason=reason, transition=transition,
        )  # fmt: skip

    def write_to_other_cluster(self, record: RoleRecord, *, needed: bool) -> None:
        """Puts the role on the other side as well.

        Raises:
            ReplicatorError: it is needed there and could not be written.
        """
        if not needed and not self.sides.answers(self.away):
            return
        error = self.journal.tell(self.away, [record])
        if error is not None:
            if needed:
                raise error
            self.sides.silent[str(self.away.alias)] = error

    def turn_role(
        self, active: ClusterPlan, state: RoleState, reason: str, *, needed: bool
    ) -> RoleRecord:
        """Writes a role on both sides, the journal's first."""
        record = self.role_record(active, state, reason)
        self.journal.write([record])
        self.write_to_other_cluster(record, needed=needed)
        return record

    # Fences on record.

    def fence_record(self, cluster: ClusterPlan) -> FenceRecord | None:
        """The fence on a side, wherever it is on record."""
        name = self.sides.link.name
        held = self.journal.state.fence(name, cluster.alias)
        if held is None and self.sides.answers(self.away):
            held = self.sides.control(self.away).fence(name, cluster.alias)
        return held

    def forget_fence(self, record: FenceRecord) -> None:
        """The fence is down: its record goes, on both sides."""
        self.journal.erase(record)
        if self.sides.answers(self.away):
            self.journal.tell_erased(self.away, record)

    # Hooks.

    def hooks(self, step: Step, moment: Moment) -> list[dict[str, object]]:
        """Runs the hooks of a moment unless they ran; returns what they said.

        Raises:
            RollBackError: one failed, and the procedure can still be taken back.
        """
        held = self.journal.evidence(step).get(moment)
        if isinstance(held, list):
            return held
        header = self.journal.header
        context: Mapping[str, str] = {
            "link": header.link, "from": header.source, "to": header.target,
            "transition": header.id, "kind": header.kind, "epoch": str(self.role().epoch),
        }  # fmt: skip
        ran = run_hooks(self.sides.link.procedure, moment, context)
        for one in ran:
            self.say(
                step, f"hook {one.name}: {'done' if one.ok else 'failed'} {one.output}".strip()
            )
        if moment != "after-promote" and header.kind != "failover":
            for one in ran:
                if not one.ok:
                    raise RollBackError(f"the {moment} hook {one.name} failed: {one.output}")
        return hook_evidence(ran)
