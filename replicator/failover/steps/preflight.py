"""The checks before anything is changed, each with its reason and its remedy."""

from dataclasses import dataclass, field, replace

from replicator.clock import Clock
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import check_fencing
from replicator.failover.clusters.groups_move import GroupMove
from replicator.failover.clusters.lag import (
    log_ends,
    measure_backlog,
    oldest_missing_seconds,
    recorded_topics,
    stored_checkpoints,
)
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.clusters.returned import SHORT_REMEDY, lost_by_returning
from replicator.failover.clusters.source_transactions import name_transactions
from replicator.failover.report.backlog import unknown_words
from replicator.failover.report.loss import loss_by_backlog, loss_by_contact, unknown_loss
from replicator.failover.report.report import Check, Loss
from replicator.failover.rules.directions import UNFINISHED
from replicator.failover.rules.request import TransitionRequest
from replicator.identifiers import membership_group
from replicator.topology.plan import ClusterPlan
from replicator.topology.roles import Role

MOVING_SECONDS = 5.0


@dataclass(slots=True)
class Preflight:
    """Checks of one transition before it begins; for one thread."""

    clusters: LinkClusters
    request: TransitionRequest
    role: Role
    clock: Clock
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    def _add(self, check: str, *, ok: bool, detail: str, remedy: str = "") -> None:
        self.checks.append(Check(check, ok=ok, detail=detail, remedy=remedy))

    def reachable(self, *clusters: ClusterPlan) -> bool:
        """Whether clusters that are needed answer."""
        for cluster in clusters:
            error = self.clusters.silent.get(str(cluster.alias))
            self._add(
                f"{cluster.alias} answers",
                ok=error is None,
                detail="yes" if error is None else error.message,
                remedy="" if error is None else _unreachable_remedy(self, cluster),
            )
        return self.ok

    def switchover(self) -> None:
        """A planned change: nothing may be lost, so everything is checked."""
        if not self.reachable(self.clusters.new, self.clusters.old):
            return
        self._add(
            "role", ok=self.role.state == "mirroring",
            detail=f"{self.role.active} is active in epoch {self.role.epoch}, {self.role.state}",
            remedy="" if self.role.state == "mirroring" else
            f"Finish that first: replicator failback --link {self.clusters.link.name}",
        )  # fmt: skip
        try:
            self._fencing()
            self._copying(self.clusters.control(self.clusters.new))
            self._groups()
        except ReplicatorError as error:
            self._add("look", ok=False, detail=error.message, remedy=error.remedy)

    def _copying(self, control: ControlState) -> None:
        clusters = self.clusters
        source, flow = clusters.old.alias, clusters.flow(clusters.old)
        refused = [
            record.topic
            for record in control.topics(source, clusters.link.name)
            if record.state == "refused"
        ]
        self._add(
            "topics", ok=not refused,
            detail=f"not copied: {', '.join(refused[:3])}" if refused else "every topic is copied",
            remedy="Look at 'replicator status'; correct or exclude the topic." if refused else "",
        )  # fmt: skip
        seeds = control.seeds(source, clusters.link.name)
        unfinished = [one for one in seeds if one.purpose == "history" and one.state != "done"]
        self._add(
            "history", ok=not unfinished,
            detail=f"Spark still copies {len(unfinished)} partitions" if unfinished else
            "no bulk copy is under way",
            remedy=f"Wait for it, or let lanes continue: replicator bulk-sync --flow '{flow.id}' --release"
            if unfinished else "",
        )  # fmt: skip
        backlog = measure_backlog(clusters, clusters.old)
        self._add(
            "partitions", ok=not backlog.unknown,
            detail=f"not known what is left to copy: {unknown_words(backlog.unknown)}"
            if backlog.unknown else "every partition is known",
            remedy="Correct that first: 'replicator status' shows what stopped." if backlog.unknown
            else "",
        )  # fmt: skip
        if backlog.open_from:
            refuse = self.request.open_transactions == "refuse"
            then = "aborts them" if self.request.open_transactions == "fence" else "waits for them"
            self._add(
                "open transactions", ok=not refuse,
                detail=name_transactions(clusters.old, backlog.open_from)
                + ("" if refuse else f"; the switchover {then}"),
                remedy="Let applications end them, or give --open-transactions wait or fence."
                if refuse else "",
            )  # fmt: skip
        paused = [one for one in control.pauses(flow.id) if one.link in {None, clusters.link.name}]
        group = clusters.admin(clusters.new).describe_group(
            membership_group(clusters.topology, clusters.old.alias)
        )
        worked = bool(group.members) or flow.policy.runtime == "spark"
        if paused or not worked:
            self._add(
                "copying", ok=False,
                detail=f"{flow.id} is paused" if paused else f"no worker runs {flow.id}",
                remedy=f"replicator {'resume' if paused else 'run'} --flow '{flow.id}'",
            )  # fmt: skip
            return
        first = backlog.total
        moves = first == 0 or self._lag_moves()
        self._add(
            "copying", ok=moves,
            detail=f"{first} records to copy" + ("" if moves else ", and none was copied while we looked"),
            remedy="" if moves else "Look at 'replicator status' for the reason.",
        )  # fmt: skip

    def _lag_moves(self) -> bool:
        before = {
            k: c.offset for k, c in stored_checkpoints(self.clusters, self.clusters.old).items()
        }
        deadline = self.clock.monotonic() + MOVING_SECONDS
        while self.clock.monotonic() < deadline:
            self.clock.sleep(0.2)
            now = {
                k: c.offset for k, c in stored_checkpoints(self.clusters, self.clusters.old).items()
            }
            if now != before or measure_backlog(self.clusters, self.clusters.old).known == 0:
                return True
        return False

    def _groups(self) -> None:
        move = GroupMove(self.clusters, clock=self.clock)
        try:
            seen = move.round(commit=False)
        finally:
            move.close()
        live = seen.live_on_new
        self._add(
            "groups off the new side", ok=not live or self.request.live_groups,
            detail=f"members there: {', '.join(live[:5])}" if live else "no group has members there",
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
        """An unplanned change: the new cluster must answer, and the loss is stated."""
        if not self.reachable(self.clusters.new):
            return Loss(exact=False, known=False)
        old = self.clusters.old
        silent = self.clusters.silent.get(str(old.alias))
        self._add(
            f"{old.alias} answers", ok=True,
            detail="yes: a switchover would lose nothing" if silent is None else silent.message,
        )  # fmt: skip
        loss = self.loss()
        needed = loss.records > 0 or not loss.known
        self._add(
            "loss", ok=self.request.accept_loss or not needed, detail=loss.words(),
            remedy="" if self.request.accept_loss or not needed else
            "Give --accept-loss to proceed without them.",
        )  # fmt: skip
        return loss

    def loss(self) -> Loss:
        """What is on the old cluster and not on the new one, as far as it is known.

        Raises:
            ReplicatorError: the new cluster does not answer.
        """
        clusters = self.clusters
        if clusters.answers(clusters.old):
            try:
                ends = log_ends(clusters, clusters.old)
                backlog = measure_backlog(clusters, clusters.old, ends)
                ages = oldest_missing_seconds(clusters, backlog.records, ends, clock=self.clock)
                return loss_by_backlog(backlog, ages)
            except ReplicatorError as error:
                clusters.silent[str(clusters.old.alias)] = error
        control = clusters.control(clusters.new)
        checkpoints = stored_checkpoints(clusters, clusters.old)
        contact = control.contact(clusters.old.alias, clusters.link.name)
        topics = recorded_topics(clusters, clusters.old)
        if contact is None:
            return unknown_loss(topics)
        # This transition's own promotion does not make the contact one of another time.
        began_ms = self.role.since_ms if self.role.active == clusters.old.alias else 0
        return loss_by_contact(
            contact, checkpoints, now_ms=round(self.clock.now() * 1000), since_ms=began_ms,
            old_seconds=self.request.contact_seconds, topics=topics,
        )  # fmt: skip

    def leaving(self) -> Loss:
        """On a link without an active cluster: groups move, and the loss is stated."""
        if self.request.kind == "failover":
            return self.failover()
        if self.reachable(self.clusters.old, self.clusters.new):
            try:
                self._groups()
            except ReplicatorError as error:
                self._add("look", ok=False, detail=error.message, remedy=error.remedy)
        return Loss()

    def failback(self) -> Loss:
        """The old cluster is back: both must answer, and the link must have been failed over.

        Returns the unreplicated tail, a bound: what it has beyond what was copied from it.
        """
        if not self.reachable(self.clusters.old, self.clusters.new):
            return Loss()
        ok = self.role.state in {"promoted", "salvaging", "realigning"}
        self._add(
            "role", ok=ok,
            detail=f"{self.role.active} is active in epoch {self.role.epoch}, {self.role.state}",
            remedy="" if ok else f"The link was not failed over; to reverse it: replicator switchover "
            f"--link {self.clusters.link.name} --to {self.clusters.new.alias}",
        )  # fmt: skip
        try:
            short = lost_by_returning(self.clusters)
        except ReplicatorError as error:
            self._add("returning data", ok=False, detail=error.message, remedy=error.remedy)
        else:
            self._add(
                "returning data", ok=not short,
                detail=f"{self.clusters.new.alias} lost records that it had given: "
                f"{unknown_words(short)}" if short else
                f"{self.clusters.new.alias} has everything that was copied from it",
                remedy=SHORT_REMEDY if short else "",
            )  # fmt: skip
        tail = self._tail()
        if self.request.and_switch:
            try:
                self._fencing()
            except ReplicatorError as error:
                self._add("fencing", ok=False, detail=error.message, remedy=error.remedy)
        return tail

    def _fencing(self) -> None:
        self.checks.append(
            check_fencing(
                self.clusters, self.clusters.old, self.clusters.link.procedure.fencing,
                manual=self.request.manual_fence,
            )
        )  # fmt: skip

    def _tail(self) -> Loss:
        """The tail by topic, listed before anything is decided about it."""
        clusters = self.clusters
        try:
            backlog = measure_backlog(clusters, clusters.new)
        except ReplicatorError as error:
            self._add("tail", ok=False, detail=error.message, remedy=error.remedy)
            return Loss(exact=False, known=False)
        loss = replace(loss_by_backlog(backlog), exact=False)
        listed = "; ".join(
            f"{one.topic}: {one.records} ({self._choice(one.topic)})"
            for one in loss.topics
            if one.records
        )
        detail = f"at most {loss.records} records never reached {clusters.old.alias}"
        self._add("tail", ok=True, detail=f"{detail}: {listed}" if listed else detail)
        return loss

    def _choice(self, topic: str) -> str:
        return self.request.tail_topics.get(topic, self.request.tail)


def _unreachable_remedy(preflight: Preflight, cluster: ClusterPlan) -> str:
    link = preflight.clusters.link.name
    lost = f"If it is lost: replicator failover --link {link} --to"
    if preflight.request.kind == "switchover" and cluster == preflight.clusters.old:
        return f"{lost} {preflight.clusters.new.alias}"
    if preflight.request.kind == "failover" and preflight.role.state in UNFINISHED:
        return (
            f"{lost} {preflight.clusters.old.alias}"  # its writers are fenced, the journal is gone
        )
    return "Bring it back; nothing was changed."
