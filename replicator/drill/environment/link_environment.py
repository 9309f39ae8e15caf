"""A drill on a real link: with a topic and a group of its own, and the operator's programs as faults.

The program that ends a fault runs in any case, also when the drill is aborted.
"""

import contextlib
import functools
import secrets
from collections.abc import Mapping
from typing import Any

from replicator.clock import Clock
from replicator.control.status.collect import collect_status
from replicator.drill.environment.environment import Notify, Scene
from replicator.drill.environment.scene import link_of, naming_of, pair_of
from replicator.drill.file.abort_conditions import StatusLook, Watch, look_at
from replicator.drill.file.errors import AbortedError
from replicator.drill.file.plan import ROLE_KINDS, Drill
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.request import OnStep, TransitionRequest
from replicator.failover.run.runner import run_transition
from replicator.identifiers import DRILL_TOPICS
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.kafka.clients.settings import LOGIN, client_config, user_settings
from replicator.policy.copies.selection import matcher
from replicator.programs import run_program
from replicator.testing.kit.endpoints import RemoteCluster
from replicator.testing.kit.waiting import wait_until
from replicator.topology.plan import ClusterPlan, Plan

CLIENT_ID = "replicator-drill"
READY_SECONDS = 120.0
COMMAND_SECONDS = 300.0


class LinkEnvironment(contextlib.ExitStack):
    """An ``Environment`` on a real link; a context manager that deletes its own topic.

    Args:
        drill: the drill.
        plan: the topology with its flows as roles have them now.
        file_plan: the topology as the file has it, which role changes start from.
        clock: time as a dependency.
        notify: called with what is set up and deleted.
    """

    def __init__(
        self,
        drill: Drill,
        plan: Plan,
        *,
        file_plan: Plan,
        clock: Clock,
        notify: Notify,
    ) -> None:
        self._drill = drill
        self._plan = plan
        self._file_plan = file_plan
        self._clock = clock
        self._notify = notify
        self._pair = pair_of(plan, drill.link, drill.flow)
        self._run = secrets.token_hex(3)
        self._watch: Watch | None = None
        super().__init__()

    def ready(self) -> Scene:
        """Creates the drill's own topic and waits until the link copies it."""
        plan, pair, link = self._plan, self._pair, self._drill.link
        naming = naming_of(plan, link)
        own = own_topic(self._drill.name, self._run)
        topic = self._drill.load.topic or own
        copy = naming(pair.source.alias, topic, pair.target.alias) or topic
        if topic == own:
            self._make(topic, copy)
        flow = str(pair.id)
        wait_until(
            lambda: self._copies(flow, topic),
            timeout_seconds=READY_SECONDS,
            describe=f"link {link} to copy topic {topic}",
            interval_seconds=1.0,
        )
        self._watch = Watch(
            self._drill.abort,
            look=lambda: self._look(flow),
            clock=self._clock,
        )
        ends = {cluster.alias: endpoint(cluster) for cluster in (pair.source, pair.target)}
        return Scene(
            plan=plan,
            pair=pair,
            link=link,
            source=ends[pair.source.alias],
            target=ends[pair.target.alias],
            behind={str(alias): each for alias, each in ends.items()},
            topic=topic,
            copy=copy,
            naming=naming,
            group=f"{DRILL_TOPICS}-{self._drill.name}-{self._run}",
            real=True,
            starts={} if topic == own else self._ends({pair.source: topic, pair.target: copy}),
            fenced_by_word=self._drill.kind == "switchover" and not _fenced_by_brokers(plan, link),
        )

    @property
    def clears_fault(self) -> bool:
        """Whether the file names a program for it."""
        return bool(self._drill.fault.end)

    def aim(self) -> None:
        """The operator's program chooses the target of the fault."""

    def inject_fault(self) -> str:
        """Runs the operator's program that begins the fault."""
        return run_fault_command(self._drill.fault.begin)

    def clear_fault(self) -> str:
        """Runs the operator's program that ends it."""
        return run_fault_command(self._drill.fault.end)

    def change_roles(self, *, on_step: OnStep) -> TransitionReport:
        """The role change, by the same code as the command, with the link's own fencing."""
        failover = self._drill.kind == "failover"
        request = TransitionRequest(
            kind="failover" if failover else "switchover",
            link=self._drill.link,
            to=str(self._pair.target.alias),
            by="drill",
            accept_loss=failover,
        )
        return run_transition(
            self._file_plan,
            request,
            clock=self._clock,
            on_step=on_step,
            answer=lambda _question: True,
        )

    def check(self, *, last_write_at: float) -> None:
        """Checks the link; raises AbortedError where an abort condition is met."""
        if self._watch is not None:
            self._watch.check(last_write_at=last_write_at)

    def _make(self, topic: str, copy: str) -> None:
        partitions = self._drill.load.partitions
        with ClusterAdmin(self._pair.source, client_id=CLIENT_ID) as admin:
            brokers = len(admin.describe_cluster().brokers)
            spec = NewTopicSpec(topic, partitions, min(3, brokers))
            error = admin.create_topics([spec])[topic]
        if error is not None:
            raise error
        self._notify("topic", f"{topic} with {partitions} partitions, deleted afterwards")
        for cluster, name in ((self._pair.source, topic), (self._pair.target, copy)):
            self.callback(functools.partial(self._delete, cluster, name))

    def _ends(self, topics: Mapping[ClusterPlan, str]) -> dict[str, dict[tuple[str, int], int]]:
        """Where a topic that others use ends on both clusters, so that it is not read from its start."""
        found = {}
        for cluster, topic in topics.items():
            with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
                count = admin.topic_partitions().get(topic, 0)
                ends = admin.known_offsets([(topic, number) for number in range(count)], "latest")
            found[str(cluster.alias)] = ends
        return found

    def _delete(self, cluster: ClusterPlan, name: str) -> None:
        try:
            with ClusterAdmin(cluster, client_id=CLIENT_ID) as admin:
                failed = admin.delete_topics([name])[name]
        except ReplicatorError as error:
            failed = error
        if failed is not None:
            self._notify(
                "topic", f"{name} could not be deleted on {cluster.alias}: {failed.message}"
            )

    def _copies(self, flow: str, topic: str) -> bool:
        status: Any = collect_status(self._plan, flow=flow, clock=self._clock)
        return any(
            each["source"] == topic and all(p["state"] == "replicating" for p in each["partitions"])
            for one in status["flows"]
            for each in one["topics"]
        )

    def _look(self, flow: str) -> StatusLook:
        status = collect_status(self._plan, flow=flow, clock=self._clock)
        return look_at(status, self._drill.link)


def refuse_what_cannot_be(drill: Drill, plan: Plan) -> None:
    """Refuses drills that a real link cannot run, before anything is touched.

    Raises:
        RefusedError: with what to change.
    """
    if drill.kind != "switchover" and not drill.fault.begin:
        raise RefusedError(
            f"a {drill.kind} on a real link needs a program that begins the fault",
            subject=f"drill {drill.name}",
            remedy="Add fault.begin (and fault.end), or run it with --sandbox.",
        )
    link = link_of(plan, drill.link)
    if drill.kind in ROLE_KINDS and link.shape != "active-passive":
        raise RefusedError(
            f"link '{drill.link}' is {link.shape}: its clusters have no roles to change",
            subject=f"drill {drill.name}",
            remedy="Name an active-passive link.",
        )
    if not link.flows:
        raise RefusedError(
            f"no flow of link '{drill.link}' runs now: its role is being changed, or in conflict",
            subject=f"drill {drill.name}",
            remedy="Look at 'replicator status' and finish that first.",
        )
    if drill.load.topic is None:
        name = own_topic(drill.name, "000000")
        if not matcher(link.flows[0].policy.topics)(name):
            raise RefusedError(
                f"link '{drill.link}' does not select the drill's own topics",
                subject=f"drill {drill.name}",
                remedy=f"Add '{DRILL_TOPICS}.*' to its topics.include, or name a topic of the link "
                "in load.topic.",
            )


def _fenced_by_brokers(plan: Plan, link: str) -> bool:
    fencing = link_of(plan, link).procedure.fencing
    return fencing is not None and fencing.method == "acl"


def own_topic(drill: str, run: str) -> str:
    """Name of the topic that one run of a drill creates and deletes."""
    return f"{DRILL_TOPICS}.{drill}.{run}"


def endpoint(cluster: ClusterPlan) -> RemoteCluster:
    """The cluster as the test kit's workloads want it, with the topology's own credentials."""
    config = client_config(cluster, client_id=CLIENT_ID) | user_settings(cluster, "admin")
    for name in (LOGIN, "logger", "log_level"):
        config.pop(name, None)
    settings = {name: _as_given(value) for name, value in config.items()}
    return RemoteCluster(str(cluster.alias), settings)


def _as_given(value: object) -> object:
    """A setting as a file would have it; where tokens come from is a callback."""
    if callable(value):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def run_fault_command(command: tuple[str, ...]) -> str:
    """Runs a program of the operator to its end; returns its last line.

    Raises:
        AbortedError: it failed, could not be started, or took longer than five minutes.
    """
    shown = " ".join(command)
    done = run_program(command, timeout_seconds=COMMAND_SECONDS)
    if done.problem:
        raise AbortedError(f"'{shown}' failed ({done.problem}): {done.last_line}")
    return f"{shown}: {done.last_line}"
