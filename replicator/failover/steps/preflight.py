"""Verdicts before anything is changed: each check with its reason and its remedy."""

from dataclasses import dataclass, field

from replicator.clock import Clock
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import check_fencing
from replicator.failover.clusters.groups_move import GroupMove
from replicator.failover.clusters.lag import (
    log_ends,
    measure_lag,
    oldest_missing_seconds,
    stored_checkpoints,
)
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.rules.directions import UNFINISHED
from replicator.failover.rules.loss import loss_by_contact, loss_by_ends, unknown_loss
from replicator.failover.rules.report import Check, Loss
from replicator.failover.rules.request import TransitionRequest
from replicator.identifiers import is_canary_topic, membership_group
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role

MOVING_SECONDS = 5.0


@dataclass(slots=True)
class Preflight:
    """Checks of one transition before it begins; for one thread."""

    sides: LinkClusters
    request: TransitionRequest
    role: Role
    clock: Clock
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way."""
        return all(check.ok for check in self.checks)

    def _add(self, check: str, *, ok: bool, detail: str, remedy: str = "") -> None:
        self.checks.append(Check(check, ok=ok, detail=detail, remedy=remedy))

    def reachable(self, *clusters: ClusterPlan) -> bool:
        """Whether sides that are needed answer."""
        for cluster in clusters:
            error = self.sides.silent.get(str(cluster.alias))
            self._add(
                f"{cluster.alias} answers",
                ok=error is None,
                detail="yes" if error is None else error.message,
                remedy="" if error is None else _unreachable_remedy(self, cluster),
            )
        return self.ok

    def switchover(self) -> None:
        """A planned change: nothing may be lost, so everything is looked at."""
        if not self.reachable(self.sides.new, self.sides.old):
            return
        self._add(
            "role", ok=self.role.state == "mirroring",
            detail=f"{self.role.active} is active in epoch {self.role.epoch}, {self.role.state}",
            remedy="" if self.role.state == "mirroring" else
            f"Finish that first: replicator failback --link {self.sides.link.name}",
        )  # fmt: skip
        try:
            self.checks.append(
                check_fencing(
                    self.sides, self.sides.old, self.sides.link.procedure.fencing,
                    manual=self.request.manual_fence,
                )
            )  # fmt: skip
            self._copying(self.sides.control(self.sides.new))
            self._groups()
        except ReplicatorError as error:
            self._add("look", ok=False, detail=error.message, remedy=error.remedy)

    def _copying(self, control: ControlState) -> None:
        sides = self.sides
        source, flow = sides.old.alias, sides.flow(sides.old)
        refused = [
            record.topic
            for record in control.topics(source, sides.link.name)
            if record.state == "refused"
        ]
        self._add(
            "topics", ok=not refused,
            detail=f"not copied: {', '.join(refused[:3])}" if refused else "every topic is copied",
            remedy="Look at 'replicator status'; mend or exclude it." if refused else "",
        )  # fmt: skip
        seeds = control.seeds(source, sides.link.name)
        unfinished = [one for one in seeds if one.purpose == "history" and one.state != "done"]
        self._add(
            "history", ok=not unfinished,
            detail=f"Spark still copies {len(unfinished)} partitions" if unfinished else
            "no bulk copy is under way",
            remedy=f"Wait for it, or let lanes go on: replicator bulk-sync --flow '{flow.id}' --release"
            if unfinished else "",
        )  # fmt: skip
        paused = [one for one in control.pauses(flow.id) if one.link in {None, sides.link.name}]
        group = sides.admin(sides.new).describe_group(
            membership_group(sides.topology, sides.old.alias)
        )
        worked = bool(group.members) or flow.policy.runtime == "spark"
        if paused or not worked:
            self._add(
                "copying", ok=False,
                detail=f"{flow.id} is paused" if paused else f"no worker runs {flow.id}",
                remedy=f"replicator {'resume' if paused else 'run'} --flow '{flow.id}'",
            )  # fmt: skip
            return
        first = sum(measure_lag(sides, sides.old).values())
        moves = first == 0 or self._lag_moves()
        self._add(
            "copying", ok=moves,
            detail=f"{first} records to copy" + ("" if moves else ", and it does not move"),
            remedy="" if moves else "Look at 'replicator status' for what holds it up.",
        )  # fmt: skip

    def _lag_moves(self) -> bool:
        before = {k: c.offset for k, c in stored_checkpoints(self.sides, self.sides.old).items()}
        deadline = self.clock.monotonic() + MOVING_SECONDS
        while self.clock.monotonic() < deadline:
            self.clock.sleep(0.2)
            now = {k: c.offset for k, c in stored_checkpoints(self.sides, self.sides.old).items()}
            if now != before or sum(measure_lag(self.sides, self.sides.old).values()) == 0:
                return True
        return False

    def _groups(self) -> None:
        move = GroupMove(self.sides, clock=self.clock)
        try:
            seen = move.round(commit=False)
        finally:
            move.close()
        live = seen.live_on_new
        self._add(
            "groups off the new side", ok=not live or self.request.live_groups,
            detail=f"at work there: {', '.join(live[:5])}" if live else "nobody is at work there",
            remedy="Stop them, so that their positions can be carried over; or --live-groups keeps "
            "the positions they have." if live else "",
        )  # fmt: skip
        broken = [
            one.group
            for one in seen.report.groups
            if any(part.grade == "unavailable" for part in one.partitions)
        ]
        self._add(
            "groups translatable", ok=not broken,
            detail=f"not: {', '.join(broken[:5])}" if broken else
            f"{len(seen.report.groups)} groups",
            remedy="Look at 'replicator groups'." if broken else "",
        )  # fmt: skip

    def failover(self) -> Loss:
        """An unplanned one: the new side must answer, and what is lost is stated."""
        if not self.reachable(self.sides.new):
            return Loss(exact=False, known=False)
        old = self.sides.old
        silent = self.sides.silent.get(str(old.alias))
        self._add(
            f"{old.alias} answers", ok=True,
            detail="yes: a switchover would lose nothing" if silent is None else silent.message,
        )  # fmt: skip
        loss = self.loss()
        stated = f"{loss.records} records, {loss.seconds:.1f} s"
        if not loss.exact:
            stated = f"about {stated} at most, by the last contact" if loss.known else "not known"
        needed = loss.records > 0 or not loss.known
        self._add(
            "loss", ok=self.request.accept_loss or not needed, detail=stated,
            remedy="" if self.request.accept_loss or not needed else
            "State --accept-loss to go on without them.",
        )  # fmt: skip
        return loss

    def loss(self) -> Loss:
        """What is on the old side and not on the new one, as well as it can be known.

        Raises:
            ReplicatorError: the new side does not answer.
        """
        sides = self.sides
        if sides.answers(sides.old):
            try:
                ends = log_ends(sides, sides.old)
                lag = measure_lag(sides, sides.old, ends)
                ages = oldest_missing_seconds(sides, lag, ends, clock=self.clock)
                return loss_by_ends(lag, ages)
            except ReplicatorError as error:
                sides.silent[str(sides.old.alias)] = error
        control = sides.control(sides.new)
        checkpoints = stored_checkpoints(sides, sides.old)
        contact = control.contact(sides.old.alias, sides.link.name)
        if contact is None:
            topics = control.topics(sides.old.alias, sides.link.name)
            return unknown_loss([one.topic for one in topics if not is_canary_topic(one.topic)])
        positions = {key: checkpoint.offset for key, checkpoint in checkpoints.items()}
        return loss_by_contact(contact, positions, now_ms=round(self.clock.now() * 1000))

    def leaving(self) -> Loss:
        """On a link without an active side: groups move, and what they would miss is stated."""
        if self.request.kind == "failover":
            return self.failover()
        if self.reachable(self.sides.old, self.sides.new):
            try:
                self._groups()
            except ReplicatorError as error:
                self._add("look", ok=False, detail=error.message, remedy=error.remedy)
        return Loss()

    def failback(self) -> None:
        """The old side is back: both must answer, and the link must have been failed over."""
        if not self.reachable(self.sides.old, self.sides.new):
            return
        ok = self.role.state in {"promoted", "salvaging", "realigning"}
        self._add(
            "role", ok=ok,
            detail=f"{self.role.active} is active in epoch {self.role.epoch}, {self.role.state}",
            remedy="" if ok else f"The link was not failed over; to turn it: replicator switchover "
            f"--link {self.sides.link.name} --to {self.sides.new.alias}",
        )  # fmt: skip
        if self.request.and_switch:
            try:
                self.checks.append(
                    check_fencing(
                        self.sides, self.sides.old, self.sides.link.procedure.fencing,
                        manual=self.request.manual_fence,
                    )
                )  # fmt: skip
            except ReplicatorError as error:
                self._add("fencing", ok=False, detail=error.message, remedy=error.remedy)


def _unreachable_remedy(preflight: Preflight, cluster: ClusterPlan) -> str:
    link = preflight.sides.link.name
    lost = f"If it is lost: replicator failover --link {link} --to"
    if preflight.request.kind == "switchover" and cluster == preflight.sides.old:
        return f"{lost} {preflight.sides.new.alias}"
    if preflight.request.kind == "failover" and preflight.role.state in UNFINISHED:
        return f"{lost} {preflight.sides.old.alias}"  # its writers are fenced, the journal is gone
    return "Bring it back; nothing was changed."
