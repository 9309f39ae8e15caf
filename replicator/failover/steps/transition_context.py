"""What the steps of one transition share: clusters, journal, roles and progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.clock import Clock
from replicator.control.records.role_records import FenceRecord, RoleRecord
from replicator.control.roles.open_transitions import newest_role, overtaken
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.external.hooks import hook_evidence, run_hooks
from replicator.failover.report.report import Loss
from replicator.failover.rules.machine import Step
from replicator.failover.rules.next_role import next_role, stands
from replicator.failover.rules.request import Answer, OnStep, StepEvent, TransitionRequest
from replicator.failover.steps.journal import Journal, TakenOverError
from replicator.policy.procedure import Fencing, Moment
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role, RoleState, first_role, role_in_force


class RollBackError(ReplicatorError):
    """A step found that the transition must be rolled back."""

    code = "REFUSED"
    exit_code = 3


@dataclass(slots=True)
class TransitionContext:
    """One run of one transition; for one thread.

    Attributes:
        fencing: the method in force; None where the link declares none and none is needed (failover).
        answer: asks the operator once more before a failback ends with a switchover.
        loss: as it was stated; exact once that is possible.
    """

    clusters: LinkClusters
    journal: Journal
    request: TransitionRequest
    clock: Clock
    on_step: OnStep
    fencing: Fencing | None
    loss: Loss = field(default_factory=Loss)
    answer: Answer = field(default=lambda _: True)

    @property
    def journal_cluster(self) -> ClusterPlan:
        """The cluster that has the journal."""
        return self.clusters.plan.cluster(self.journal.header.home)

    @property
    def other_cluster(self) -> ClusterPlan:
        """The other cluster."""
        return self.clusters.other(self.journal_cluster)

    def notify(self, step: Step, text: str) -> None:
        """Progress within a step."""
        self.on_step(StepEvent(step.value, "progress", text))

    # Roles.

    def _states(self) -> list[ControlState]:
        """What both clusters have on record as far as they answer, the journal's as it was read last."""
        states = [self.journal.state]
        if self.clusters.answers(self.other_cluster):
            try:
                states.append(self.clusters.control(self.other_cluster))
            except ReplicatorError as error:
                self.clusters.silent[str(self.other_cluster.alias)] = error
        return states

    def _role_in(self, states: list[ControlState]) -> Role:
        name = self.clusters.link.name
        seen = (record.role() for state in states if (record := state.role(name)) is not None)
        return role_in_force(self.clusters.link, seen)

    def role(self) -> Role:
        """The role in force, by the records of both clusters as far as they answer."""
        return self._role_in(self._states())

    def transition_owns_role(self) -> bool:
        """Whether the role in force was written by this transition."""
        newest = newest_role(self._states(), self.clusters.link.name)
        return newest is not None and newest.transition == self.journal.header.id

    def _refuse_overtaken(self, newest: RoleRecord | None) -> None:
        if newest is not None and overtaken(self.journal.header, newest):
            raise TakenOverError(
                f"the link has moved on without this {self.journal.header.kind}: {newest.active} is "
                f"active in epoch {newest.epoch}, by {newest.by}",
                subject=self.clusters.link.name,
                remedy="Nothing more was changed. Look at 'replicator history'.",
            )

    def role_record(self, active: ClusterPlan, state: RoleState, reason: str) -> RoleRecord:
        """The record of that role: the stored one if it says so already, else the next one.

        Raises:
            TakenOverError: another transition began an epoch since this one had begun.
        """
        held = newest_role(self._states(), self.clusters.link.name)
        transition = self.journal.header.id
        if held is not None and stands(
            held, active=active.alias, state=state, transition=transition
        ):
            return held
        self._refuse_overtaken(held)
        now = held.role() if held is not None else first_role(self.clusters.link)
        return next_role(
            now, active=active.alias, state=state, at_ms=self.journal.now_ms(),
            by=self.journal.header.by, reason=reason, transition=transition,
        )  # fmt: skip

    def write_to_other_cluster(self, record: RoleRecord, *, needed: bool) -> None:
        """Writes the role to the other cluster as well.

        Raises:
            ReplicatorError: it is needed there and could not be written.
        """
        if not needed and not self.clusters.answers(self.other_cluster):
            return
        error = self.journal.write_to(self.other_cluster, [record])
        if error is not None:
            if needed:
                raise error
            self.clusters.silent[str(self.other_cluster.alias)] = error

    def write_role(
        self, active: ClusterPlan, state: RoleState, reason: str, *, needed: bool
    ) -> RoleRecord:
        """Writes a role on both clusters, the journal's first."""
        record = self.role_record(active, state, reason)
        self.journal.write([record])
        self.write_to_other_cluster(record, needed=needed)
        return record

    # Fences on record.

    def standing(self, cluster: ClusterPlan) -> tuple[FenceRecord | None, Role]:
        """The fence of a cluster as it was recorded last, and the role in force.

        Raises:
            TakenOverError: the link has moved on: the cluster to be fenced may be the active one now.
            ReplicatorError: the cluster does not say what it has on record: rules that are ours would be taken for others'.
        """
        self.clusters.silent.pop(str(cluster.alias), None)
        states = self._states()
        if (silent := self.clusters.silent.get(str(cluster.alias))) is not None:
            raise silent
        self._refuse_overtaken(newest_role(states, self.clusters.link.name))
        return self._fence_in(states, cluster), self._role_in(states)

    def fence_record(self, cluster: ClusterPlan) -> FenceRecord | None:
        """The fence of a cluster as it was recorded last, with the rules that any record names."""
        states = [self.journal.state]
        if self.clusters.answers(self.other_cluster):
            states.append(self.clusters.control(self.other_cluster))
        return self._fence_in(states, cluster)

    def _fence_in(self, states: list[ControlState], cluster: ClusterPlan) -> FenceRecord | None:
        """The two clusters may hold records of different transitions: one was out of reach when it was removed."""
        name = self.clusters.link.name
        found = [held for one in states if (held := one.fence(name, cluster.alias)) is not None]
        if not found:
            return None
        # Of the same moment the one that says more: a copy on the fenced cluster stays an intent.
        newest = max(found, key=lambda one: (one.at_ms, one.state == "held"))
        rules = tuple(dict.fromkeys(rule for one in found for rule in one.denials))
        return newest.model_copy(update={"denials": rules})

    def forget_fence(self, record: FenceRecord) -> None:
        """Deletes the record of a fence that was removed, on both clusters."""
        self.journal.erase(record)
        if self.clusters.answers(self.other_cluster):
            self.journal.erase_on(self.other_cluster, record)

    # Hooks.

    def hooks(self, step: Step, moment: Moment) -> list[dict[str, object]]:
        """Runs the hooks of a moment unless they ran; returns their evidence.

        Raises:
            RollBackError: one failed, and the transition can still be rolled back.
        """
        held = self.journal.evidence(step).get(moment)
        if isinstance(held, list):
            return held
        header = self.journal.header
        context: Mapping[str, str] = {
            "link": header.link, "from": header.source, "to": header.target,
            "transition": header.id, "kind": header.kind, "epoch": str(self.role().epoch),
        }  # fmt: skip
        ran = run_hooks(self.clusters.link.procedure, moment, context)
        for one in ran:
            self.notify(
                step, f"hook {one.name}: {'done' if one.ok else 'failed'} {one.output}".strip()
            )
        if moment != "after-promote" and header.kind != "failover":
            for one in ran:
                if not one.ok:
                    raise RollBackError(f"the {moment} hook {one.name} failed: {one.output}")
        return hook_evidence(ran)
